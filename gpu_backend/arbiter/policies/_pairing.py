"""Whether what runs beside priority work costs it more of its speed than it may."""

from __future__ import annotations

from math import inf

__all__ = ["Pairing"]

#: Fewer ops than this say nothing of a rate.
_FEWEST_OPS = 4


class Pairing:
    """Compares the ops that priority work finishes in a second of being busy, with other work beside it and without.

    Others are let beside it once its rate alone is known. Where it then falls below the part that is to be kept they
    are withdrawn, and tried again after a while; and while all is well its rate alone is looked at again now and then.

    Parameters
    ----------
    kept
        Part of its rate alone that priority work is to keep.
    look_seconds
        Busy time of priority work after which its rate is judged.
    retry_seconds
        After which others who were withdrawn are tried again, and the rate alone is taken anew.
    """

    def __init__(self, kept: float = 0.9, look_seconds: float = 0.1, retry_seconds: float = 5.0) -> None:
        self._kept, self._look, self._retry = kept, look_seconds, retry_seconds
        self._alone = 0.0  # ops in a second; 0 while it is not known
        self._seconds = {True: 0.0, False: 0.0}  # of the present look, beside others and alone
        self._ops = {True: 0, False: 0}
        self._may = False
        self._changes_at = inf  # when that changes by itself; infinity while it takes a look at the rate alone

    def may_pair(self, now: float) -> bool:
        """Return whether others may run beside priority work at ``now``."""
        if now >= self._changes_at:
            self._may = not self._may
            self._changes_at = now + self._retry if self._may else inf
        return self._may

    def next_change(self, now: float) -> float:
        """Return when to ask again at the latest."""
        return min(self._changes_at, now + self._look)

    def note(self, seconds: float, ops: int, is_beside: bool, now: float) -> None:
        """Count what priority work finished in ``seconds`` up to ``now``, in all of which it was busy."""
        self._seconds[is_beside] += seconds
        self._ops[is_beside] += ops
        if self._seconds[is_beside] < self._look or self._ops[is_beside] < _FEWEST_OPS:
            return
        rate = self._ops[is_beside] / self._seconds[is_beside]
        self._seconds[is_beside], self._ops[is_beside] = 0.0, 0
        if not is_beside:
            self._alone = (self._alone + rate) / 2 if self._alone else rate
            if not self._may and self._changes_at == inf:
                self._may, self._changes_at = True, now + self._retry
        elif rate < self._kept * self._alone:
            self._may, self._changes_at = False, now + self._retry
