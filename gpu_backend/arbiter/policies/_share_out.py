"""Slices for two classes: one without bounds, the others within a common budget."""

from __future__ import annotations

from math import inf

from gpu_backend.arbiter.views import SessionView, Slice
from gpu_backend.gate.terms import SessionClass

__all__ = ["budget_slices"]


def budget_slices(
    sessions: tuple[SessionView, ...], unbounded: SessionClass, budget_seconds: float, until: float
) -> tuple[Slice, ...]:
    """Return endless slices for the ``unbounded`` class, and for the rest equal parts of the budget until ``until``.

    The unbounded ones have theirs while they are idle too: they need not ask when they come back.
    """
    rest = [session for session in sessions if session.terms.kind is not unbounded and session.queued_ops]
    slices = [Slice(session.id) for session in sessions if session.terms.kind is unbounded]
    if rest and budget_seconds == inf:
        slices += [Slice(session.id) for session in rest]
    elif rest and budget_seconds > 0:
        part = budget_seconds / len(rest)
        slices += [Slice(session.id, until, budget_seconds=part) for session in rest]
    return tuple(slices)
