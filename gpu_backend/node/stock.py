"""How many executors to start or to let go. Pure."""

from __future__ import annotations

from collections.abc import Sequence

#: Executors that may be starting on one device at a time: each start costs about a second of a core.
_MOST_STARTING = 4


def to_start(waiting: int, starting: int, warm: int, target: int) -> int:
    """Return how many executors to start on a device now.

    Parameters
    ----------
    waiting
        Sessions that wait for an executor of the device.
    starting
        Executors on their way.
    warm
        Executors ready.
    target
        How many to keep ready beyond those that are waited for.
    """
    missing = waiting + target - starting - warm
    return max(0, min(missing, _MOST_STARTING - starting))


def to_let_go(idle_seconds: Sequence[float], waiting: int, target: int, linger_seconds: float) -> int:
    """Return how many of the ready executors to end: those beyond ``target`` that nobody took for a while."""
    surplus = len(idle_seconds) - target - waiting
    stale = sum(1 for seconds in idle_seconds if seconds > linger_seconds)
    return max(0, min(surplus, stale))


def pause_after(failures: int) -> float:
    """Return how long to wait before the next start on a device, after so many starts failed in a row; seconds."""
    return min(0.5 * 2.0**failures, 30.0) if failures else 0.0
