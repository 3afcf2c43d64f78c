"""What an agent puts into the books for one executor: its word within bounds, and what its arbiter counted."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from time import monotonic_ns

from gpu_backend.engine.detached import ProcessId
from gpu_backend.gate import tally
from gpu_backend.gate.reports import GateReport, ReportView
from gpu_backend.gate.roster import name_of
from gpu_backend.metering.audit import Account, by_class
from gpu_backend.metering.meters import Meter
from gpu_backend.metering.watch import FOREVER_NS, Watch
from gpu_backend.wire.control import Booked, Usage
from gpu_backend.wire.figures import fit_count, fit_seconds

__all__ = ["UsageOf"]


class UsageOf:
    """Reads an executor's report page, and bounds what it says.

    Parameters
    ----------
    process
        The executor.
    report
        Number of its descriptor of its report page.
    arbiter
        Directory of its device's arbiter, which looks at it closely and counts as well.
    meter
        Sees who uses the device, where there is no arbiter.
    """

    def __init__(self, process: ProcessId, report: int, arbiter: Path, meter: Meter | None) -> None:
        self._arbiter = arbiter
        self._name = name_of(process.pid, process.start_time, report)
        try:
            self._page: ReportView | None = ReportView(process.pid, report)
        except OSError:  # it has ended, or has no page
            self._page = None
        now = monotonic_ns()
        # Since when it could use the device is not asked: an agent before this one may have booked it already.
        self._account = Account(credit=max(0.0, process.age_seconds()))
        self._passed_at = now
        self._watch = Watch(meter, process.pid, now) if meter is not None else None
        if self._watch is not None:
            self._watch.begin(now, FOREVER_NS, False, False)  # nothing is shut where there is no arbiter
        self._counted = 0.0

    def read(self, said: Usage) -> Usage:
        """Return what it used. ``said`` is its own last report, which is older than its page."""
        page = (self._page.report() if self._page is not None else None) or GateReport()
        reported = max(page.used_ns / 1e9, said.gpu_seconds if isfinite(said.gpu_seconds) else 0.0)
        now = monotonic_ns()
        is_computing = bool(page.in_flight_ops) or (self._page is not None and self._page.is_computing)
        self._account.pass_time((now - self._passed_at) / 1e9, False)
        self._passed_at = now
        before = self._account.reported
        self._counted += self._account.take(reported)
        if self._watch is not None:
            self._watch.reported += self._account.reported - before
            self._counted += self._account.compare(self._watch.look(now, is_computing, page.ops_done, 0))
        counted = max(self._counted, tally.counted_seconds(self._arbiter, self._name))
        classes = [used / 1e9 for used in page.used_by_class_ns]
        if page.used_ns / 1e9 < said.gpu_seconds and len(said.by_class) == len(classes):
            classes = [fit_seconds(part) if isfinite(part) else 0.0 for part in said.by_class]
        # Fitted: a figure that cannot be would cost the node its whole report, and all others on it theirs.
        peak, received, sent = max(said.peak_bytes, page.memory_bytes), said.received_bytes, said.sent_bytes
        return Usage(
            fit_seconds(counted), fit_count(peak), fit_count(received), fit_count(sent), by_class(counted, classes)
        )

    def booked(self) -> Booked:
        """Return what the device's arbiter has on its books of it, whatever it says itself."""
        return Booked(*tally.booked(self._arbiter, self._name))

    def held_bytes(self) -> int:
        """Return what it holds on the device, as it says itself."""
        page = self._page.report() if self._page is not None else None
        return fit_count(page.memory_bytes) if page is not None else 0

    def close(self) -> None:
        """Let go of the page."""
        if self._page is not None:
            self._page.close()
            self._page = None
