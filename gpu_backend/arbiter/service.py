"""The arbiter of one device: pages and time in, gates out, the scheduler's core in between.

It may be killed at any moment. Gates open by themselves a second later, and the next arbiter learns from the roster who
is there, from each executor's report what was used, and from its predecessor's tallies what of it was counted.
"""

from __future__ import annotations

import logging
import os
import select
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from time import monotonic_ns

import msgspec

from gpu_backend.arbiter import events as ev
from gpu_backend.arbiter.ahead import AHEAD_NS, Ahead
from gpu_backend.arbiter.decisions import DecisionLog
from gpu_backend.arbiter.policies import registry
from gpu_backend.arbiter.scheduler import Scheduler
from gpu_backend.arbiter.seat import Seat
from gpu_backend.arbiter.wanting import Wanting
from gpu_backend.gate import right_of_way
from gpu_backend.gate import roster as rosters
from gpu_backend.gate.bell import Bell
from gpu_backend.gate.roster import ArbiterConfig, Member
from gpu_backend.metering.meters import meter_of
from gpu_backend.wire.op_classes import bound_parts

__all__ = ["Arbiter"]

log = logging.getLogger("arbiter")

#: As whom the agent rings.
AGENT = ""

#: How long to sleep at most, seconds, while somebody computes and while nobody does: how late a lost ring is noticed.
_BUSY_SECONDS = 0.05
_IDLE_SECONDS = 0.1
#: How often roster, processes and heartbeats are seen to, nanoseconds. Executors miss a heartbeat after a second.
_LOOK_NS = 40_000_000
_BEAT_NS = 200_000_000
#: A session counts as computing for so long after its last op, nanoseconds.
_ACTIVE_NS = 50_000_000
#: The device is at rest when nobody computed for so long, nanoseconds: longer than any policy's window.
_REST_NS = 15_000_000_000
#: How often each executor is looked at from outside, nanoseconds: while others want the device, the less often the more
#: there are, up to a limit; and else.
_CLOSE_NS, _CLOSE_FOR_EACH_NS, _CLOSE_MOST_NS, _FAR_NS = 90_000_000, 4_000_000, 300_000_000, 2_000_000_000


