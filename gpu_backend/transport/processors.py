"""Whether this host has a processor to spare for a process that only waits.

Nobody keeps a count of those who spin: it would be one more thing that tenants share and could spoil. The system counts
what runs, spinning or not; while that is at most half of the processors, one more may spin.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from time import monotonic

__all__ = ["Spare", "has_spare", "threads_beside"]

#: With fewer processors than this nobody spins for long.
_LEAST_PROCESSORS = 4
#: How long an answer holds, seconds: to ask takes some 20 µs.
_HOLDS_SECONDS = 0.05
#: How long it holds how many processors there are: to ask that takes 100 µs more where there are many.
_COUNT_HOLDS_SECONDS = 5.0
_LOAD = Path("/proc/loadavg")
_MOST_BYTES = 128  #: of that file
#: What a container may use of the processors that it sees: microseconds in each so many, or "max".
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


class Spare:
    """Asks the system, now and then. ``load`` and ``quota`` are its files."""

    def __init__(self, load: Path = _LOAD, quota: Path = _QUOTA) -> None:
        self._load, self._quota = load, quota
        self._opened: int | None = None  # the load: to open it takes several times as long as to read it
        self._asks_at = self._counts_at = 0.0
        self._has = False
        self._processors = 0.0

    def has(self) -> bool:
        """Tell whether at most half of the processors that this process may use are busy, and they are four or more."""
        now = monotonic()
        if now >= self._asks_at:
            if now >= self._counts_at:
                self._processors, self._counts_at = self._count, now + _COUNT_HOLDS_SECONDS
            self._has = self._look(self._processors)
            self._asks_at = now + _HOLDS_SECONDS
        return self._has

    def _look(self, processors: float) -> bool:
        return processors >= _LEAST_PROCESSORS and self._running() <= processors / 2

    def _running(self) -> float:
        try:
            if self._opened is None:
                self._opened = os.open(self._load, os.O_RDONLY)  # for as long as the process lives
            return int(os.pread(self._opened, _MOST_BYTES, 0).split()[3].partition(b"/")[0])
        except (OSError, ValueError, IndexError):
            return float("inf")

    def _allowed(self) -> float:
        try:
            quota, _, period = self._quota.read_text().partition(" ")
            return int(quota) / int(period)
        except (OSError, ValueError):  # no container, or one without a bound
            return float("inf")

    @property
    def _count(self) -> float:
        return min(len(os.sched_getaffinity(0)), self._allowed())

    def threads_beside(self, most: int) -> int:
        """Return how many threads may work beside this process's own, ``most`` at most: half as many as processors.

        On a machine with fewer than four there are none.
        """
        processors = int(min(self._count, 2 * most))
        return processors // 2 if processors >= _LEAST_PROCESSORS else 0


@cache
def _spare() -> Spare:
    return Spare()


def has_spare() -> bool:
    """Tell whether a processor is to spare here; see `Spare.has`."""
    return _spare().has()


def threads_beside(most: int) -> int:
    """Return how many threads may work beside this process's own here; see `Spare.threads_beside`."""
    return _spare().threads_beside(most)
