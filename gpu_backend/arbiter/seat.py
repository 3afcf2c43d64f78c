"""One executor's place at a device, as the arbiter has it: its pages, what is counted of it, and what is seen of it."""

from __future__ import annotations

import logging
import os
import signal
from contextlib import suppress
from math import inf
from pathlib import Path

from gpu_backend.arbiter import events as ev
from gpu_backend.arbiter.wanting import Wanting
from gpu_backend.engine.detached import ProcessId
from gpu_backend.engine.process_sessions import end_session
from gpu_backend.gate import verdicts
from gpu_backend.gate.bell import Line
from gpu_backend.gate.orders import OrderPage
from gpu_backend.gate.reports import GateReport, ReportView
from gpu_backend.gate.roster import Member
from gpu_backend.gate.tally import Tally
from gpu_backend.metering.audit import Account, Conduct
from gpu_backend.metering.meters import Meter
from gpu_backend.metering.watch import FOREVER_NS, Watch
from gpu_backend.transport.control_socket import ControlClosed, connect
from gpu_backend.wire.codec import encode
from gpu_backend.wire.op_classes import OP_CLASSES, OpClass
from gpu_backend.wire.orders import TakeGate

__all__ = ["Seat"]

log = logging.getLogger("arbiter.seat")

#: Who was not looked at for so long, seconds, is not judged: the arbiter was kept from working, and executors that do
#: not hear it open their gates.
_LONGEST_LOOK = 0.5
#: What is counted ahead of news at most, nanoseconds: these come every millisecond.
_MOST_EXPECTED_NS = 3_000_000
_MEMORY = OP_CLASSES.index(OpClass.MEMORY)


