"""Gemini's estimate of a session's bursts."""

from __future__ import annotations

from collections import deque

__all__ = ["BurstEstimate"]


class BurstEstimate:
    """The longest burst of the last seconds.

    A burst is a run of ops between two moments at which nothing is queued. Its length is the time that the session
    held the device for it; bursts with less than ``merge_gap_seconds`` between them are one.
    """

    def __init__(self, record_seconds: float = 3.0, merge_gap_seconds: float = 0.002) -> None:
        self._record, self._gap = record_seconds, merge_gap_seconds
        self._bursts: deque[tuple[float, float]] = deque()  # when it ended, its length
        self._used_at_start: float | None = None
        self._ended_at = -1.0

    def observe(self, is_queued: bool, used_seconds: float, now: float) -> None:
        """Note whether ops are queued at ``now``, and the session's GPU time so far."""
        if is_queued and self._used_at_start is None:
            if self._bursts and now - self._ended_at < self._gap:
                _, length = self._bursts.pop()
                self._used_at_start = used_seconds - length
            else:
                self._used_at_start = used_seconds
        elif not is_queued and self._used_at_start is not None:
            self._bursts.append((now, used_seconds - self._used_at_start))
            self._used_at_start, self._ended_at = None, now

    def seconds(self, now: float) -> float:
        """Return the estimate at ``now``; 0 if no burst ended lately."""
        while self._bursts and self._bursts[0][0] < now - self._record:
            self._bursts.popleft()
        return max((length for _, length in self._bursts), default=0.0)
