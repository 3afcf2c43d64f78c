"""Slices for two classes: one without bounds, the others within a common budget."""

from __future__ import annotations

from math import inf

from gpu_backend.arbiter.terms import SessionClass
from gpu_backend.arbiter.views import SessionView, Slice

__all__ = ["budget_slices"]


def budget_slices(
    waiting: tuple[SessionView, ...], unbounded: SessionClass, budget_seconds: float, until: float
) -> tuple[Slice, ...]:
    """Return endless slices for the ``unbounded`` class, and for the rest equal parts of the budget until ``until``."""
    rest = [session for session in waiting if session.terms.kind is not unbounded]
    slices = [Slice(session.id) for session in waiting if session.terms.kind is unbounded]
    if rest and budget_seconds == inf:
        slices += [Slice(session.id) for session in rest]
    elif rest and budget_seconds > 0:
        part = budget_seconds / len(rest)
        slices += [Slice(session.id, until, budget_seconds=part) for session in rest]
    return tuple(slices)
