"""Opportunistic sessions run in the guaranteed sessions' idle time, each op delayed by a control value."""

from __future__ import annotations

from math import inf
from typing import ClassVar

from gpu_backend.arbiter.terms import SessionClass
from gpu_backend.arbiter.views import DeviceView, Slice, Suggestion

__all__ = ["AntMan"]

_COORDINATION = 1.0
_TOLERATED_SLOWDOWN = 1.05
_STEP_DOWN = 10.0
_STEP_UP = 2.0


class AntMan:
    """Production sessions are never delayed; all others idle after each op so that they are busy ``perf`` per cent.

    Taken from the paper and its public re-implementation: the control value of 0 to 100 and what it does (total = run
    time x 100 / perf, the difference spread over the ops; 0 suspends); a coordinator that lowers it while guaranteed
    work is disturbed and raises it otherwise.

    Not done here: the original compares mini-batch times; a notebook has none, so disturbance is the time during
    which a production session had ops queued, over the GPU time it got, in the last second: 1 where it runs alone.
    The coordinator's program is not public; its steps (down by 10, up by 2, each second) and its bound of 5 % are
    ours. The fixed cost of 50 us per run is left to the executor's measurement. Several opportunistic sessions share
    the value. Memory is not part of the policy.

    Sources: alibaba/GPU-scheduler-for-deep-learning at 2069b38 (GpuOpManager); Xiao et al., AntMan, OSDI 2020.
    """

    name: ClassVar[str] = "antman"
    opens_idle: ClassVar[bool] = False
    is_work_conserving: ClassVar[bool] = False

    def __init__(self) -> None:
        self._perf = 100.0
        self._coordinate_at = -inf
        self._seen: dict[str, tuple[float, float]] = {}  # waited and used seconds at the last coordination

    def suggest(self, view: DeviceView) -> Suggestion:
        """Return endless slices, those of opportunistic sessions at the control value's duty."""
        guaranteed = [session for session in view.sessions if session.terms.kind is SessionClass.PRODUCTION]
        if not guaranteed:
            self._perf, self._coordinate_at = 100.0, -inf
            self._seen.clear()
            return Suggestion(tuple([Slice(session.id) for session in view.waiting]))
        if view.now >= self._coordinate_at:
            waited = used = 0.0
            for session in guaranteed:
                now_at = session.waited_seconds(view.now), session.used_seconds
                before = self._seen.get(session.id, now_at)
                waited += now_at[0] - before[0]
                used += now_at[1] - before[1]
                self._seen[session.id] = now_at
            self._coordinate(waited, used)
            self._coordinate_at = view.now + _COORDINATION
        for gone in view.left:
            self._seen.pop(gone, None)
        slices = [
            Slice(session.id, duty=1.0 if session.terms.kind is SessionClass.PRODUCTION else self._perf / 100)
            for session in view.sessions  # production's gates stay open while it is idle
            if session.terms.kind is SessionClass.PRODUCTION or (session.queued_ops and self._perf > 0)
        ]
        return Suggestion(tuple(slices), self._coordinate_at)

    def _coordinate(self, waited: float, used: float) -> None:
        is_disturbed = waited > _TOLERATED_SLOWDOWN * used
        self._perf = max(0.0, self._perf - _STEP_DOWN) if is_disturbed else min(100.0, self._perf + _STEP_UP)
