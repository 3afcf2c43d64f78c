"""The arbiter of one device: pages and time in, gates out, the scheduler's core in between.

It may be killed at any moment. Gates open by themselves a second later, and the next arbiter learns from the roster who
is there and from each page what was used and what of it was counted.
"""

from __future__ import annotations

import logging
import os
import select
from collections.abc import Collection, Iterable
from pathlib import Path
from time import monotonic_ns

import msgspec

from gpu_backend.arbiter import events as ev
from gpu_backend.arbiter import roster as rosters
from gpu_backend.arbiter.bell import Bell, Ringer
from gpu_backend.arbiter.decisions import DecisionLog
from gpu_backend.arbiter.gate import ArbiterPage, GateReport, NotAGate
from gpu_backend.arbiter.policies import registry
from gpu_backend.arbiter.roster import ArbiterConfig, Member
from gpu_backend.arbiter.scheduler import Scheduler
from gpu_backend.engine.detached import ProcessId

__all__ = ["Arbiter"]

log = logging.getLogger("arbiter")

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


class _Seat:
    """One executor's place at the device."""

    def __init__(self, member: Member, page: ArbiterPage) -> None:
        self.member, self.page = member, page
        self.last = page.report() or GateReport()
        self.news_at = 0
        #: Readable once the process has ended.
        self.descriptor = os.pidfd_open(member.pid)

    @property
    def key(self) -> str:
        return self.member.terms.session

    def close(self) -> None:
        self.page.close()
        os.close(self.descriptor)


