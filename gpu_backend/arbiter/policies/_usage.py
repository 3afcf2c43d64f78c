"""How policies remember use: decaying, with bounded credit, and over a sliding window."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

__all__ = ["DecayedUsage", "SlidingUsage"]

#: Long before 2 to the power of it is beyond a float.
_MOST_HALF_LIVES = 200


class DecayedUsage:
    """GPU time by key, divided by the key's weight, halving every ``half_life_seconds``.

    Comparing two keys tells who is further below their share. Who was away is not paid back what they did not ask
    for: :meth:`admit` bounds their lead.
    """

    def __init__(self, half_life_seconds: float) -> None:
        self._half_life = half_life_seconds
        # What is used later is written down as more, instead of everything before as less: by 2 for each half-life.
        self._used: dict[str, float] = {}
        self._origin = 0.0
        self._scaled_at, self._scale = 0.0, 1.0
        self._level = 0.0  # of the least of those who were active last

    def charge(self, key: str, seconds: float, weight: float, now: float) -> None:
        """Add ``seconds`` of GPU time, used until ``now`` under ``weight``."""
        scale = self._scale if now == self._scaled_at else self._scale_at(now)
        self._used[key] = self._used.get(key, 0.0) + seconds / weight * scale

    def of(self, key: str, now: float) -> float:
        """Return the decayed use of ``key`` per unit of weight, seconds; 0 for keys never seen."""
        scale = self._scale_at(now)
        return self._used.get(key, 0.0) / scale

    def lead(self, key: str, other: str, now: float) -> float:
        """Return how much more ``key`` has used than ``other``."""
        scale = self._scale if now == self._scaled_at else self._scale_at(now)
        return (self._used.get(key, 0.0) - self._used.get(other, 0.0)) / scale

    @property
    def ranks(self) -> Mapping[str, float]:
        """Numbers by which keys compare as their uses do at any one moment; of those admitted or charged."""
        return self._used

    def _scale_at(self, now: float) -> float:
        if now != self._scaled_at:
            if now - self._origin > _MOST_HALF_LIVES * self._half_life:
                factor = 2.0 ** ((self._origin - now) / self._half_life)
                self._used = {key: used * factor for key, used in self._used.items()}
                self._level *= factor
                self._origin = now
            self._scaled_at, self._scale = now, 2.0 ** ((now - self._origin) / self._half_life)
        return self._scale

    def admit(self, keys: Iterable[str], active: Iterable[str], credit_seconds: float, now: float) -> None:
        """Begin to count ``keys`` among the ``active``: at most ``credit_seconds`` behind the least of those.

        Where nobody is active, behind the least of those who were last: else whoever had the device alone for an hour
        would owe that hour to the first one who comes.
        """
        scale = self._scale_at(now)
        # Where nobody is active the last level holds, decayed as everything else.
        level = self._level = min((self._used.get(key, 0.0) for key in active), default=self._level)
        for key in keys:
            self._used[key] = max(self._used.get(key, 0.0), level - credit_seconds * scale)

    def forget(self, key: str) -> None:
        """Drop what is known of ``key``."""
        self._used.pop(key, None)

    def __len__(self) -> int:
        return len(self._used)


class SlidingUsage:
    """Intervals of holding the device, by key, within the last ``window_seconds``."""

    def __init__(self, window_seconds: float) -> None:
        self.window_seconds = window_seconds
        self._held: dict[str, deque[tuple[float, float]]] = {}

    def add(self, key: str, start: float, end: float) -> None:
        """Note that ``key`` held the device from ``start`` to ``end``."""
        if end > start:
            self._held.setdefault(key, deque()).append((start, end))

    def of(self, key: str, now: float) -> float:
        """Return for how many seconds of the window before ``now`` the key held the device."""
        held = self._held.get(key)
        begin = now - self.window_seconds
        while held and held[0][1] <= begin:
            held.popleft()
        if not held:
            self._held.pop(key, None)
            return 0.0
        return sum(end - max(start, begin) for start, end in held)

    def next_exit(self, now: float) -> float:
        """Return when the oldest interval in the window begins to leave it; ``now`` if it is leaving already."""
        starts = [held[0][0] for held in self._held.values() if held]
        return max(now, min(starts, default=now) + self.window_seconds)

    def forget(self, key: str) -> None:
        """Drop what is known of ``key``."""
        self._held.pop(key, None)

    def __len__(self) -> int:
        return len(self._held)
