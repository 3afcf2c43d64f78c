"""What sharing itself costs: an executor's look at its gate, and an arbiter with 64 sessions. Needs no GPU."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from math import inf
from pathlib import Path
from time import monotonic, monotonic_ns, perf_counter, sleep
from timeit import repeat
from typing import Any

from sharing_pool import processor_seconds

from gpu_backend.arbiter import gate
from gpu_backend.arbiter import roster as rosters
from gpu_backend.arbiter.bell import Bell, Ringer
from gpu_backend.arbiter.events import OpenGate
from gpu_backend.arbiter.terms import SessionTerms
from gpu_backend.engine.detached import ProcessId
from gpu_backend.executor.gate import Gate
from gpu_backend.executor.pace import Pace

SESSIONS = 64


def gate_cost() -> dict[str, Any]:
    """Return the time of one look at the gate, nanoseconds: open without an end, and within a turn."""
    with tempfile.TemporaryDirectory(prefix="gw-") as directory:
        path = Path(directory) / "page"
        gate.create(path)
        page, executor = gate.ArbiterPage(path), Gate(path, str(path.with_name("bell")), Pace(_Now))
        found = {}
        for name, until in (("open_ns", inf), ("turn_ns", 1_000.0)):
            page.open(OpenGate("s", until, 0, inf, 1.0), monotonic_ns(), monotonic_ns())
            found[name] = _nanoseconds(executor.may_launch)
        executor.close()
        page.close()
    return found


class _Now:
    """A marker that is passed at once."""

    def is_done(self) -> bool:
        """Return True."""
        return True

    def seconds_since(self, earlier: object) -> float:
        """Return 0."""
        return 0.0


def _nanoseconds(call: Any) -> float:
    def nothing() -> None:
        return None

    count, times = 10_000, 100  # the best of many short ones: a neighbour may have the processor for a while
    empty = min(repeat(nothing, number=count, repeat=times))
    return (min(repeat(call, number=count, repeat=times)) - empty) / count * 1e9


def arbiter_load(seconds: float) -> dict[str, Any]:
    """Return the part of a core that an arbiter with 64 sessions of 16 users takes: all idle, and all busy."""
    with tempfile.TemporaryDirectory(prefix="gw-") as name:
        directory = Path(name)
        pages = _seat_everybody(directory)
        command = [sys.executable, "-m", "gpu_backend.arbiter", str(directory)]
        arbiter = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        bells = [Bell(directory / f"b{number}") for number in range(SESSIONS)]
        try:
            deadline = monotonic() + 20
            while not all(page.state for page in pages) and monotonic() < deadline:
                sleep(0.05)
            found = {"idle": _load(arbiter.pid, seconds, lambda: sleep(0.05))}
            found["busy"] = _load(arbiter.pid, seconds, _Hogs(pages, directory).work)
            found["sessions"] = SESSIONS
        finally:
            arbiter.send_signal(signal.SIGTERM)
            arbiter.wait(10)
            for page in pages:
                page.close()
            for bell in bells:
                bell.close()
    return found


def _seat_everybody(directory: Path) -> list[gate.ExecutorPage]:
    me = ProcessId.mine()
    rosters.write(directory / rosters.CONFIG, rosters.ArbiterConfig(policy="fair_share"))
    members = []
    for number in range(SESSIONS):
        path = directory / f"p{number}"
        gate.create(path)
        terms = SessionTerms(session=f"s{number}", user=f"u{number % 16}")
        bell = str(directory / f"b{number}")
        members.append(rosters.Member(terms, me.pid, me.start_time, str(path), bell))
    rosters.write(directory / rosters.ROSTER, rosters.Roster(tuple(members)))
    return [gate.ExecutorPage(Path(member.page)) for member in members]


def _load(pid: int, seconds: float, work: Any) -> float:
    work()
    before, start = processor_seconds(pid), monotonic()
    while monotonic() - start < seconds:
        work()
    return (processor_seconds(pid) - before) / (monotonic() - start)


class _Hogs:
    """Sixty-four executors with endless work, in one process: whoever is let through uses the device."""

    def __init__(self, pages: list[gate.ExecutorPage], directory: Path) -> None:
        self._pages = pages
        self._used = [0] * len(pages)
        self._last = perf_counter()
        self._ringer = Ringer()
        for number, page in enumerate(pages):
            page.write(gate.GateReport(queued_ops=1_000))
            self._ringer.ring(str(directory / rosters.BELL), f"p{number}".encode())

    def work(self) -> None:
        """Let a few milliseconds pass."""
        sleep(0.003)
        now, at = perf_counter(), monotonic_ns()
        elapsed, self._last = now - self._last, now
        is_open = [page.may_launch(at) for page in self._pages]
        for number, page in enumerate(self._pages):
            if is_open[number]:
                self._used[number] += int(elapsed * 1e9 / max(1, sum(is_open)))
                page.write(gate.GateReport(self._used[number], self._used[number] // 20_000, 1_000, 8))


if __name__ == "__main__":
    os.umask(0o077)
    print(gate_cost(), arbiter_load(4.0))
