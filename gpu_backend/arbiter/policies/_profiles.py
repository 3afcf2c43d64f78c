"""By what sessions are bound, and so which of them may run at the same time without wanting the same of the device."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto

from gpu_backend.arbiter.views import SessionView

__all__ = ["Bound", "bound_of", "complement"]

#: From this part of a session's time on it is bound by the one and not by the other.
_MOSTLY = 0.6


class Bound(Enum):
    """What a session's ops mostly wait for."""

    ARITHMETIC = auto()
    MEMORY = auto()
    #: Nothing is known of it, or neither has the most part.
    UNKNOWN = auto()


def bound_of(session: SessionView) -> Bound:
    """Return by what the session's ops were bound lately."""
    if session.compute_part >= _MOSTLY:
        return Bound.ARITHMETIC
    return Bound.MEMORY if session.memory_part >= _MOSTLY else Bound.UNKNOWN


def complement(session: SessionView, others: Iterable[SessionView]) -> bool:
    """Return whether ``session`` wants something else of the device than each of the ``others``, or may do so."""
    own = bound_of(session)
    return own is Bound.UNKNOWN or all(bound_of(other) is not own for other in others)
