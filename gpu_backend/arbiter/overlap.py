"""What part of the measured time of ops that ran side by side was the device's own."""

from __future__ import annotations

from collections import deque

__all__ = ["LONG_SECONDS", "Overlap"]

#: Ops shorter than this, seconds, are over before it matters who else runs.
LONG_SECONDS = 0.005
#: Changes that are remembered: far more than there are in the time of one op.
_MOST_CHANGES = 512
#: What is longer ago than this, seconds, is forgotten when nothing long is under way.
_MEMORY_SECONDS = 60.0


class Overlap:
    """How many sessions had a long op under way, and when.

    Where several have one, the driver gives them equal turns, and the time between an op's two events is the time of
    all. Charged as it is measured, a second of the device would be counted once for each of them.
    """

    def __init__(self) -> None:
        self._changes: deque[tuple[float, int]] = deque([(float("-inf"), 0)], maxlen=_MOST_CHANGES)

    def note(self, count: int, now: float) -> None:
        """From ``now`` on ``count`` sessions have a long op under way."""
        changes = self._changes
        if count != changes[-1][1]:
            changes.append((now, count))
        elif not count and len(changes) > 1 and now - changes[-1][0] > _MEMORY_SECONDS:
            changes.clear()
            changes.append((now, 0))

    @property
    def is_clear(self) -> bool:
        """Whether nothing long was under way in all the time that is remembered."""
        return len(self._changes) == 1 and not self._changes[0][1]

    def own(self, seconds: float, is_long: bool, now: float) -> float:
        """Return the device's part of ``seconds`` that were measured up to ``now``.

        ``is_long`` says that who was measured is one of those with a long op; else they are one more beside those.
        """
        more = 0 if is_long else 1
        if self._changes[-1][1] + more <= 1 and self._changes[-1][0] <= now - seconds:
            return seconds
        begin, end, own = now - seconds, now, 0.0
        for at, count in reversed(self._changes):
            start = max(at, begin)
            if start < end:
                own += (end - start) / max(1, count + more)
                end = start
            if at <= begin:
                break
        return own
