"""What an executor does next: each decision as a record, and what holds of all of them."""

from __future__ import annotations

from math import inf

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.executor import loop as loops
from gpu_backend.executor.instructions import (
    Check,
    Drop,
    Learn,
    Measure,
    Receive,
    Report,
    Run,
    Sleep,
    Spin,
    Step,
    Stop,
    Wait,
)  # fmt: skip
from gpu_backend.executor.loop import Loop, Shut, Told, View, next_step

NOW = 100.0
#: Nothing to do since long ago, and all is told.
IDLE = View(told=Told.ALL)
OPEN = View(has_work=True, wait=None)
SHUT = View(has_work=True, wait=Wait.GATE, shut=Shut(), told=Told.ALL)
FULL = View(has_work=True, wait=Wait.ROOM, told=Told.DUE, is_working=True, op_seconds=2e-4)


def but(view: View, **what: object) -> View:
    """Return ``view`` with other values in some places."""
    return msgspec.structs.replace(view, **what)


def shut(told: Told = Told.ALL, since: float = 0.0, is_working: bool = False, **gate: object) -> View:
    """Return a view of ops behind a shut gate."""
    return but(SHUT, shut=Shut(**gate), told=told, since=since, is_working=is_working)  # type: ignore[arg-type]


DECISIONS: dict[str, tuple[View, Step]] = {
    "an order to stop goes before ops that wait": (but(OPEN, is_over=True), Stop()),
    "and before what was not looked at": (but(OPEN, is_over=True, has_looked=False, check_at=0.0), Stop()),
    "nobody's executor sleeps": (View(is_assigned=False), Sleep(Wait.WORK, NOW + 1.0)),
    "ops that may run run for a slice": (OPEN, Run(NOW + 0.01)),
    "nothing that is due holds them up": (but(OPEN, check_at=0.0, measure_at=0.0), Run(NOW + 0.01)),
    "between two runs the sockets are looked at": (but(OPEN, has_looked=False), Receive()),
    "memory is measured between them": (but(OPEN, has_looked=False, measure_at=NOW), Measure()),
    "leases are looked at between them": (but(OPEN, has_looked=False, measure_at=NOW, check_at=NOW), Check()),
    "cancelled ops are dropped behind a shut gate": (but(SHUT, is_cancelled=True), Drop(NOW + 0.01)),
    # nothing to do
    "the next message is looked for": (but(IDLE, since=NOW - 50e-6), Spin(Wait.WORK, NOW - 50e-6 + 60e-6)),
    "then all is told": (but(IDLE, told=Told.NOTHING), Report(Wait.WORK, True)),
    "what was due being told already": (but(IDLE, told=Told.DUE), Report(Wait.WORK, True)),
    "when memory is measured": (but(IDLE, told=Told.NOTHING, measure_at=NOW), Measure()),
    "before it sleeps it learns": (but(IDLE, has_lesson=True), Learn()),
    "but not before all is told": (but(IDLE, has_lesson=True, told=Told.NOTHING), Report(Wait.WORK, True)),
    "nor while a message may come at once": (but(IDLE, has_lesson=True, since=NOW), Spin(Wait.WORK, NOW + 60e-6)),
    "nor while ops wait": (but(FULL, has_lesson=True), Sleep(Wait.ROOM, NOW + 1e-3)),
    "then it sleeps": (IDLE, Sleep(Wait.WORK, NOW + 1.0)),
    "but not for long while the device works": (but(IDLE, is_working=True), Sleep(Wait.WORK, NOW + 1e-3)),
    "nor with answers unsent": (but(IDLE, has_unsent=True), Sleep(Wait.WORK, NOW + 1e-3)),
    "leases are looked at before it waits": (but(IDLE, check_at=NOW), Check()),
    "and while it spins": (but(IDLE, since=NOW, check_at=NOW), Check()),
    "leases are not looked at before they are due": (but(IDLE, check_at=NOW + 0.1), Sleep(Wait.WORK, NOW + 1.0)),
    "who was answered beside others says at once that it rests": (
        View(since=NOW, is_contended=True, has_answered=True), Report(Wait.WORK, False),
    ),
    "once": (
        View(since=NOW, is_contended=True, has_answered=True, told=Told.DUE), Spin(Wait.WORK, NOW + 60e-6),
    ),
    "who was not answered sends more in a moment": (View(since=NOW, is_contended=True), Spin(Wait.WORK, NOW + 60e-6)),
    "alone on the device nobody is waiting to hear it": (
        View(since=NOW, has_answered=True), Spin(Wait.WORK, NOW + 60e-6),
    ),
    # the device is full
    "who has filled the device tells what is due": (but(FULL, told=Told.NOTHING), Report(Wait.ROOM, False)),
    "alone it sleeps for a moment": (FULL, Sleep(Wait.ROOM, NOW + 1e-3)),
    "beside others short ops are waited for awake": (but(FULL, is_contended=True), Spin(Wait.ROOM, NOW + 60e-6)),
    "and long ones asleep": (but(FULL, is_contended=True, op_seconds=1e-3), Sleep(Wait.ROOM, NOW + 60e-6)),
    # the gate is shut
    "who finds the gate shut tells all": (shut(Told.DUE), Report(Wait.GATE, True)),
    "and sleeps: it is rung for": (shut(), Sleep(Wait.GATE, NOW + 0.1)),
    "what is urgent looks for the answer": (
        shut(since=NOW - 0.1e-3, is_urgent=True), Spin(Wait.GATE, NOW - 0.1e-3 + 0.4e-3),
    ),
    "but not for ever": (shut(since=NOW - 0.4e-3, is_urgent=True), Sleep(Wait.GATE, NOW + 0.1)),
    "another's short op is waited for awake": (shut(since=NOW, is_yielding=True), Spin(Wait.GATE, NOW + 2e-3)),
    "longer than an answer": (
        shut(since=NOW - 1e-3, is_yielding=True, is_urgent=True), Spin(Wait.GATE, NOW - 1e-3 + 2e-3),
    ),
    "nobody rings when the way is free": (shut(is_way_taken=True), Sleep(Wait.GATE, NOW + 1e-3)),
    "nor when the device is done": (shut(is_working=True), Sleep(Wait.GATE, NOW + 1e-3)),
    "others may wait for the end of a long op": (
        but(shut(is_working=True), works_long=True), Sleep(Wait.GATE, NOW + 0.25e-3),
    ),
    "a pause is slept through, but for its last moment": (
        shut(pause_seconds=0.5e-3), Sleep(Wait.GATE, NOW + (0.5e-3 - 0.1e-3)),
    ),
    "a long one not in one go": (shut(pause_seconds=5.0), Sleep(Wait.GATE, NOW + 0.1)),
    "the last moment is spent awake": (shut(pause_seconds=0.1e-3), Spin(Wait.GATE, NOW + 0.1e-3)),
    "a pause that should be over": (shut(pause_seconds=0.0), Sleep(Wait.GATE, NOW + 1e-3)),
    "and waits for what runs": (shut(pause_seconds=0.0, is_working=True), Sleep(Wait.GATE, NOW + 60e-6)),
}  # fmt: skip


