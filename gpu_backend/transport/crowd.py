"""Who of those who wait unproved at a door has to go for somebody new: nobody keeps another out by filling it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

__all__ = ["in_the_way"]


def in_the_way(waiting: Sequence[str], newcomer: str, most: int, most_of_one: int) -> int | None:
    """Return which of those who wait has to go; None while there is room.

    Parameters
    ----------
    waiting
        Of each one who waits, the eldest first, their account or host.
    newcomer
        That of who has just come.
    most, most_of_one
        How many may wait in all, and how many of one account or host.
    """
    counts = Counter(waiting)
    if counts[newcomer] >= most_of_one:
        return waiting.index(newcomer)
    return waiting.index(counts.most_common(1)[0][0]) if len(waiting) >= most else None
