"""Who uses a device, seen from outside: by the system's own accounts and not by what processes say of themselves."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from time import clock_gettime, monotonic, thread_time
from typing import Protocol

from gpu_backend.metering.nvml import Nvml, NvmlMeter

__all__ = ["Meter", "NoMeter", "Processes", "ProcessorMeter", "meter_of"]

log = logging.getLogger("metering")

_TICKS = os.sysconf("SC_CLK_TCK")
#: Fields 6, 14 and 15 of /proc/PID/stat, counted from behind the command's name: who leads its session, and its
#: processor time as user and in the system.
_LEADER, _USER, _SYSTEM = 3, 11, 12
#: In the number of a clock, beside that of a process: what the scheduler has given it, and all its threads.
_CLOCK_OF_PROCESS, _CLOCK_BITS = 2, 3
#: What part of an executor's processor time must be its ops, on the CPU device: the rest goes into messages, and into
#: looking for the next without sleeping. A loop that waits for each of its results has one part in seven (measured).
_OPS_PART = 0.1
#: How often to look for what executors have started, seconds, and how much longer than the processor time that takes.
_SEARCH_SECONDS, _SEARCH_PART = 0.08, 100
#: So many of what an executor has started are followed; compilers start a handful.
_MOST_FOLLOWED = 256


class Meter(Protocol):
    """Sees for how long the device has worked for a process."""

    #: Why this one sees nothing; empty if it does.
    problem: str
    #: What is seen may be so old, seconds.
    lag: float
    #: What part of what is seen must be ops.
    part: float
    #: Whether what is seen may be a neighbour's, where the process used the device at all within `lag`.
    is_rough: bool
    #: What may be seen of a process behind its shut gate before it counts as computing, seconds.
    most_burnt: float

    def seen(self, pid: int) -> float | None:
        """Return for how long the device has worked for the process, seconds since some time; None if unknown."""

    def as_of(self, now_ns: int) -> int:
        """Return from when the newest is that is seen, of the host's monotonic clock; at ``now_ns`` at the latest."""

    def close(self) -> None:
        """See no more."""


class NoMeter:
    """Sees nothing."""

    lag, part, is_rough, most_burnt = 0.0, 0.0, False, 0.0

    def __init__(self, problem: str) -> None:
        self.problem = problem

    def seen(self, pid: int) -> float | None:
        """Return None."""
        return None

    def as_of(self, now_ns: int) -> int:
        """Return now."""
        return now_ns

    def close(self) -> None:
        """Do nothing."""


class Processes:
    """The system's list of processes."""

    def present(self) -> set[int]:
        """Return who is there."""
        return {int(name) for name in os.listdir("/proc") if name.isdigit()}

    def ticks(self, pid: int) -> tuple[int, int] | None:
        """Return who leads a process's session, and its processor time; None if it is gone."""
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            return None
        return int(fields[_LEADER]), int(fields[_USER]) + int(fields[_SYSTEM])

    def seconds(self, pid: int) -> float | None:
        """Return a process's processor time, seconds; None if it is gone. Takes a twentieth of `ticks`."""
        try:
            return clock_gettime(~pid << _CLOCK_BITS | _CLOCK_OF_PROCESS)  # as clock_getcpuclockid(3) numbers it
        except OSError:  # it is gone, or the system shows nobody another's clock
            found = self.ticks(pid)
            return found[1] / _TICKS if found is not None else None


class ProcessorMeter:
    """For the CPU device: time on the processor, of all threads, and of all that an executor started.

    An executor leads a session of its own, which nothing can leave that it starts. What it started is found among those
    who are new in the system's list of processes, and followed from then on.

    Parameters
    ----------
    processes
        The system's list of processes.
    clock
        Seconds that pass.
    own_clock
        Processor time of who asks, seconds: what looking costs. Not how long it took, which is long where others want
        the processor, and just then it should not be done more seldom.
    """

    problem = ""
    #: The system counts some in ticks of 10 ms, and an executor hears of a shut gate when it is next on a processor.
    lag, part, is_rough, most_burnt = 0.05, _OPS_PART, False, 0.4

    def __init__(
        self,
        processes: Processes | None = None,
        clock: Callable[[], float] = monotonic,
        own_clock: Callable[[], float] = thread_time,
    ) -> None:
        self._list = processes or Processes()
        self._clock, self._own_clock = clock, own_clock
        self._families: dict[int, _Family] = {}  # by leader
        self._strangers: set[int] = set()  # who was there at the last look and is in no family
        self._search_at = 0.0

    def seen(self, pid: int) -> float | None:
        """Return the processor time that the process has used; None if it is gone."""
        now = self._clock()
        if pid not in self._families:
            self._families[pid] = _Family(pid, now)
            self._strangers.clear()  # some may be of its family
            self._search()
            self._search_at = now  # that was dearer than another will be
        if now >= self._search_at:
            self._search()
        own = self._list.seconds(pid)
        if own is None:
            del self._families[pid]
            return None
        return own + self._families[pid].seconds(self._list, now)

    def as_of(self, now_ns: int) -> int:
        """Return now: the system counts as it goes."""
        return now_ns

    def _search(self) -> None:
        """Look for what executors have started: the dearer that is, the more seldom."""
        began = self._own_clock()
        present = self._list.present()
        present.difference_update(self._families, *[each.members for each in self._families.values()])
        for pid in present - self._strangers:
            found = self._list.ticks(pid)
            if found is not None and found[0] in self._families:
                self._families[found[0]].add(pid)
                present.remove(pid)
        self._strangers = present
        self._search_at = self._clock() + max(_SEARCH_SECONDS, _SEARCH_PART * (self._own_clock() - began))

    def close(self) -> None:
        """Do nothing."""


class _Family:
    """What one executor has started."""

    def __init__(self, leader: int, now: float) -> None:
        #: Their ticks, by process.
        self.members: dict[int, int] = {}
        self._leader, self._at = leader, now
        self._seconds = 0.0

    def add(self, pid: int) -> None:
        """Follow another, if there are not too many already."""
        if len(self.members) <= _MOST_FOLLOWED:
            self.members[pid] = 0

    def seconds(self, processes: Processes, now: float) -> float:
        """Return what processor time all of them have used. More than can be followed count as one that computes."""
        before = self._seconds
        for pid, ticks in list(self.members.items()):
            leader, found = processes.ticks(pid) or (0, 0)
            if leader != self._leader:  # it is gone; the number may be another's by now
                del self.members[pid]
            elif found > ticks:
                self.members[pid] = found
                self._seconds += (found - ticks) / _TICKS
        if len(self.members) > _MOST_FOLLOWED:
            self._seconds = max(self._seconds, before + now - self._at)
        self._at = now
        return self._seconds


def meter_of(kind: str, uuid: str) -> Meter:
    """Return what sees who uses a device of this kind; where nothing can, one that says why, which is logged."""
    meter: Meter
    if kind == "cpu":
        meter = ProcessorMeter()
    elif kind == "cuda":
        nvml = Nvml.of(uuid)
        meter = NvmlMeter(nvml) if isinstance(nvml, Nvml) else NoMeter(nvml)
    else:
        meter = NoMeter(f"there is none for a device of kind {kind!r}")
    if meter.problem and kind:
        log.warning("what executors say that they use is not seen from outside: %s", meter.problem)
    return meter