@pytest.mark.parametrize("name", DECISIONS)
def test_a_view_is_answered_with_a_step(name: str) -> None:
    view, step = DECISIONS[name]
    assert next_step(view, NOW) == step


# --- what holds of all views ------------------------------------------------------------------------------------------

flags, moments = st.booleans(), st.sampled_from([NOW - 1, NOW - 1e-3, NOW - 1e-5, NOW, NOW + 1e-5, NOW + 1, inf])
gates = st.builds(
    Shut, flags, flags, flags, st.none() | st.sampled_from([0.0, 1e-9, 1e-4, 2e-4, 0.5]) | st.floats(0, 100)
)
views = st.builds(
    View, is_over=flags, is_assigned=flags, has_work=flags, has_looked=flags, is_cancelled=flags,
    wait=st.none() | st.just(Wait.ROOM), shut=st.none(), is_contended=flags, has_answered=flags, has_unsent=flags,
    is_working=flags, works_long=flags, op_seconds=st.floats(1e-6, 1), told=st.sampled_from(Told),
    since=st.sampled_from([NOW - 1, NOW - 1e-3, NOW - 1e-5, NOW]), check_at=moments, measure_at=moments,
)  # fmt: skip
views |= st.builds(lambda view, gate: but(view, has_work=True, wait=Wait.GATE, shut=gate), views, gates)


def may_run(view: View) -> bool:
    return view.has_work and (view.wait is None or view.is_cancelled)


@given(views)
def test_ops_run_only_through_an_open_gate_and_always_then(view: View) -> None:
    step = next_step(view, NOW)
    if isinstance(step, Run):
        assert view.has_work
        assert view.wait is None
        assert not view.is_cancelled
    if may_run(view) and view.has_looked and not view.is_over:
        assert isinstance(step, Run | Drop)


@given(views)
def test_nobody_waits_who_may_run_something(view: View) -> None:
    if may_run(view):
        assert not isinstance(next_step(view, NOW), Spin | Sleep | Report)


