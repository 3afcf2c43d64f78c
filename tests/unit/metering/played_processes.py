"""The system's list of processes, played: who is there, whose session each is in, what each has used."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from gpu_backend.metering.meters import Processes, ProcessorMeter

_TICKS = os.sysconf("SC_CLK_TCK")
#: What it costs to have one listed, to have one read, and to ask for one's clock, processor seconds (measured).
LISTED, READ, ASKED = 0.4e-6, 7e-6, 0.4e-6


@dataclass
class PlayedProcesses(Processes):
    """Processes and their time, which the test moves."""

    now: float = 1_000.0
    #: For how long who looks is held up each time it reads the clock, seconds: others want the processor too.
    stall: float = 0.0
    #: Who leads each one's session, and what each has used, seconds.
    leaders: dict[int, int] = field(default_factory=dict)
    used: dict[int, float] = field(default_factory=dict)
    #: Who was read, the last last; a look at a clock reads nothing.
    read: list[int] = field(default_factory=list)
    _cost: float = 0.0

    def meter(self) -> ProcessorMeter:
        """Return what sees them."""
        return ProcessorMeter(self, self._clock, lambda: self._cost)

    def _clock(self) -> float:
        self.now += self.stall
        return self.now

    def present(self) -> set[int]:
        self._cost += LISTED * len(self.used)
        return set(self.used)

    def ticks(self, pid: int) -> tuple[int, int] | None:
        self._cost += READ
        self.read.append(pid)
        return (self.leaders[pid], round(self.used[pid] * _TICKS)) if pid in self.used else None

    def seconds(self, pid: int) -> float | None:
        self._cost += ASKED
        return self.used.get(pid)

    def start(self, pid: int, leader: int) -> None:
        """Let there be another process."""
        self.leaders[pid], self.used[pid] = leader, 0.0

    def end(self, pid: int) -> None:
        """Let a process be gone."""
        del self.used[pid]

    def burn(self, pid: int, seconds: float) -> None:
        """Let a process have the processor for so long."""
        self.used[pid] += seconds
