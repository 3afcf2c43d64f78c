"""Opportunistic sessions run in the guaranteed sessions' idle time, each op delayed by a control value."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import ClassVar

from gpu_backend.arbiter.policies._production import ProductionMeter
from gpu_backend.arbiter.views import DeviceView, Slice, Suggestion
from gpu_backend.gate.terms import SessionClass

__all__ = ["AntMan"]

_COORDINATION = 1.0
#: The control value swings about this bound, so it is closer than the 5 % that production may lose.
_TOLERATED_SLOWDOWN = 1.03
_STEP_DOWN, _FACTOR_DOWN = 10.0, 0.7  # whichever takes it lower
_STEP_UP = 1.0
#: Seconds for which nothing else runs when production comes, so that its own rate is known; and those remembered.
_ALONE = 2
_REMEMBERED = 60


class AntMan:
    """Production sessions are never delayed; all others idle after each op so that they are busy ``perf`` per cent.

    Taken from the paper and its public re-implementation: the control value of 0 to 100 and what it does (total = run
    time x 100 / perf, the difference spread over the ops; 0 suspends); a coordinator that lowers it while guaranteed
    work is disturbed and raises it otherwise.

    Not done here: the original compares mini-batch times; a notebook has none, so disturbance is that production
    finishes fewer ops in a second than in the best two neighbouring ones of the last minute, by more than 3 %; seconds
    in which it idles count as undisturbed, and when it comes nothing else runs for two seconds.
    The coordinator's program is not public; its steps (down by 10 or 30 %, up by 1, each second), its bound and its
    memory are ours. The fixed cost of 50 us per run is left to the executor's measurement. Several opportunistic
    sessions share the value. Memory is not part of the policy.

    Sources: alibaba/GPU-scheduler-for-deep-learning at 2069b38 (GpuOpManager); Xiao et al., AntMan, OSDI 2020.
    """

    name: ClassVar[str] = "antman"
    opens_idle: ClassVar[bool] = False
    is_work_conserving: ClassVar[bool] = False

    def __init__(self) -> None:
        self._perf = 0.0
        self._meter: ProductionMeter | None = None
        self._rates: deque[float] = deque(maxlen=_REMEMBERED)

    def suggest(self, view: DeviceView) -> Suggestion:
        """Return endless slices, those of opportunistic sessions at the control value's duty."""
        if not any(session.terms.kind is SessionClass.PRODUCTION for session in view.sessions):
            self._meter = None
            return Suggestion(tuple([Slice(session.id) for session in view.waiting]))
        if self._meter is None:
            self._perf, self._meter = 0.0, ProductionMeter(_COORDINATION, view.now)
            self._rates.clear()
        elif (report := self._meter.read(view)) is not None:
            self._coordinate(report.rate)
        slices = [
            Slice(session.id, duty=1.0 if session.terms.kind is SessionClass.PRODUCTION else self._perf / 100)
            for session in view.sessions  # production's gates stay open while it is idle
            if session.terms.kind is SessionClass.PRODUCTION or (session.queued_ops and self._perf > 0)
        ]
        return Suggestion(tuple(slices), self._meter.next_at(view.now))

    def _coordinate(self, rate: float) -> None:
        self._rates.append(rate)
        usual = max([(one + other) / 2 for one, other in pairwise(self._rates)], default=0.0)
        if len(self._rates) == _ALONE:
            self._perf = 100.0
        elif len(self._rates) > _ALONE and 0 < rate * _TOLERATED_SLOWDOWN < usual:
            self._perf = max(0.0, min(self._perf - _STEP_DOWN, self._perf * _FACTOR_DOWN))
        elif len(self._rates) > _ALONE:
            self._perf = min(100.0, self._perf + _STEP_UP)