@given(views)
def test_waits_end_within_their_bounds(view: View) -> None:
    step = next_step(view, NOW)
    if isinstance(step, Spin):
        assert NOW < step.until <= NOW + {
            Wait.WORK: loops.SPIN_SECONDS, Wait.ROOM: loops.SPIN_SECONDS, Wait.GATE: loops.YIELD_SECONDS,
        }[step.wait]  # fmt: skip
    if isinstance(step, Sleep):
        most = {Wait.WORK: loops.SLEEP_SECONDS, Wait.ROOM: loops.DEVICE_SECONDS, Wait.GATE: loops.SHUT_SECONDS}
        assert NOW < step.until <= NOW + most[step.wait]
    if isinstance(step, Run | Drop):
        assert step.until == NOW + loops.SLICE_SECONDS


@given(views)
def test_nobody_sleeps_whose_arbiter_does_not_know(view: View) -> None:
    if isinstance(step := next_step(view, NOW), Sleep) and view.is_assigned:
        assert view.told is Told.ALL or (step.wait is Wait.ROOM and view.told is Told.DUE)


@given(views)
def test_whatever_ended_the_session_nothing_follows(view: View) -> None:
    assert (next_step(view, NOW) == Stop()) == view.is_over


# --- the loop in time -------------------------------------------------------------------------------------------------


class Gate:
    is_contended = is_urgent = is_yielding = is_way_taken = is_pausing = False
    pause_seconds = 0.0

    def __init__(self) -> None:
        self.is_open = True

    def may_launch(self) -> bool:
        return self.is_open


class Pace:
    in_flight_ops, op_seconds, works_long = 0, 50e-6, False

    def __init__(self) -> None:
        self.has_room = True

    def is_full(self) -> bool:
        return not self.has_room


class Notebook:
    has_unsent = False

    def __init__(self) -> None:
        self.ops = self.cancelled = 0

    @property
    def has_work(self) -> bool:
        return self.ops > 0

    @property
    def is_cancelled(self) -> bool:
        return self.cancelled > 0


class Played:
    """Carries out the steps of a loop; each takes a little time, and what happens meanwhile is a test's to say."""

    def __init__(self, has_spare: bool = False) -> None:
        self.gate, self.pace, self.notebook = Gate(), Pace(), Notebook()
        self.loop = Loop(self.gate, self.pace, lambda: has_spare)
        self.now, self.asks, self.ran, self.op_seconds = NOW, 0, 0, 0.0

    def ask(self, ops: int) -> None:
        """Have a message of the notebook wait in the socket."""
        self.asks += ops

    def go(self) -> Step:
        """Carry out one step, and return it."""
        step = self.loop.next_step(self.notebook, self.now)
        self.now += 1e-6
        if isinstance(step, Run):
            self.ran, self.notebook.ops = self.ran + 1, self.notebook.ops - 1
            self.now += self.op_seconds
            self.loop.note_ran(self.now, not self.notebook.ops)
        elif isinstance(step, Drop):
            self.notebook.ops, self.notebook.cancelled = self.notebook.ops - 1, self.notebook.cancelled - 1
            self.loop.note_ran(self.now, False)
        elif isinstance(step, Report):
            self.loop.note_told(step.is_resting)
        elif isinstance(step, Measure):
            self.loop.note_measured(self.now)
        elif isinstance(step, Check):
            self.loop.note_checked(self.now)
        elif isinstance(step, Receive | Spin | Sleep):
            is_heard = self.asks > 0
            if not is_heard and isinstance(step, Spin | Sleep):
                self.now = step.until
            self.notebook.ops, self.asks = self.notebook.ops + self.asks, 0
            if isinstance(step, Spin | Sleep) and step.wait is Wait.WORK:
                self.loop.note_heard(self.now, is_heard)
            else:
                self.loop.note_looked(self.now, is_heard or isinstance(step, Sleep))
        return step

    def kinds(self, count: int) -> list[type[Step]]:
        """Carry out so many steps, and return what they were."""
        return [type(self.go()) for _ in range(count)]


def test_an_op_after_a_pause_runs_at_once_and_then_all_is_told_and_it_sleeps() -> None:
    played = Played()
    assert played.kinds(2) == [Check, Report]
    played.ask(1)
    assert played.kinds(6) == [Sleep, Run, Spin, Measure, Report, Sleep]
    assert played.kinds(4) == [Check, Report, Sleep, Check]  # and sleeps on: it spins for nobody


def test_a_stream_of_ops_runs_in_slices_and_messages_are_taken_between_them() -> None:
    played = Played()
    played.go()
    played.ask(3)
    assert played.kinds(2) == [Report, Sleep]
    assert [each for each in played.kinds(7) if each is not Measure] == [Run, Receive, Run, Receive, Run, Spin]