class Arbiter:
    """Runs one device's policy over its executors' pages."""

    def __init__(self, directory: Path, config: ArbiterConfig) -> None:
        self._directory = directory
        self._config = config
        self._origin_ns = monotonic_ns()
        self._seats: dict[str, _Seat] = {}
        self._by_page: dict[bytes, str] = {}
        self._computing: dict[str, int] = {}  # who does, and until when that is believed without news
        self._running: dict[str, int] = {}  # who was let through lately, and until when that counts as lately
        self._alone = ""  # the only one who does
        self._roster = str(directory / rosters.ROSTER)
        self._bell = Bell(directory / rosters.BELL)
        self._ringer = Ringer()
        self._log = DecisionLog(directory)
        self._alive = select.poll()
        self._roster_stamp: tuple[int, int] | None = None
        self._look_at = self._beat_at = 0
        self._handled_ns = self._origin_ns
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
                seat.page.abandon()
                self._ringer.ring(seat.member.bell)
            self.close()

    def close(self) -> None:
        """Let go of pages, processes, bells and the log. The gates stay as they are."""
        for seat in self._seats.values():
            seat.close()
        self._seats.clear()
        self._bell.close()
        self._ringer.close()
        self._log.close()

    def step(self, now_ns: int, rung: Collection[bytes] = ()) -> None:
        """Take in what is new, of those at least who have ``rung`` or ran lately, and do what is due."""
        if now_ns >= self._look_at or rosters.AGENT in rung:
            self._look_at = now_ns + _LOOK_NS
            self._look_around(now_ns)
            watched: Iterable[str] = list(self._seats)
        else:
            first = [self._by_page[name] for name in rung if name in self._by_page]
            watched = [*first, *[key for key in self._running if key not in first]]  # who rang waits for an answer
        for key in watched:
            seat = self._seats[key]
            if seat.page.has_news:
                self._take_report(seat, self._before_deadline(now_ns))
        if self._seconds(now_ns) >= self._scheduler.next_deadline():
            self._handle(ev.TimePassed(), now_ns)
        self._tell_contention()

    def _before_deadline(self, now_ns: int) -> int:
        """Return the time of what was read now: before an end that has come, which is to be decided by all of it."""
        deadline = self._scheduler.next_deadline()
        if self._seconds(now_ns) < deadline:
            return now_ns
        return max(self._handled_ns, self._origin_ns + int(deadline * 1e9) - 1)

    def _wait(self) -> set[bytes]:
        due = self._scheduler.next_deadline() - self._seconds(monotonic_ns())
        timeout = max(0.0, min(due, _BUSY_SECONDS if self._computing else _IDLE_SECONDS))
        return self._bell.clear() if select.select([self._bell], [], [], timeout)[0] else set()

    # --- the core -----------------------------------------------------------------------------------------------------

    def _begin(self, now_ns: int) -> None:
        """Begin anew with a fresh core, and a fresh segment of the log."""
        self._scheduler = Scheduler(registry.make(self._config.policy), log_length=None)
        self._log.begin(self._config.policy)
        for seat in self._seats.values():
            self._handle(ev.SessionJoined(seat.member.terms), now_ns)

    def _handle(self, event: ev.Event, now_ns: int) -> None:
        self._handled_ns = now_ns
        for instruction in self._scheduler.handle(event, self._seconds(now_ns)):
            seat = self._seats[instruction.session]
            if isinstance(instruction, ev.OpenGate):
                seat.page.open(instruction, now_ns, self._origin_ns)
                if seat.last.queued_ops:
                    self._running[instruction.session] = now_ns + _ACTIVE_NS
                    self._ringer.ring(seat.member.bell)
            elif isinstance(instruction, ev.OpenLane):
                seat.page.open_lane(instruction, now_ns)
            else:
                seat.page.shut(now_ns)
        while self._scheduler.log:
            self._log.add(self._scheduler.log.popleft())

    def _seconds(self, now_ns: int) -> float:
        return (now_ns - self._origin_ns) / 1e9

    # --- pages --------------------------------------------------------------------------------------------------------

    def _take_report(self, seat: _Seat, now_ns: int) -> None:
        report = seat.page.report()
        if report is None:  # caught in the middle of a write; if its writer died there, the process is found dead
            return
        used_ns, ops = report.used_ns - seat.page.counted_ns, report.ops_done - seat.last.ops_done
        if used_ns or report.queued_ops or report.in_flight_ops:
            self._computing[seat.key] = now_ns + _ACTIVE_NS
            self._rested_at = now_ns + _REST_NS
        if used_ns or report.in_flight_ops:  # it is read at every step: what it finishes behind its gate counts as well
            self._running[seat.key] = now_ns + _ACTIVE_NS
        seat.last, seat.news_at = report, now_ns
        seat.page.counted_ns = report.used_ns
        event = ev.Reported(
            seat.key, max(0, used_ns) / 1e9, max(0, ops), report.queued_ops, report.in_flight_ops, report.is_urgent
        )
        self._handle(event, now_ns)

    def _tell_contention(self) -> None:
        """Tell each executor whether anybody else computes: whoever is alone need not ring, nor keep little in flight.

        Where nobody computes everybody is told to ring, so that the first to come is noticed at once.
        """
        alone = next(iter(self._computing)) if len(self._computing) == 1 else ""
        if alone != self._alone:
            self._alone = alone
            for key, seat in self._seats.items():
                seat.page.set_contended(key != alone)

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
        if now_ns >= self._beat_at:
            self._beat_at = now_ns + _BEAT_NS
            for seat in self._seats.values():
                seat.page.beat(now_ns)
            self._log.flush()
            if now_ns >= self._rested_at and self._log.is_long:
                self._begin(now_ns)

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
            seat = _Seat(member, ArbiterPage(Path(member.page)))
        except (OSError, NotAGate) as error:  # it ended meanwhile; the next roster will not list it
            log.info("%s is not there: %s", member.terms.session, error)
            return
        if not ProcessId(member.pid, member.start_time).is_running:
            seat.close()
            return
        log.info("%s of %s joins", seat.key, member.terms.user)
        self._alive.register(seat.descriptor, select.POLLIN)
        self._seats[seat.key] = seat
        self._by_page[Path(member.page).name.encode()] = seat.key
        seat.page.set_contended(True)
        seat.page.shut(now_ns)  # until the core says otherwise, which it does next
        self._handle(ev.SessionJoined(member.terms), now_ns)
        self._take_report(seat, now_ns)

    def _leave(self, key: str, now_ns: int) -> None:
        """Count what is left to count: measured as far as it was, estimated for what was in flight at a death."""
        seat = self._seats[key]
        report = seat.page.report() or seat.last
        used = max(0, report.used_ns - seat.page.counted_ns) / 1e9
        view = self._scheduler.sessions[key]
        unmeasured = (now_ns - seat.news_at) / 1e9 if seat.news_at else 0.0
        used += min(report.in_flight_ops * view.op_seconds, unmeasured)
        log.info("%s leaves", key)
        self._handle(ev.SessionLeft(key, used), now_ns)
        self._alive.unregister(seat.descriptor)
        del self._seats[key], self._by_page[Path(seat.member.page).name.encode()]
        self._computing.pop(key, None)
        self._running.pop(key, None)
        seat.close()

    def _remove_dead(self, now_ns: int) -> None:
        dead = {descriptor for descriptor, _ in self._alive.poll(0)}
        for key in [key for key, seat in self._seats.items() if seat.descriptor in dead]:
            self._leave(key, now_ns)

    def _is_orphaned(self) -> bool:
        return (monotonic_ns() - self._heard_ns) / 1e9 > self._config.orphan_seconds


def _is_same(one: Member, other: Member | None) -> bool:
    return other is not None and (one.pid, one.start_time, one.page) == (other.pid, other.start_time, other.page)
