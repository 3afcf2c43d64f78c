"""What sharing itself costs: an executor's look at its gate, and an arbiter with 64 sessions. Needs no GPU."""

from __future__ import annotations

import os
import select
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

from gpu_backend.arbiter.events import OpenGate
from gpu_backend.engine.detached import ProcessId
from gpu_backend.executor.gate import Gate
from gpu_backend.executor.pace import Pace
from gpu_backend.gate import reports, right_of_way
from gpu_backend.gate import roster as rosters
from gpu_backend.gate.bell import Line
from gpu_backend.gate.orders import OrderPage, OrderView
from gpu_backend.gate.terms import SessionTerms
from gpu_backend.transport.control_socket import ControlListener

SESSIONS = 64


def gate_cost() -> dict[str, Any]:
    """Return the time of one look at the gate, nanoseconds: open without an end, and within a turn."""
    page, executor = OrderPage(), Gate(reports.make(), True, Pace(_Now, perf_counter))
    ours, theirs = Line.pair()
    executor.take(os.dup(page.descriptor), right_of_way.make(), theirs)
    found = {}
    for name, until in (("open_ns", inf), ("turn_ns", 1_000.0)):
        page.open(OpenGate("s", until, 0, inf, 1.0), monotonic_ns(), monotonic_ns())
        found[name] = _nanoseconds(executor.may_launch)
    executor.close()
    page.close()
    ours.close()
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
        seats = _seat_everybody(directory)
        command = [sys.executable, "-m", "gpu_backend.arbiter", str(directory)]
        arbiter = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            for seat in seats:
                seat.take()
            found = {"idle": _load(arbiter.pid, seconds, lambda: sleep(0.05))}
            found["busy"] = _load(arbiter.pid, seconds, _Hogs(seats).work)
            found["sessions"] = SESSIONS
        finally:
            arbiter.send_signal(signal.SIGTERM)
            arbiter.wait(10)
    return found


class _Seat:
    """An executor's side: where it takes its pages, and what it does with them."""

    def __init__(self, directory: Path, number: int) -> None:
        self._path = directory / f"x{number}"
        self._door = ControlListener(ControlListener.open(self._path).detach(), 3)
        descriptor = reports.make()
        self.page = reports.ReportPage(descriptor)
        me, terms = ProcessId.mine(), SessionTerms(session=f"s{number}", user=f"u{number % 16}")
        self.member = rosters.Member(terms, me.pid, me.start_time, str(self._path), descriptor)

    def take(self) -> None:
        """Wait for the arbiter and take what it hands over."""
        select.select([self._door], [], [], 20)
        connected = self._door.accept()
        if connected is not None:
            select.select([connected], [], [], 20)
        message = connected.receive() if connected is not None else None
        if message is None:
            raise RuntimeError("the arbiter did not come")
        order, _, line = message.descriptors
        self.orders, self.line = OrderView(order), Line(line)


def _seat_everybody(directory: Path) -> list[_Seat]:
    config = rosters.ArbiterConfig(policy="fair_share", device_kind="cpu")  # each is looked at from outside, too
    rosters.write(directory / rosters.CONFIG, config)
    seats = [_Seat(directory, number) for number in range(SESSIONS)]
    rosters.write(directory / rosters.ROSTER, rosters.Roster(tuple(seat.member for seat in seats)))
    return seats


def _load(pid: int, seconds: float, work: Any) -> float:
    work()
    before, start = processor_seconds(pid), monotonic()
    while monotonic() - start < seconds:
        work()
    return (processor_seconds(pid) - before) / (monotonic() - start)


class _Hogs:
    """Sixty-four executors with endless work, in one process: whoever is let through uses the device."""

    def __init__(self, seats: list[_Seat]) -> None:
        self._seats = seats
        self._used = [0] * len(seats)
        self._last = perf_counter()
        for seat in seats:
            seat.page.write(reports.GateReport(queued_ops=1_000))
            seat.line.ring()

    def work(self) -> None:
        """Let a few milliseconds pass."""
        sleep(0.003)
        now, at = perf_counter(), monotonic_ns()
        elapsed, self._last = now - self._last, now
        is_open = [seat.orders.may_launch(at) for seat in self._seats]
        for number, seat in enumerate(self._seats):
            if is_open[number]:
                self._used[number] += int(elapsed * 1e9 / max(1, sum(is_open)))
                seat.page.write(reports.GateReport(self._used[number], self._used[number] // 20_000, 1_000, 8))


if __name__ == "__main__":
    os.umask(0o077)
    print(gate_cost(), arbiter_load(4.0))
