"""Best-effort work is withdrawn the moment priority work arrives."""

from __future__ import annotations

from math import inf
from typing import ClassVar

from gpu_backend.arbiter.views import DeviceView, SessionView, Slice, Suggestion
from gpu_backend.gate.terms import SessionClass

__all__ = ["Reef"]

_BEST_EFFORT_IN_FLIGHT = 2
_TURN = 0.02


class Reef:
    """Two levels: sessions of the class best-effort run only while no other session waits.

    Taken from the paper (its REEF-N variant, for GPUs whose driver cannot be changed): priority work is served first
    come, first served; when it arrives, best-effort work that is not launched yet stays in its host queue; at most two
    best-effort ops are in flight on the device, so priority work waits for two ops at most; best-effort sessions take
    turns.

    Not done here: a running kernel is never killed, for no documented call on NVIDIA GPUs does that, which also means
    that no op need be idempotent; ops on the device are not voided, as REEF-N does by a flag in each kernel; kernels
    of two sessions are never merged, so there is no padding; best-effort turns are 20 ms rather than one op. Priority
    sessions do not share by time among each other: an endless one holds the others back until the core relieves them.

    Sources: SJTU-IPADS/reef at 58dabe0 (scheduler.cpp); Han et al., REEF, OSDI 2022.
    """

    name: ClassVar[str] = "reef"
    opens_idle: ClassVar[bool] = False
    is_work_conserving: ClassVar[bool] = True

    def __init__(self) -> None:
        self._served: dict[str, int] = {}
        self._turns = 0
        self._holder = ""
        self._ends = -inf

    def suggest(self, view: DeviceView) -> Suggestion:
        """Return an endless slice for the first priority session, else a turn of a best-effort one."""
        for gone in view.left:
            self._served.pop(gone, None)
        for session in view.waiting:
            if session.terms.kind is not SessionClass.BEST_EFFORT:
                self._holder = ""
                return Suggestion((Slice(session.id),))
        if not view.waiting:
            self._holder = ""
            return Suggestion()
        keeps = view.now < self._ends and any(session.id == self._holder for session in view.waiting)
        if not keeps:
            self._begin_turn(view.waiting, view.now)
        return Suggestion((Slice(self._holder, self._ends, window_ops=_BEST_EFFORT_IN_FLIGHT),))

    def _begin_turn(self, waiting: tuple[SessionView, ...], now: float) -> None:
        self._holder = min(waiting, key=lambda session: self._served.get(session.id, 0)).id
        self._turns += 1
        self._served[self._holder] = self._turns
        self._ends = now + _TURN