def test_one_behind_a_shut_gate_tells_sleeps_and_runs_when_it_opens() -> None:
    played = Played()
    played.go()
    played.gate.is_open = False
    played.ask(1)
    assert played.kinds(6) == [Report, Sleep, Report, Sleep, Report, Sleep]
    played.gate.is_open = True
    assert played.kinds(1) == [Run]


def test_one_who_has_filled_the_device_goes_on_when_there_is_room() -> None:
    played = Played()
    played.go()
    played.ask(2)
    assert [each for each in played.kinds(4) if each is not Measure] == [Report, Sleep, Run]
    played.pace.has_room = False
    assert played.kinds(5) == [Receive, Report, Sleep, Report, Sleep]
    played.pace.has_room = True
    assert played.kinds(1) == [Run]


def test_the_next_message_is_looked_for_from_the_end_of_an_op_on_however_long_it_took() -> None:
    played = Played()
    played.go()
    played.ask(1)
    assert played.kinds(2) == [Report, Sleep]
    played.op_seconds = 0.2
    assert played.kinds(1) == [Run]
    assert played.loop.next_step(played.notebook, played.now) == Spin(Wait.WORK, played.now + loops.SPIN_SECONDS)


def awaited(played: Played, seconds: float) -> list[Step]:
    """Have one op come so long after the last one was done, and return the steps until it has run."""
    done_at, ran, steps = played.now, played.ran, []
    while played.ran == ran:
        step = played.loop.next_step(played.notebook, played.now)
        if isinstance(step, Spin | Sleep) and step.until >= done_at + seconds:
            played.now = max(played.now, done_at + seconds)
            played.ask(1)
        steps.append(played.go())
    return steps


def test_an_op_that_comes_a_little_later_than_was_spun_is_spun_for_in_the_end() -> None:
    played = Played(has_spare=True)
    for _ in range(12):
        steps = awaited(played, 2e-3)
    assert not any(isinstance(step, Sleep) for step in steps)
    steps = awaited(played, 0.2)
    assert any(isinstance(step, Sleep) for step in steps)
    assert any(isinstance(step, Sleep) for step in awaited(played, 2e-3))  # it spins as little as at first


def test_who_shares_the_device_spins_no_longer_than_ever() -> None:
    played = Played(has_spare=True)
    played.gate.is_contended = True
    for _ in range(12):
        steps = awaited(played, 2e-3)
    assert any(isinstance(step, Sleep) for step in steps)


def test_a_cancel_is_heard_behind_a_shut_gate() -> None:
    played = Played()
    played.go()
    played.gate.is_open = False
    played.ask(2)
    played.kinds(4)
    played.notebook.cancelled = 2
    assert [each for each in played.kinds(4) if each is not Measure] == [Drop, Receive, Drop]
    assert played.ran == 0


def test_an_end_is_the_last_step() -> None:
    played = Played()
    played.ask(3)
    played.kinds(4)
    played.loop.is_over = True
    assert played.kinds(2) == [Stop, Stop]


acts = st.sampled_from("ask shut open fill free cancel urgent pause contend go go go".split())


@given(st.lists(acts, max_size=60))
def test_whatever_happens_the_loop_gets_on(story: list[str]) -> None:
    """Nothing runs behind a shut gate; within a few steps what may run runs, or it waits; leases are looked at."""
    played = Played()
    checked = played.now
    for act in story:
        if act == "ask":
            played.ask(2)
        elif act in ("shut", "open"):
            played.gate.is_open = act == "open"
        elif act in ("fill", "free"):
            played.pace.has_room = act == "free"
        elif act == "cancel":
            played.notebook.cancelled = played.notebook.ops
        elif act == "urgent":
            played.gate.is_urgent = not played.gate.is_urgent
        elif act == "pause":
            played.gate.is_pausing, played.gate.pause_seconds = not played.gate.is_pausing, 0.3e-3
        elif act == "contend":
            played.gate.is_contended = not played.gate.is_contended
        else:
            before, may = played.ran, played.gate.is_open and played.pace.has_room
            can = may and played.notebook.ops > played.notebook.cancelled
            steps = [played.go() for _ in range(6)]
            assert may or played.ran == before
            assert not can or Run in map(type, steps) or Drop in map(type, steps)
            assert any(isinstance(each, Run | Drop | Spin | Sleep) for each in steps)
            if Check in map(type, steps):
                checked = played.now
            assert played.now - checked <= 6 * loops.SLEEP_SECONDS + loops.CHECK_SECONDS
