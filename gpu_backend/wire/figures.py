"""Figures that others tell of themselves: within what any machine has, so that sums of many fit into 64 bits."""

from __future__ import annotations

__all__ = ["MOST", "can_be", "fit_count", "fit_figure", "fit_seconds"]

#: More than any machine has of anything that is counted, in bytes, operations or seconds.
MOST = 1 << 50


def can_be(figure: float) -> bool:
    """Tell whether ``figure`` can be: what is not a number is not in between either."""
    return 0 <= figure <= MOST


def fit_count(figure: int) -> int:
    """Return ``figure``, or the nearest one that can be."""
    return min(max(0, figure), MOST)


def fit_figure(figure: float) -> float:
    """Return ``figure``, which may be below zero, or the nearest one that can be; 0 for what is not a number."""
    if -MOST <= figure <= MOST:
        return figure
    return 0 if figure != figure else MOST if figure > 0 else -MOST


def fit_seconds(figure: float) -> float:
    """Return ``figure``, or the nearest one that can be; 0 for what is not a number."""
    return min(max(0.0, figure), float(MOST))
