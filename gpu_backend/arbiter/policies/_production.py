"""How fast production sessions work, measured in ops, and what others use meanwhile."""

from __future__ import annotations

import msgspec

from gpu_backend.arbiter.views import DeviceView
from gpu_backend.gate.terms import SessionClass

__all__ = ["ProductionMeter", "Report"]

#: A report waits for so many ops, for ten times its length at most: one op more or less is then no deviation.
_OPS = 100
_LONGEST = 10


class Report(msgspec.Struct, frozen=True):
    """One length of time."""

    #: Ops that production sessions finished, per second.
    rate: float
    #: Parts of the device's time that production sessions used, and the others.
    used: float
    others_used: float


class ProductionMeter:
    """Counts production's ops, about ``report_seconds`` for each report.

    GPU time is no measure of how fast production works: it falls as the device's clock rises, and grows while others'
    work runs in between.
    """

    def __init__(self, report_seconds: float, now: float) -> None:
        self._seconds = report_seconds
        self._since = now
        self._ops, self._used, self._others_used = 0, 0.0, 0.0

    def read(self, view: DeviceView) -> Report | None:
        """Take in what was charged, and return a report if one is due."""
        for charge in view.charges:
            if charge.terms.kind is SessionClass.PRODUCTION:
                self._ops += charge.ops
                self._used += charge.seconds
            else:
                self._others_used += charge.seconds
        seconds = view.now - self._since
        if seconds < self._seconds or not (seconds >= _LONGEST * self._seconds or self._is_enough(view)):
            return None
        report = Report(self._ops / seconds, self._used / seconds, self._others_used / seconds)
        self._since, self._ops, self._used, self._others_used = view.now, 0, 0.0, 0.0
        return report

    def next_at(self, now: float) -> float:
        """Return when to read again at the latest."""
        due = self._since + self._seconds
        return due if due > now else now + self._seconds / 10

    def _is_enough(self, view: DeviceView) -> bool:
        """Tell whether these are ops enough to speak of a rate: or nothing is being done at all."""
        if self._ops >= _OPS:
            return True
        production = [session for session in view.sessions if session.terms.kind is SessionClass.PRODUCTION]
        return not self._ops and not any(session.queued_ops or session.in_flight_ops for session in production)
