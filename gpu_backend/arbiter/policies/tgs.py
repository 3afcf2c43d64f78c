"""Production sessions keep their rate; opportunistic ones get what a congestion control finds left."""

from __future__ import annotations

from collections import deque
from enum import Enum
from itertools import pairwise
from math import inf
from typing import ClassVar

from gpu_backend.arbiter.policies._production import ProductionMeter, Report
from gpu_backend.arbiter.policies._share_out import budget_slices
from gpu_backend.arbiter.views import DeviceView, Suggestion
from gpu_backend.gate.terms import SessionClass

__all__ = ["RateControl", "Tgs"]

_REPORT = 0.5
_PERIOD = 0.002
#: The original counts thread blocks: initial limit 20,000 a period of 50 ms, least step 1,000. One is 0.1 us here.
_INITIAL_LIMIT = 0.04
_LEAST_STEP = 0.002
#: The original adds 0.00025 of what production launches in a report of 100 periods to the limit of one period.
_GROWTH = 0.025
_IDLE_PART = 0.002
_TOLERANCE = 0.03
_RESTART_DEVIATION = 0.09
_LONG_DEVIATION = 0.12
_LONG_REPORTS = 20
_PROFILE_REPORTS = 5
#: From the beginning of a profile to that of the next, in reports.
_PROFILE_EVERY = 60
_IDLE_KNOWN_FROM = 15


class _State(Enum):
    SLOW_START = "slow start"
    AVOIDANCE = "congestion avoidance"


class RateControl:
    """The control law: production's rate at each report in, the opportunistic limit out."""

    def __init__(self) -> None:
        #: Part of the device's time that all opportunistic sessions may use; infinity where nothing is limited.
        self.limit = 0.0
        self._kept = _INITIAL_LIMIT  # for after the profile
        self._state = _State.SLOW_START
        self._reference = 0.0
        self._rates: deque[float] = deque(maxlen=5)
        self._parts: deque[float] = deque(maxlen=5)
        self._reports = self._long = 0
        self._profile, self._next_profile = _PROFILE_REPORTS, _PROFILE_EVERY  # reports that it still takes; until it

    def report(self, report: Report) -> None:
        """Take in what production and the others did since the last report."""
        rate = report.rate
        self._rates.append(rate)
        self._parts.append(report.used)
        self._reports += 1
        self._next_profile -= 1
        if self._profile:
            self._profile -= 1
            if not self._profile:
                self._reference, self.limit = _usual(self._rates), self._kept
            return
        if self._reports >= _IDLE_KNOWN_FROM:
            idle = sum(each < _IDLE_PART for each in self._parts)
            if idle > 2:
                self.limit = inf
                return
            if idle == 2 or self.limit == inf:
                self.limit, self._state = _INITIAL_LIMIT, _State.SLOW_START
                return
        self._follow()
        deviation = max(0.0, (self._reference - rate) / self._reference) if self._reference > 0 else 0.0
        self._control(deviation, report.others_used >= 0.8 * self.limit)
        if self._next_profile <= 0:
            self._profile, self._next_profile = _PROFILE_REPORTS, _PROFILE_EVERY
            self.limit, self._kept = 0.0, self.limit

    def _follow(self) -> None:
        """Let the reference follow the job where that differs from it by much: by the highest mean of neighbours."""
        top = max((one + other) / 2 for one, other in pairwise(self._rates))
        if top > 1.1 * self._reference:
            self._reference = 0.975 * top
        elif top < 0.8 * self._reference:
            self._reference = 1.025 * top

    def _control(self, deviation: float, is_used: bool) -> None:
        is_kept = deviation <= _TOLERANCE
        if not is_kept and self._state is _State.SLOW_START:
            self.limit /= 1.5
            self._state = _State.AVOIDANCE
        elif not is_kept:
            self.limit -= max(0.08 * self.limit, _LEAST_STEP)
        elif is_used and self._state is _State.SLOW_START:
            self.limit *= 1.5
        elif is_used:
            self.limit += max(_GROWTH * self._parts[-1], _LEAST_STEP)
        if deviation >= _RESTART_DEVIATION and self._state is _State.AVOIDANCE:
            self.limit /= 10
            self._state = _State.SLOW_START
        self._long = self._long + 1 if deviation >= _LONG_DEVIATION else 0
        if self._long >= _LONG_REPORTS:
            self._reference *= 0.8
            self.limit /= 2
            self._state, self._long = _State.SLOW_START, 0
        self.limit = min(max(self.limit, _LEAST_STEP), 1.0)


