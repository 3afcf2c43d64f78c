"""How long an executor may go on: while the pool wants it, its notebook is heard, and its session's owner runs."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from time import monotonic

from gpu_backend.wire.control import EndCause

__all__ = ["Leases"]


class Leases:
    """Times of one clock, seconds.

    Parameters
    ----------
    orphan_seconds
        How long to live without a word of the pool, at first.
    """

    def __init__(self, orphan_seconds: float, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._wanted_until = clock() + orphan_seconds
        self._heard = clock()
        self._notebook_seconds = inf

    @property
    def idle_seconds(self) -> float:
        """How long the notebook has not been heard."""
        return self._clock() - self._heard

    def renew(self, seconds: float) -> None:
        """Note that the pool wants this executor for so long."""
        self._wanted_until = self._clock() + seconds

    def note_heard(self) -> None:
        """Note that the notebook was heard."""
        self._heard = self._clock()

    def assign(self, notebook_seconds: float) -> None:
        """Note that there is a session now, which ends after so long without a word of its notebook."""
        self._notebook_seconds = notebook_seconds
        self.note_heard()

    def lapse(self, has_owner_ended: bool) -> tuple[str, EndCause] | None:
        """Return why the session ends, and of what kind that is; None while it goes on."""
        if self._clock() > self._wanted_until:
            return "Nobody in the pool answers for this executor any more.", EndCause.ORPHANED
        if self.idle_seconds > self._notebook_seconds:
            return f"The notebook was not heard for {self._notebook_seconds:.0f} s.", EndCause.LEASE_LAPSED
        if has_owner_ended:
            return "The process that held the session has ended.", EndCause.CLIENT_ENDED
        return None
