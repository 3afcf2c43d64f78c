"""Each session's use held at a target by feedback, hard or elastic."""

from __future__ import annotations

from collections import deque
from math import inf
from typing import ClassVar

from gpu_backend.arbiter.views import DeviceView, SessionView, Slice, Suggestion
from gpu_backend.gate.terms import SessionTerms

__all__ = ["GaiaGpu"]

_PERIOD = 0.12
#: Readings that make up one measured utilisation, about a second as NVML's are.
_READINGS = 8
#: The original's step per point of deviation is SMs^2 x threads / 2560 launched blocks, and its counter holds
#: SMs x threads x 32; their ratio is SMs / 81920 of a period for each point, here for 132 SMs.
_STEP_PER_POINT = _PERIOD * 132 / 81920
_LEAST_DEVIATION = 5.0
_GROW_EVERY = 30
_FREE_READINGS = 15
_FREE_POINTS = 5.0


class _Allowance:
    """One session's target and the counter that its ops spend."""

    def __init__(self, core: float, terms: SessionTerms) -> None:
        self.terms = terms
        self.core = self.target = core  # points
        self.share = _STEP_PER_POINT * _LEAST_DEVIATION  # seconds of GPU time for each period
        self.tokens = self.share
        self.readings: deque[float] = deque(maxlen=_READINGS)
        self.used = 0.0  # in this period

    def reset(self, core: float, terms: SessionTerms) -> None:
        self.terms = terms
        self.core = self.target = core
        self.share = _STEP_PER_POINT * _LEAST_DEVIATION

    def refill(self, is_alone: bool, is_hard: bool) -> None:
        self.readings.append(self.used)
        self.used = 0.0
        measured = 100 * sum(self.readings) / (len(self.readings) * _PERIOD)
        deviation = max(abs(self.target - measured), _LEAST_DEVIATION)
        step = _STEP_PER_POINT * deviation
        if deviation > self.target / 2:
            step *= 2 * deviation / (self.target + 1)
        step = step if measured <= self.target else -step
        self.share = min(max(self.share + step, 0.0), _PERIOD)
        is_starting = is_hard and is_alone and measured < self.target / 10
        self.tokens = self.share if is_starting else min(self.tokens + self.share, _PERIOD)


class GaiaGpu:
    """All sessions run side by side, each within a counter that is refilled by how far it is from its target.

    Taken from the paper's code: ops spend from the counter and wait while it is empty; every 120 ms it is refilled by
    a share that moves by a step proportional to the deviation from the target, at least 5 points, and faster beyond
    half the target; a lone session that uses under a tenth of its target starts at once. With a limit above its
    request a session is elastic: alone, its target is the limit; with others, it starts at the request and grows by a
    tenth of it every 30 readings while more than 5 points of the device are free, until somebody arrives. Who asked
    for the whole device is not bounded.

    Not done here: use is measured GPU time over a second instead of NVML's reading; ops are charged that time instead
    of their thread blocks, and the step is scaled to it. A session without a request is given an equal part of what
    the others did not ask for. The device idles where targets leave some of it.

    Sources: tkestack/vcuda-controller at 72e0115, tkestack/gpu-manager at 8cd842e; Gu et al., GaiaGPU, ISPA 2018, doi
    10.1109/BDCloud.2018.00077.
    """

    name: ClassVar[str] = "gaiagpu"
    opens_idle: ClassVar[bool] = False
    is_work_conserving: ClassVar[bool] = False

    def __init__(self) -> None:
        self._allowances: dict[str, _Allowance] = {}
        self._next_period = -inf
        self._free: deque[float] = deque(maxlen=_FREE_READINGS)
        self._readings_since_growth = 0

    def suggest(self, view: DeviceView) -> Suggestion:
        """Return what is left of every waiting session's counter, until the next refill."""
        self._account(view)
        if view.now >= self._next_period:
            self._refill(view.sessions)
            self._next_period = view.now + _PERIOD
        slices = []
        for session in view.waiting:
            if session.terms.request >= 1:
                slices.append(Slice(session.id))
            elif (tokens := self._allowances[session.id].tokens) > 0:
                slices.append(Slice(session.id, self._next_period, budget_seconds=tokens))
        return Suggestion(tuple(slices), self._next_period if view.sessions else inf)

    def _account(self, view: DeviceView) -> None:
        for gone in view.left:
            self._allowances.pop(gone, None)
        for charge in view.charges:
            allowance = self._allowances.get(charge.terms.session)
            if allowance is not None:
                allowance.tokens -= charge.seconds
                allowance.used += charge.seconds
        if any(self._is_new(session) for session in view.sessions):
            self._arrive(view.sessions)

    def _is_new(self, session: SessionView) -> bool:
        known = self._allowances.get(session.id)
        return known is None or known.terms != session.terms

    def _arrive(self, sessions: tuple[SessionView, ...]) -> None:
        """Begin anew with everybody: somebody came, or is entitled to something else."""
        unasked = max(0.0, 1 - sum(session.terms.request for session in sessions))
        part = unasked / max(1, sum(not session.terms.request for session in sessions))
        for session in sessions:
            core = 100 * min(session.terms.request or max(part, 0.01), session.terms.limit)
            if session.id in self._allowances:
                self._allowances[session.id].reset(core, session.terms)
            else:
                self._allowances[session.id] = _Allowance(core, session.terms)
        self._readings_since_growth = 0

    def _refill(self, sessions: tuple[SessionView, ...]) -> None:
        used = 100 * sum(allowance.used for allowance in self._allowances.values()) / _PERIOD
        self._free.append(max(0.0, 100 - used))
        self._readings_since_growth += 1
        may_grow = self._readings_since_growth >= _GROW_EVERY
        if may_grow:
            self._readings_since_growth = 0
        has_room = sum(self._free) / len(self._free) > _FREE_POINTS
        is_alone = len(sessions) == 1
        for session in sessions:
            allowance = self._allowances[session.id]
            limit = 100 * session.terms.limit
            is_hard = session.terms.limit <= session.terms.request
            if is_hard:
                allowance.target = allowance.core
            elif is_alone:
                allowance.target = limit
            elif may_grow and has_room:
                allowance.target = min(limit, allowance.target + allowance.core / 10)
            allowance.refill(is_alone, is_hard)