def _usual(rates: deque[float]) -> float:
    """Return the mean of those that are near the highest; in the others production was starting or idle."""
    near = [rate for rate in rates if rate >= 0.8 * max(rates)]
    return sum(near) / len(near)


class Tgs:
    """Production sessions are never held back; all others together get a limit that follows production's rate.

    Taken from the paper's code: the limit is zero for five reports, while production's own rate is learned; slow start
    (x 1.5) while that rate holds within 3 %, division by 1.5 at the first violation, then additive increase and 8 %
    decrease; at 9 % the limit falls to a tenth and slow start begins again; at 12 % for 20 reports the reference is
    lowered by 20 %; the reference follows a job that changes, by the highest mean of two neighbours among five
    reports; production that idles lifts the limit. What is launched within a period counts against its limit.

    Not done here: production's rate is counted in ops instead of launched thread blocks, and the limit is a part of the
    GPU's time (a block counts as 0.1 us where the original has a number of them); GPU time is no measure of the rate,
    for it falls as the device's clock rises, and grows while others' work runs in between. The deviation is one-sided,
    so production that speeds up slows nobody. Reports come every 0.5 s instead of 5, for interactive work, and scatter
    by a few per cent: the highest of many would be a reference that production never keeps, so it is the mean of a
    profile, and a new one is taken every 30 s. Periods are 2 ms instead of 50: what is launched in one go delays
    production's next kernel by as much. A limit that is not used is not raised. Several production sessions count as
    one; nothing is said about memory. Without a production session nothing is limited.

    Sources: pkusys/TGS at e1c6a31 (hijack/src, config); Wu et al., Transparent GPU Sharing, NSDI 2023.
    """

    name: ClassVar[str] = "tgs"
    opens_idle: ClassVar[bool] = False
    is_work_conserving: ClassVar[bool] = False

    def __init__(self) -> None:
        self._control = RateControl()
        self._meter: ProductionMeter | None = None
        self._left = self._filled_at = self._fill_at = 0.0  # of the limit; when it was added to, and will be

    def suggest(self, view: DeviceView) -> Suggestion:
        """Return endless slices for production, and for the others what is left of this period's limit."""
        if not any(session.terms.kind is SessionClass.PRODUCTION for session in view.sessions):
            self._meter = None
            return Suggestion(budget_slices(view.sessions, SessionClass.PRODUCTION, inf, inf))
        if self._meter is None:
            self._control, self._meter = RateControl(), ProductionMeter(_REPORT, view.now)
            self._left, self._filled_at, self._fill_at = 0.0, view.now, view.now
        elif (report := self._meter.read(view)) is not None:
            self._control.report(report)
        self._left -= sum(
            [charge.seconds for charge in view.charges if charge.terms.kind is not SessionClass.PRODUCTION]
        )
        return self._share_out(view, self._control.limit, self._meter.next_at(view.now))

    def _share_out(self, view: DeviceView, limit: float, report_at: float) -> Suggestion:
        """Let the others spend what they have of this period's limit."""
        now = view.now
        if limit == inf:
            self._left, self._filled_at = 0.0, now
        elif limit and now >= self._fill_at:
            # What ran over the limit before is taken off what comes in.
            self._left = min(limit * _PERIOD, self._left + limit * (now - self._filled_at))
            self._filled_at, self._fill_at = now, now + max(_PERIOD, -self._left / limit)
        left = limit if limit in (0.0, inf) else self._left
        slices = budget_slices(view.sessions, SessionClass.PRODUCTION, left, self._fill_at)
        is_limiting = 0 < limit < inf and len(view.waiting) > 0
        return Suggestion(slices, min(report_at, self._fill_at) if is_limiting else report_at)
