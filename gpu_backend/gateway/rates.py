"""How busy sessions keep their devices, from counters that only grow. Pure: time is passed in."""

from __future__ import annotations

from collections import deque

#: Over how long use is averaged, seconds; reports come once a second.
_WINDOW_SECONDS = 5.0
#: A session that was not heard for so long uses nothing, seconds.
_SILENT_SECONDS = 10.0


class Rates:
    """GPU seconds per second of each session, over the last seconds."""

    def __init__(self) -> None:
        self._readings: dict[tuple[str, int], deque[tuple[float, float]]] = {}

    def note(self, session: str, epoch: int, gpu_seconds: float, now: float) -> None:
        """Take in that the executor of ``session`` and ``epoch`` has used ``gpu_seconds`` in all."""
        readings = self._readings.setdefault((session, epoch), deque())
        readings.append((now, gpu_seconds))
        while len(readings) > 2 and readings[1][0] <= now - _WINDOW_SECONDS:
            readings.popleft()

    def busy(self, session: str, epoch: int, now: float, devices: int = 1) -> float:
        """Return the part of the time of its ``devices`` that the session had, 0 to 1; 0 while too little is known.

        A long op is counted when it is done, with all the time before it, and reports come sooner or later than they
        were made: more than all of the time is all of it.
        """
        readings = self._readings.get((session, epoch))
        if not readings or readings[-1][0] < now - _SILENT_SECONDS:
            return 0.0
        (since, before), (until, after) = readings[0], readings[-1]
        return min(1.0, max(0.0, (after - before) / (until - since) / devices)) if until > since else 0.0

    def forget(self, now: float) -> None:
        """Drop what was not heard for a while."""
        silent = [key for key, readings in self._readings.items() if readings[-1][0] < now - _SILENT_SECONDS]
        for key in silent:
            del self._readings[key]