class Arbiter:
    """Runs one device's policy over its executors' pages."""

    def __init__(self, directory: Path, config: ArbiterConfig) -> None:
        self._directory = directory
        self._config = config
        self._origin_ns = monotonic_ns()
        self._seats: dict[str, Seat] = {}
        self._wanting = Wanting(self._origin_ns)
        self._by_line: dict[int, str] = {}
        self._way = right_of_way.make()
        self._meter = meter_of(config.device_kind, config.device_uuid)
        self._unseen: str | None = None  # why nobody is seen from outside, as noted; nothing is noted yet
        self._looked_at: dict[str, int] = {}  # whom longest ago first
        self._turn = ""  # who had the last turn of its own
        self._copied = 0.0  # by all of them, as they say and as was counted
        self._computing: dict[str, int] = {}  # who does, and until when that is believed without news
        self._running: dict[str, int] = {}  # who was let through lately, and until when that counts as lately
        self._alone = ""  # the only one who does
        self._roster = str(directory / rosters.ROSTER)
        self._bell = Bell(directory / rosters.BELL)
        self._bells = select.epoll()
        self._bells.register(self._bell.fileno(), select.EPOLLIN)
        self._log = DecisionLog(directory)
        self._alive = select.epoll()
        self._roster_stamp: tuple[int, int] | None = None
        self._look_at = self._beat_at = 0
        self._handled_ns = self._origin_ns  # up to when all is decided; that may be a moment ahead
        self._ahead = Ahead(self._seats, lambda key: self._scheduler.is_open(key))
        self._rested_at = self._origin_ns + _REST_NS
        self._heard_ns = self._origin_ns
        self._begin(self._origin_ns)
        #: Set to end the arbiter.
        self.is_stopped = False

    def run(self) -> None:
        """Serve until `is_stopped` is set or nobody has touched the roster for long; then open all gates."""
        try:
            while not (self.is_stopped or self._is_orphaned()):
                rung = self._wait()
                self.step(monotonic_ns(), rung)
        finally:
            for seat in self._seats.values():
                seat.orders.abandon()
                seat.line.ring()
            self.close()

    def close(self) -> None:
        """Let go of pages, processes, bells and the log. The gates stay as they are."""
        for seat in self._seats.values():
            seat.close()
        self._seats.clear()
        self._bells.close()
        self._alive.close()
        self._bell.close()
        self._meter.close()
        if self._way >= 0:
            os.close(self._way)
            self._way = -1
        self._log.close()

    def step(self, now_ns: int, rung: Collection[str] = ()) -> None:
        """Take in what is new, of those at least who have ``rung`` or ran lately, and do what is due.

        ``rung`` holds sessions, and `AGENT` for the agent.
        """
        if now_ns >= self._look_at or AGENT in rung:
            self._look_at = now_ns + _LOOK_NS
            self._look_around(now_ns)
            watched: Iterable[str] = list(self._seats)
        else:
            first = [key for key in rung if key in self._seats]
            watched = [*first, *[key for key in self._running if key not in first]]  # who rang waits for an answer
        for key in watched:
            seat = self._seats[key]
            if seat.has_news:
                self._take_report(seat, self._before_deadline(now_ns))
        if self._seconds(now_ns) >= self._decides_at():
            self._pass_time(now_ns)
        self._tell_contention(now_ns)

    def _decides_at(self) -> float:
        """Return when to decide what holds from the next deadline on: a moment ahead of the end of a turn."""
        deadline = self._scheduler.next_deadline()
        if self._scheduler.next_end() > deadline:
            return deadline
        return max(deadline - AHEAD_NS / 1e9, min(deadline, self._seconds(self._handled_ns)))

    def _pass_time(self, now_ns: int) -> None:
        due_ns = self._origin_ns + int(self._scheduler.next_deadline() * 1e9) + 1
        if due_ns > now_ns:
            self._ahead.begin()
            for key, seat in self._seats.items():
                if self._scheduler.is_open(key) and (expected := seat.expect(due_ns)):
                    self._handle(_counted(seat, expected), now_ns)
        self._handle(ev.TimePassed(), now_ns, due_ns)

    def _before_deadline(self, now_ns: int) -> int:
        """Return the time of what was read now: before an end that has come, which is to be decided by all of it."""
        deadline = self._scheduler.next_deadline()
        if self._seconds(now_ns) < deadline:
            return now_ns
        return max(self._handled_ns, self._origin_ns + int(deadline * 1e9) - 1)

    def _wait(self) -> set[str]:
        due = self._decides_at() - self._seconds(monotonic_ns())
        timeout = max(0.0, min(due, _BUSY_SECONDS if self._computing else _IDLE_SECONDS))
        if timeout:  # a poller counts in milliseconds, and rounds up: the device would idle at the end of each turn
            select.select((self._bells,), (), (), timeout)
        return {self._answer(line) for line, _ in self._bells.poll(0)}

    def _answer(self, line: int) -> str:
        """Return who rang."""
        key = self._by_line.get(line)
        if key is None:
            self._bell.clear()
            return AGENT
        if not self._seats[
            key
        ].line.clear():  # it has let go of its bell, or ended: its pages are looked at all the same
            self._bells.unregister(line)
        return key

    # --- the core -----------------------------------------------------------------------------------------------------

    def _begin(self, now_ns: int) -> None:
        """Begin anew with a fresh core, and a fresh segment of the log."""
        self._scheduler = Scheduler(registry.make(self._config.policy), log_length=None)
        self._log.begin(self._config.policy)
        for seat in self._seats.values():
            self._handle(ev.SessionJoined(seat.member.terms), now_ns)

    def _handle(self, event: ev.Event, now_ns: int, due_ns: int = 0) -> None:
        """Do what follows from ``event``, at once; at ``due_ns``, if that is to come."""
        self._handled_ns = max(self._handled_ns, now_ns, due_ns)
        for instruction in self._scheduler.handle(event, self._seconds(self._handled_ns)):
            self._order(instruction, now_ns, due_ns)
        if due_ns <= now_ns < self._handled_ns:
            for hurried in self._ahead.hurried():
                self._order(hurried, now_ns)
        while self._scheduler.log:
            self._log.add(self._scheduler.log.popleft())

    def _order(self, instruction: ev.Instruction, now_ns: int, due_ns: int = 0) -> None:
        seat = self._seats[instruction.session]
        if due_ns > now_ns:
            self._ahead.note(instruction, now_ns)
        else:
            self._ahead.overrule(instruction, now_ns)
        seat.obey(instruction, now_ns, self._origin_ns, due_ns)
        if isinstance(instruction, ev.OpenGate) and seat.last.queued_ops:
            self._running[instruction.session] = now_ns + _ACTIVE_NS
            seat.line.ring()
            self._note_turn(seat)

    def _note_turn(self, seat: Seat) -> None:
        """See whether the turn that begins is its session's alone."""
        former, self._turn = self._seats.get(self._turn), seat.key
        if former is not None and former is not seat and self._scheduler.is_open(former.key):
            former.share_turn()
            seat.share_turn()

    def _seconds(self, now_ns: int) -> float:
        return (now_ns - self._origin_ns) / 1e9

    # --- pages --------------------------------------------------------------------------------------------------------

    def _take_report(self, seat: Seat, now_ns: int) -> None:
        report = seat.read()
        if report is None:  # caught in the middle of a write; if its writer died there, the process is found dead
            return
        used_ns, ops = report.used_ns - seat.orders.taken_ns, report.ops_done - seat.last.ops_done
        if used_ns or report.queued_ops or report.in_flight_ops:
            self._computing[seat.key] = now_ns + _ACTIVE_NS
            self._rested_at = now_ns + _REST_NS
        if used_ns or report.in_flight_ops:  # it is read at every step: what it finishes behind its gate counts as well
            self._running[seat.key] = now_ns + _ACTIVE_NS
        copied = seat.copied
        compute, memory = bound_parts(seat.last.used_by_class_ns, report.used_by_class_ns)
        counted, ahead = seat.take(report, now_ns)
        self._copied += seat.copied - copied
        event = ev.Reported(
            seat.key, counted, max(0, ops), report.queued_ops, report.in_flight_ops, report.is_urgent, ahead, compute,
            memory,
        )  # fmt: skip
        self._handle(event, now_ns)

    def _tell_contention(self, now_ns: int) -> None:
        """Tell each executor whether anybody else computes: whoever is alone need not ring, nor keep little in flight.

        Where nobody computes everybody is told to ring, so that the first to come is noticed at once. So is who is
        alone behind a shut gate, as a policy leaves it that opens none to the idle: only a ring has it opened at once.
        """
        alone = next(iter(self._computing)) if len(self._computing) == 1 else ""
        if alone and not self._scheduler.is_open(alone):
            alone = ""
        if alone == self._alone:
            return
        former, self._alone = self._seats.get(self._alone), alone
        for key, seat in self._seats.items():
            seat.orders.set_contended(key != alone)
        if former is not None and former.has_news:  # what it wrote before it heard that it is to ring
            self._take_report(former, now_ns)

    # --- who is there -------------------------------------------------------------------------------------------------

    def _look_around(self, now_ns: int) -> None:
        self._read_roster(now_ns)
        if self._alive.poll(0):
            self._remove_dead(now_ns)
        for key in [key for key, until in self._computing.items() if until < now_ns]:
            if not self._seats[key].last.queued_ops:
                del self._computing[key]
        for key in [key for key, until in self._running.items() if until < now_ns]:
            if not self._scheduler.is_open(key):
                del self._running[key]
        self._look_from_outside(now_ns)
        if now_ns >= self._beat_at:
            self._beat_at = now_ns + _BEAT_NS
            for seat in self._seats.values():
                seat.orders.beat(now_ns)
                seat.note_wanting(now_ns)
                seat.hand_over(self._way)
            self._log.flush()
            self._note_unseen()
            if now_ns >= self._rested_at and self._log.is_long:
                self._begin(now_ns)

    def _note_unseen(self) -> None:
        """Tell the agent, and so the operator, if nobody is seen from outside, which may come to be at any time."""
        problem = self._meter.problem if self._config.device_kind else ""
        if problem != self._unseen:
            with suppress(OSError):  # no room: the next beat tries again
                rosters.note_unseen(self._directory, problem)
                self._unseen = problem

    def _look_from_outside(self, now_ns: int) -> None:
        """See who uses the device, whatever they say; count it, and end who runs behind a shut gate."""
        for key in self._due(now_ns):
            seat = self._seats[key]
            del self._looked_at[key]
            self._looked_at[key] = now_ns
            counted, offence = seat.look(now_ns, self._do_others_want(key), self._copied)
            if counted:
                self._handle(_counted(seat, counted), now_ns)
            if offence:
                seat.end(offence)

    def _due(self, now_ns: int) -> list[str]:
        """Return who is to be looked at from outside now, without a thought for all who were of late."""
        close_ns = min(_CLOSE_MOST_NS, max(_CLOSE_NS, len(self._seats) * _CLOSE_FOR_EACH_NS))
        least_ns = close_ns if self._computing else _FAR_NS
        due: list[str] = []
        for key, at in self._looked_at.items():
            if now_ns - at < least_ns:
                break  # the others were looked at later
            if now_ns - at >= _FAR_NS or self._do_others_want(key):
                due.append(key)
        return due

    def _do_others_want(self, key: str) -> bool:
        return len(self._computing) > (key in self._computing)

    def _read_roster(self, now_ns: int) -> None:
        try:
            status = os.stat(self._roster)
        except FileNotFoundError:
            return
        stamp = (status.st_ino, status.st_mtime_ns)
        if stamp == self._roster_stamp:
            return
        self._roster_stamp, self._heard_ns = stamp, now_ns
        try:
            listed = rosters.read_roster(self._directory).members
        except (OSError, msgspec.DecodeError) as error:
            log.error("the roster cannot be read, so who is there stays as it was: %s", error)
            return
        members = {member.terms.session: member for member in listed}
        for key in [key for key, seat in self._seats.items() if not _is_same(seat.member, members.get(key))]:
            self._leave(key, now_ns)
        for key, member in members.items():
            seat = self._seats.get(key)
            if seat is None:
                self._join(member, now_ns)
            elif seat.member.terms != member.terms:
                seat.member = member
                self._handle(ev.TermsChanged(member.terms), now_ns)

    def _join(self, member: Member, now_ns: int) -> None:
        try:
            seat = Seat(self._directory, member, self._meter, self._config.overrun_seconds, self._wanting, now_ns)
        except OSError as error:  # it ended meanwhile; the next roster will not list it
            log.info("%s is not there: %s", member.terms.session, error)
            return
        log.info("%s of %s joins", seat.key, member.terms.user)
        self._alive.register(seat.descriptor, select.EPOLLIN)
        self._seats[seat.key] = seat
        self._by_line[seat.line.fileno()] = seat.key
        self._bells.register(seat.line.fileno(), select.EPOLLIN)
        self._looked_at[seat.key] = now_ns
        seat.orders.set_contended(True)
        seat.orders.shut(now_ns)  # until the core says otherwise, which it does next
        self._handle(ev.SessionJoined(member.terms), now_ns)
        self._take_report(seat, now_ns)
        seat.hand_over(self._way)

    def _leave(self, key: str, now_ns: int) -> None:
        """Count what is left to count: measured as far as it was, estimated for what was in flight at a death."""
        seat = self._seats[key]
        news_at, report = seat.news_at, seat.read() or seat.last
        used, _ = seat.take(report, now_ns)
        view = self._scheduler.sessions[key]
        unmeasured = (now_ns - news_at) / 1e9 if news_at else 0.0
        used += min(report.in_flight_ops * view.op_seconds, unmeasured)
        log.info("%s leaves", key)
        self._handle(ev.SessionLeft(key, used), now_ns)
        self._alive.unregister(seat.descriptor)
        with suppress(FileNotFoundError):
            self._bells.unregister(seat.line.fileno())
        del self._seats[key], self._by_line[seat.line.fileno()], self._looked_at[key]
        self._ahead.forget(key)
        self._computing.pop(key, None)
        self._running.pop(key, None)
        seat.close()

    def _remove_dead(self, now_ns: int) -> None:
        dead = {descriptor for descriptor, _ in self._alive.poll(0)}
        for key in [key for key, seat in self._seats.items() if seat.descriptor in dead]:
            self._leave(key, now_ns)

    def _is_orphaned(self) -> bool:
        return (monotonic_ns() - self._heard_ns) / 1e9 > self._config.orphan_seconds


def _counted(seat: Seat, seconds: float) -> ev.Reported:
    """Return what tells the core that so much more is counted of an executor, which is otherwise as it was."""
    last = seat.last
    return ev.Reported(seat.key, seconds, 0, last.queued_ops, last.in_flight_ops, last.is_urgent)


def _is_same(one: Member, other: Member | None) -> bool:
    return other is not None and msgspec.structs.replace(one, terms=other.terms) == other