class Seat:
    """Raises `OSError` where the executor is gone."""

    def __init__(
        self, directory: Path, member: Member, meter: Meter, most_overrun: float, wanting: Wanting, now_ns: int
    ) -> None:
        self.member = member
        self.process = ProcessId(member.pid, member.start_time)
        #: Readable once the process has ended.
        self.descriptor = os.pidfd_open(member.pid)
        if not self.process.is_running:
            os.close(self.descriptor)
            raise ProcessLookupError(f"Process {member.pid} has ended.")
        self._directory = directory
        self.orders = OrderPage()
        #: Rings the executor, and is rung by it.
        self.line, self._their_line = Line.pair()
        self._reports: ReportView | None = None
        self._tally = Tally(directory, member.name)
        self.last = GateReport()
        #: When anything new was last read, nanoseconds; 0 for never.
        self.news_at = 0
        uncounted = (now_ns - self._tally.noted_at_ns) / 1e9 if self._tally.noted_at_ns else 0.0
        self._account = Account(self._tally.reported_ns / 1e9, self._tally.ahead_ns / 1e9, uncounted)
        self.orders.taken_ns = self._tally.reported_ns
        self._conduct = Conduct(most_overrun, meter.most_burnt)
        self._watch = Watch(meter, member.pid, now_ns)
        self._passed_at = self._wanted_at = now_ns
        wanting.pass_time(now_ns)
        self._wanting, self._unused_ns = wanting, wanting.unused_ns
        self._is_ended = False
        #: What of the time that was counted it said was copying; and all others, at the last look, seconds.
        self.copied = 0.0
        self._others_copied: float | None = None
        self.read()

    @property
    def key(self) -> str:
        """The session's id."""
        return self.member.terms.session

    def hand_over(self, way: int) -> None:
        """Give the executor its pages, if it has not got them; where it hears nobody now, the next call tries again."""
        if self._their_line < 0:
            return
        try:
            control = connect(Path(self.member.control))
        except ControlClosed:
            return
        try:
            if control.send(encode(TakeGate(self.member.device))[0], (self.orders.descriptor, way, self._their_line)):
                os.close(self._their_line)
                self._their_line = -1
        except ControlClosed as error:
            log.info("%s does not take its pages: %s", self.key, error)
        finally:
            control.close()

    # --- what it says -------------------------------------------------------------------------------------------------

    @property
    def has_news(self) -> bool:
        """Whether the executor has written since it was last read."""
        return self._reports is not None and self._reports.has_news

    def read(self) -> GateReport | None:
        """Return what the executor last wrote; None if it stopped while it wrote, or has no page that could be read."""
        if self._reports is None:
            try:
                self._reports = ReportView(self.member.pid, self.member.report)
            except OSError as error:
                log.error("%s cannot be read: %s", self.key, error)
                return None
        return self._reports.report()

    def take(self, report: GateReport, now_ns: int) -> tuple[float, float]:
        """Take in a report; return the GPU time to be counted for it, and what of its ops' was counted before."""
        account = self._account
        is_idle = not (report.queued_ops or self._is_claiming(report) or self._is_claiming(self.last))
        ahead = account.ahead
        self._pass_time(now_ns, is_idle)
        counted = account.take(report.used_ns / 1e9)
        self.note_wanting(now_ns)
        covered = max(0.0, ahead - account.ahead)
        self._watch.reported += counted + covered
        copied_ns = report.used_by_class_ns[_MEMORY] - self.last.used_by_class_ns[_MEMORY]
        self.copied += min(max(0, copied_ns) / 1e9, counted + covered)  # what is said and costs nothing excuses nobody
        self.last, self.news_at, self.orders.taken_ns = report, now_ns, report.used_ns
        self._wanting.note(self.key, self._is_wanting)
        self._note(counted)
        return counted, covered

    def expect(self, at_ns: int) -> float:
        """Return the GPU time to be counted for what it computes from its last news on until then, as it is said to."""
        if not (self.last.queued_ops and self.last.in_flight_ops):
            return 0.0
        counted = self._account.expect(min(at_ns - self.news_at, _MOST_EXPECTED_NS) / 1e9)
        self._note(counted)
        return counted

    def note_wanting(self, now_ns: int) -> None:
        """Put on the books whether it wanted the device since the last time, and what was unused while anybody did."""
        passed = max(0, now_ns - self._wanted_at)
        self._wanted_at += passed
        self._wanting.pass_time(now_ns)
        unused, self._unused_ns = self._wanting.unused_ns - self._unused_ns, self._wanting.unused_ns
        self._tally.look(passed if self._is_wanting else 0, unused, self._wanted_at)

    @property
    def _is_wanting(self) -> bool:
        return bool(self.last.queued_ops or self.last.in_flight_ops)

    def _pass_time(self, now_ns: int, is_idle: bool) -> None:
        self._account.pass_time(max(0, now_ns - self._passed_at) / 1e9, is_idle)
        self._passed_at = now_ns

    def _note(self, counted: float) -> None:
        account, counted_ns = self._account, int(counted * 1e9)
        self._tally.note(int(account.reported * 1e9), int(account.ahead * 1e9), counted_ns, self._passed_at)
        self._wanting.note_used(counted_ns)

    def _is_claiming(self, report: GateReport) -> bool:
        return bool(report.in_flight_ops) or (self._reports is not None and self._reports.is_computing)

    # --- what it may, and what is seen --------------------------------------------------------------------------------

    def obey(self, order: ev.OpenGate | ev.OpenLane | ev.ShutGate, now_ns: int, origin_ns: int, at_ns: int = 0) -> None:
        """Write an order onto the page, which holds from ``at_ns`` on if that is to come."""
        until = 0
        if isinstance(order, ev.OpenGate):
            self.orders.open(order, now_ns, origin_ns, at_ns)
            until = FOREVER_NS if order.until == inf else origin_ns + int(order.until * 1e9)
        elif isinstance(order, ev.OpenLane):
            self.orders.open_lane(order, now_ns)
        else:
            self.orders.shut(now_ns, at_ns)
        is_turn = (
            until < FOREVER_NS and bool(self.last.queued_ops) and isinstance(order, ev.OpenGate) and order.duty == 1
        )
        self._watch.begin(max(now_ns, at_ns), until, is_turn, isinstance(order, ev.OpenLane))

    def share_turn(self) -> None:
        """Note that somebody else has a turn at the same time."""
        self._watch.is_turn = False

    def look(self, now_ns: int, others_want: bool, copied: float) -> tuple[float, str]:
        """Look from outside; return the GPU time to be counted for it, and why it must end, or nothing.

        ``copied`` is for how long all have copied by now, itself too, as they say and as was counted, seconds.
        """
        reports = self._reports
        other_ns = reports.other_work_ns if reports is not None else 0
        others = copied - self.copied
        since = others - self._others_copied if self._others_copied is not None else 0.0
        self._others_copied = others
        look = self._watch.look(now_ns, self._is_claiming(self.last), self.last.ops_done, other_ns, since)
        self._pass_time(now_ns, False)
        counted = self._account.compare(look)
        if counted:
            self._note(counted)
        if reports is not None and not reports.is_possible:
            return counted, "What it reported of itself cannot be: its executor is not to be trusted any more."
        is_judged = others_want and look.seconds <= _LONGEST_LOOK
        offence = self._conduct.offence(look) if is_judged else ""
        if offence:
            log.error("what was seen of %s last: %s", self.key, look)
        return counted, offence

    def end(self, reason: str) -> None:
        """End the executor, and leave word of why."""
        self._is_ended = True
        log.error("ends %s, process %d: %s", self.key, self.member.pid, reason)
        verdicts.note(self._directory, self.member.name, reason)
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.descriptor, signal.SIGKILL)

    def close(self) -> None:
        """Let go of pages, bell and process. The gate stays as it is."""
        self._wanting.note(self.key, False)
        self.orders.close()
        self.line.close()
        if self._their_line >= 0:
            os.close(self._their_line)
        if self._reports is not None:
            self._reports.close()
        self._tally.close()
        os.close(self.descriptor)
        if self._is_ended:
            end_session(self.process)  # what it has started computes for it
