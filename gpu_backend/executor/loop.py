"""What an executor does next: pure. It is told what was done and what is so, and reads no clock and opens no socket.

Whoever serves a session asks for a step, carries it out, notes here that it is done, and asks again. Ops that may run
run first; between two runs of ops the sockets are looked at; what cannot run waits for one of three things, `Wait`. A
wait begins with a report, so that others know who waits; it spins where what it waits for is likely to come before a
sleeper would be awake, and else it sleeps. Times are seconds of one clock.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Final, Protocol

from gpu_backend.executor.instructions import (
    Check,
    Drop,
    Learn,
    Measure,
    Receive,
    Rehearse,
    Report,
    Run,
    Sleep,
    Spin,
    Step,
    Stop,
    Wait,
)  # fmt: skip
from gpu_backend.executor.sight import SPIN_SECONDS, Shut, Told, View
from gpu_backend.transport.spinning import Spinning

__all__ = ["SPIN_SECONDS", "Loop", "Shut", "Told", "View", "next_step"]

# --- how long, and why ------------------------------------------------------------------------------------------------

#: How long to look for the gate to open for what is short and awaited: its arbiter takes less to answer.
URGENT_SECONDS: Final = 0.4e-3
#: How long to look for another's short op to be done: most take less, and the device is idle from then on.
YIELD_SECONDS: Final = 2e-3
#: An opening that was said to come is waited for awake: it is to begin in the very moment that the turn before it ends.
COMING_SECONDS: Final = 1e-3
#: How long ops run before the sockets are looked at: bounds how late a Cancel is seen.
SLICE_SECONDS: Final = 0.01
#: How long to sleep at most while the device works, or the notebook does not read; and who fills the device with ops
#: that take less looks for room without sleeping, where others wait: a short window is soon empty.
DEVICE_SECONDS: Final = 1e-3
#: How long to sleep at most while the device has all the work that it may have of ops that take less, with nobody else:
#: where some took longer before, there is room much sooner than was thought.
ROOM_SECONDS: Final = 0.25e-3
#: How long to sleep at most behind a shut gate while a long op runs: others may wait for its end.
DRAIN_SECONDS: Final = 0.25e-3
#: How long to sleep at most behind a shut gate: its arbiter rings, unless it dies.
SHUT_SECONDS: Final = 0.1
#: The last moment of a pause is spent awake: being woken takes a good part of it, and many ops take no longer.
WAKE_SECONDS: Final = 0.1e-3
#: How often to look how much memory is held, while ops run.
MEASURE_SECONDS: Final = 0.02
#: How often to look whether the session's leases hold, and whether its owner still runs.
CHECK_SECONDS: Final = 0.25
#: What a question runs through stays in the caches if it is gone through so often. It is for so long behind the last
#: op, about as long as an arbiter says that nobody else wants the device: an idle session costs nothing.
REHEARSE_SECONDS: Final = 2e-3
REHEARSED_SECONDS: Final = 0.1
#: How long to sleep at most: bounds how late a lease's or an owner's end is seen.
SLEEP_SECONDS: Final = 1.0

_STOP: Final = Stop()
_RECEIVE: Final = Receive()
_MEASURE: Final = Measure()
_CHECK: Final = Check()
_LEARN: Final = Learn()
_REHEARSE: Final = Rehearse()
_MAY_RUN: Final = View(has_work=True, wait=None)
#: By names of their own: to look a member up in its class takes as long as the rest of a decision.
_WORK: Final = Wait.WORK
_ROOM: Final = Wait.ROOM
_GATE: Final = Wait.GATE
_NOTHING: Final = Told.NOTHING
_DUE: Final = Told.DUE
_ALL: Final = Told.ALL

# --- what is next -----------------------------------------------------------------------------------------------------


def next_step(view: View, now: float) -> Step:
    """Return what to do at ``now``, seconds."""
    if view.is_over:
        return _STOP
    if view.has_work and view.has_looked:  # before all that can wait: somebody may wait for it
        if view.is_cancelled:
            return Drop(now + SLICE_SECONDS)
        if view.wait is None:
            return Run(now + SLICE_SECONDS)
    if now >= view.check_at:
        return _CHECK
    if view.has_work and not view.has_looked:
        return _MEASURE if now >= view.measure_at else _RECEIVE
    return _wait(view, now)


def _wait(view: View, now: float) -> Step:
    if not view.is_assigned:
        return Sleep(_WORK, now + SLEEP_SECONDS)
    if not view.has_work:
        return _await_work(view, now)
    if view.shut is not None:
        return _await_gate(view, view.shut, now)
    return _await_room(view, now)


def _await_work(view: View, now: float) -> Step:
    if now < view.since + view.spin_seconds:
        if view.told is _NOTHING and view.has_answered and view.is_contended:
            return Report(_WORK, False)  # others may have the device until the notebook asks for more
        return Spin(_WORK, view.since + view.spin_seconds)
    if now >= view.measure_at:
        return _MEASURE
    if view.told is not _ALL:
        return Report(_WORK, True)
    if view.has_lesson:
        return _LEARN
    most = DEVICE_SECONDS if view.has_unsent or view.is_working else SLEEP_SECONDS
    if now >= view.rehearse_until:
        return Sleep(_WORK, now + most)
    return _REHEARSE if now >= view.rehearse_at else Sleep(_WORK, min(now + most, view.rehearse_at))


def _await_room(view: View, now: float) -> Step:
    if view.told is _NOTHING:
        return Report(_ROOM, False)
    if not view.is_contended:
        return Sleep(_ROOM, now + (ROOM_SECONDS if view.op_seconds < ROOM_SECONDS else DEVICE_SECONDS))
    if view.op_seconds < DEVICE_SECONDS:
        return Spin(_ROOM, now + SPIN_SECONDS)
    return Sleep(_ROOM, now + SPIN_SECONDS)


def _await_gate(view: View, shut: Shut, now: float) -> Step:
    if view.told is not _ALL:
        return Report(_GATE, True)
    if 0 < shut.opens_in <= COMING_SECONDS:
        return Spin(_GATE, now + shut.opens_in)
    spun_until = view.since + (YIELD_SECONDS if shut.is_yielding else URGENT_SECONDS if shut.is_urgent else 0.0)
    if now < spun_until:
        return Spin(_GATE, spun_until)
    most = _longest_sleep(view, shut)
    if shut.pause_seconds:
        if shut.pause_seconds <= WAKE_SECONDS:
            return Spin(_GATE, now + shut.pause_seconds)
        most = min(most, shut.pause_seconds - WAKE_SECONDS)
    return Sleep(_GATE, now + most)


def _longest_sleep(view: View, shut: Shut) -> float:
    if view.works_long:
        return DRAIN_SECONDS
    if shut.pause_seconds:
        return SHUT_SECONDS
    if shut.pause_seconds is not None and view.is_working:  # it takes longer than was thought
        return SPIN_SECONDS
    has_end = view.is_working or shut.is_way_taken or shut.pause_seconds is not None
    return DEVICE_SECONDS if has_end else SHUT_SECONDS


# --- what is remembered -----------------------------------------------------------------------------------------------


class Work(Protocol):
    """What the notebook has asked for."""

    @property
    def has_work(self) -> bool: ...
    @property
    def is_cancelled(self) -> bool: ...
    @property
    def has_unsent(self) -> bool: ...


class GateLook(Protocol):
    """What is seen of a gate."""

    def may_launch(self) -> bool: ...
    @property
    def is_contended(self) -> bool: ...
    @property
    def has_device_alone(self) -> bool: ...
    @property
    def is_urgent(self) -> bool: ...
    @property
    def is_yielding(self) -> bool: ...
    @property
    def is_way_taken(self) -> bool: ...
    @property
    def is_pausing(self) -> bool: ...
    @property
    def pause_seconds(self) -> float: ...
    @property
    def opens_in(self) -> float: ...


class PaceLook(Protocol):
    """What is seen of the work in flight."""

    in_flight_ops: int
    op_seconds: float

    def is_full(self) -> bool: ...
    @property
    def works_long(self) -> bool: ...


class Loop:
    """Looks at gate and work for `next_step`, and remembers between two steps what was done.

    Parameters
    ----------
    gate
        Whether ops may be launched.
    pace
        What is in flight.
    has_spare
        Whether this host has a processor to spare for who only waits.
    has_lesson
        Whether there is anything to learn of the ops that came.
    has_question
        Whether there is a question that can be asked again.
    """

    def __init__(
        self, gate: GateLook, pace: PaceLook, has_spare: Callable[[], bool] = lambda: False,
        has_lesson: Callable[[], bool] = lambda: False, has_question: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        self._gate = gate
        self._pace = pace
        self._has_lesson, self._has_question, self._has_spare = has_lesson, has_question, has_spare
        self._spinning = Spinning(SPIN_SECONDS, has_spare)
        #: Whether something has ended the session.
        self.is_over = False
        self._has_looked = True
        self._has_answered = False
        self._told = _NOTHING
        self._since = self._check_at = self._measured_at = self._ran_at = self._rehearsed_at = -inf
        self._measure_at = inf

    def turn_to(self, gate: GateLook, pace: PaceLook) -> None:
        """Look at these from now on: the next op is for another device."""
        self._gate, self._pace = gate, pace

    def next_step(self, work: Work | None, now: float) -> Step:
        """Return what to do at ``now``; ``work`` is None while there is no session."""
        if not self._has_looked and work is not None and (spin := self._spin_on(work, now)) is not None:
            return spin
        view = self.look(work)
        return Run(now + SLICE_SECONDS) if view is _MAY_RUN else next_step(view, now)

    def _spin_on(self, work: Work, now: float) -> Spin | None:
        """Return what is next where ops ran a moment ago and no more are there, if it needs no look at all the rest.

        So it is behind nearly every answer, and the next question may be here before the rest is seen.
        """
        if self.is_over or work.has_work or now >= self._check_at or self._gate.is_contended or self._has_lesson():
            return None
        until = self._since + self._spinning.seconds
        return Spin(_WORK, until) if now < until else None

    def may_launch(self) -> bool:
        """Return whether the gate lets an op through, and the device has room for it."""
        return self._gate.may_launch() and not self._pace.is_full()

    def look(self, work: Work | None) -> View:
        """Return where the executor stands."""
        if self.is_over or work is None:
            return View(self.is_over, work is not None, check_at=self._check_at)
        if not work.has_work:
            return self._without_work(work)
        if not self._has_looked:
            return View(False, True, True, False, check_at=self._check_at, measure_at=self._measure_at)
        if work.is_cancelled:
            return View(False, True, True, True, True)
        if not self._gate.may_launch():
            return self._with_work(_GATE, self._look_at_gate())
        if self._pace.is_full():
            return self._with_work(_ROOM)
        return _MAY_RUN

    def _look_at_gate(self) -> Shut:
        gate = self._gate
        return Shut(
            gate.is_urgent, gate.is_yielding, gate.is_way_taken, gate.pause_seconds if gate.is_pausing else None,
            gate.opens_in,
        )  # fmt: skip

    def _without_work(self, work: Work) -> View:
        is_contended, has_lesson = self._gate.is_contended, self._has_lesson()
        # A lesson is for the first pause that may be one: whoever comes meanwhile waits for it once, as long as for
        # some ten ops in the way that it puts an end to.
        spin_seconds = SPIN_SECONDS if is_contended or has_lesson else self._spinning.seconds
        return View(
            False, True, False, self._has_looked, False, _WORK, None, self._since, self._told, self._has_answered,
            is_contended, self._check_at, self._measure_at, self._pace.in_flight_ops > 0, work.has_unsent,
            spin_seconds=spin_seconds, has_lesson=has_lesson,
            rehearse_at=max(self._ran_at, self._rehearsed_at) + REHEARSE_SECONDS,
            rehearse_until=self._ran_at + REHEARSED_SECONDS if self._may_rehearse() else -inf,
        )  # fmt: skip

    def _may_rehearse(self) -> bool:
        is_at_rest = self._told is _ALL and self._has_question()
        return is_at_rest and self._gate.has_device_alone and self._has_spare()  # the last takes a system call at times

    def _with_work(self, wait: Wait, shut: Shut | None = None) -> View:
        pace = self._pace
        return View(
            False, True, True, True, False, wait, shut, self._since, self._told, self._has_answered,
            self._gate.is_contended, self._check_at, self._measure_at, pace.in_flight_ops > 0, False,
            pace.works_long, pace.op_seconds,
        )  # fmt: skip

    def note_ran(self, now: float, has_answered: bool) -> None:
        """Note that ops ran until ``now``, or were dropped; ``has_answered`` says whether the last was answered."""
        self._has_looked, self._has_answered = False, has_answered
        self._since = self._ran_at = now
        self._told = _NOTHING
        self._measure_at = self._measured_at + MEASURE_SECONDS

    def note_looked(self, now: float, is_new: bool) -> None:
        """Note that the sockets were looked at; ``is_new`` says that a message came, or that a sleep was over."""
        self._has_looked, self._told = True, _NOTHING
        if is_new:
            self._since = now

    def note_heard(self, now: float, has_come: bool) -> None:
        """Note that who waited for work looked at the sockets; ``has_come`` says that a message came."""
        if has_come:
            self._spinning.note(now - self._since)
        self.note_looked(now, has_come)

    def note_told(self, is_resting: bool) -> None:
        """Note that the arbiter was told what was due; all, if ``is_resting``."""
        self._told = _ALL if is_resting else _DUE

    def note_learnt(self, now: float, has_come: bool) -> None:
        """Note that something was learnt, and the sockets were looked at; ``has_come`` says that a message came."""
        if has_come:
            self.note_looked(now, True)

    def note_rehearsed(self, now: float, has_come: bool) -> None:
        """Note that a question was asked again, and the sockets were looked at; ``has_come`` as in `note_learnt`."""
        self._rehearsed_at = now
        if has_come:
            self.note_looked(now, True)

    def note_measured(self, now: float) -> None:
        """Note that it was looked how much memory is held."""
        self._measured_at, self._measure_at = now, inf

    def note_checked(self, now: float) -> None:
        """Note that the leases were looked at."""
        self._check_at = now + CHECK_SECONDS
