"""Production sessions keep their rate; opportunistic ones get what a congestion control finds left."""

from __future__ import annotations

from collections import deque
from enum import Enum
from math import inf
from typing import ClassVar

from gpu_backend.arbiter.policies._share_out import budget_slices
from gpu_backend.arbiter.terms import SessionClass
from gpu_backend.arbiter.views import DeviceView, Suggestion

__all__ = ["RateControl", "Tgs"]

_REPORT = 0.5
_PERIOD = 0.05
#: The original counts thread blocks: initial limit 20,000, least step 1,000, idle below 1,000. One is 0.1 us here.
_BLOCK_SECONDS = 1e-7
_INITIAL_LIMIT = 20_000 * _BLOCK_SECONDS
_LEAST_STEP = 1_000 * _BLOCK_SECONDS
_IDLE_RATE = 0.002
_TOLERANCE = 0.03
_RESTART_DEVIATION = 0.09
_LONG_DEVIATION = 0.12
_LONG_REPORTS = 20
_PROFILE_REPORTS = 5
_IDLE_KNOWN_FROM = 15


class _State(Enum):
    PROFILE = "profile"
    SLOW_START = "slow start"
    AVOIDANCE = "congestion avoidance"


class RateControl:
    """The control law: the production rate at each report in, the opportunistic limit for each period out."""

    def __init__(self) -> None:
        #: GPU time that all opportunistic sessions may use in 50 ms, seconds; infinity where nothing is limited.
        self.limit = 0.0
        self._state = _State.PROFILE
        self._reference = 0.0
        self._rates: deque[float] = deque(maxlen=5)
        self._reports = self._long = 0

    def report(self, rate: float) -> None:
        """Take in the part of the last report period that production sessions used."""
        self._rates.append(rate)
        self._reports += 1
        if self._state is _State.PROFILE:
            if self._reports >= _PROFILE_REPORTS:
                self._reference = max(self._rates)
                self._restart()
            return
        if self._reports >= _IDLE_KNOWN_FROM:
            idle = sum(each < _IDLE_RATE for each in self._rates)
            if idle > 2:
                self.limit = inf
                return
            if idle == 2 or self.limit == inf:
                self._restart()
                return
        self._follow()
        self._control(max(0.0, (self._reference - rate) / self._reference) if self._reference > 0 else 0.0)

    def _restart(self) -> None:
        self.limit, self._state = _INITIAL_LIMIT, _State.SLOW_START

    def _follow(self) -> None:
        """Let the reference follow the job: up within 10 %, anew where it differs by more than 20 %."""
        top = max(self._rates)
        if self._reference < top <= 1.1 * self._reference:
            self._reference = top
        elif top > 1.2 * self._reference:
            self._reference = 0.975 * top
        elif top < 0.8 * self._reference:
            self._reference = 1.025 * top

    def _control(self, deviation: float) -> None:
        if self._state is _State.SLOW_START:
            if deviation <= _TOLERANCE:
                self.limit = 1.5 * self.limit + _BLOCK_SECONDS
            else:
                self.limit /= 1.5
                self._state = _State.AVOIDANCE
        else:
            if deviation <= _TOLERANCE:
                self.limit += max(0.00025 * self._reference * _PERIOD, _LEAST_STEP)
            else:
                self.limit -= max(0.08 * self.limit, _LEAST_STEP)
            if deviation >= _RESTART_DEVIATION:
                self.limit /= 10
                self._state = _State.SLOW_START
        self._long = self._long + 1 if deviation >= _LONG_DEVIATION else 0
        if self._long >= _LONG_REPORTS:
            self._reference *= 0.8
            self.limit /= 2
            self._state, self._long = _State.SLOW_START, 0
        self.limit = min(max(self.limit, _LEAST_STEP), _PERIOD)


class Tgs:
    """Production sessions are never held back; all others together get a limit that follows production's rate.

    Taken from the paper's code: the limit is zero for five reports, while production's own rate is learned; slow start
    (x 1.5 + 1) while that rate holds within 3 %, division by 1.5 at the first violation, then additive increase and
    8 % decrease; at 9 % the limit falls to a tenth and slow start begins again; at 12 % for 20 reports the reference is
    lowered by 20 %; the reference follows the job's rate; production that idles lifts the limit. The limit holds for
    periods of 50 ms.

    Not done here: rate and limit are GPU time instead of launched thread blocks (a block counts as 0.1 us where the
    original has a number of them); the deviation is one-sided, so production that speeds up slows nobody; reports come
    every 0.5 s instead of 5, for interactive work; several production sessions count as one; nothing is said about
    memory. Without a production session nothing is limited.

    Sources: pkusys/TGS at e1c6a31 (hijack/src, config); Wu et al., Transparent GPU Sharing, NSDI 2023.
    """

    name: ClassVar[str] = "tgs"
    opens_idle: ClassVar[bool] = False
    is_work_conserving: ClassVar[bool] = False

    def __init__(self) -> None:
        self._control: RateControl | None = None
        self._used = 0.0
        self._report_at = self._period_end = inf
        self._spent = 0.0

    def suggest(self, view: DeviceView) -> Suggestion:
        """Return endless slices for production, and for the others what is left of this period's limit."""
        now = view.now
        if not any(session.terms.kind is SessionClass.PRODUCTION for session in view.sessions):
            self._control = None
        elif self._control is None:
            self._control, self._used = RateControl(), 0.0
            self._report_at, self._period_end, self._spent = now + _REPORT, now + _PERIOD, 0.0
        if self._control is None:
            return Suggestion(budget_slices(view.sessions, SessionClass.PRODUCTION, inf, inf))
        for charge in view.charges:
            if charge.terms.kind is SessionClass.PRODUCTION:
                self._used += charge.seconds
            else:
                self._spent += charge.seconds
        if now >= self._report_at:
            self._control.report(self._used / (now - self._report_at + _REPORT))
            self._used, self._report_at = 0.0, now + _REPORT
        if now >= self._period_end:
            # What ran over the last period's limit is taken off this one's.
            self._spent = max(0.0, self._spent - self._control.limit)
            self._period_end = now + _PERIOD
        left = self._control.limit - self._spent
        slices = budget_slices(view.sessions, SessionClass.PRODUCTION, left, self._period_end)
        is_limiting = self._control.limit < inf and len(view.waiting) > 0
        return Suggestion(slices, min(self._report_at, self._period_end) if is_limiting else self._report_at)
