"""A gate with an arbiter's side of it, on a device and a clock that a test moves."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

import pytest

from gpu_backend.arbiter.events import OpenGate
from gpu_backend.executor.gate import Gate
from gpu_backend.executor.pace import Pace
from gpu_backend.gate import reports, right_of_way
from gpu_backend.gate.bell import Line
from gpu_backend.gate.orders import OrderPage
from gpu_backend.gate.reports import GateReport, ReportView

SECOND = 1_000_000_000


@dataclass
class Mark:
    at: float
    world: World

    def is_done(self) -> bool:
        return self.world.now_ns / 1e9 >= self.at

    def seconds_since(self, earlier: Mark) -> float:
        return self.at - earlier.at


def bell() -> int:
    """Return an end of a pair of bells whose other is gone."""
    ours, theirs = Line.pair()
    ours.close()
    return theirs


class World:
    """A gate with an arbiter's page and bell, on a device and a clock that the test moves."""

    def __init__(self) -> None:
        self.now_ns = 100 * SECOND
        self.free_at = 0.0
        self.pace = Pace(lambda: Mark(max(self.now_ns / 1e9, self.free_at), self), lambda: self.now_ns / 1e9)
        self.report_page = reports.make()
        self.gate = Gate(self.report_page, True, self.pace, lambda: self.now_ns)
        self.reports = ReportView(os.getpid(), self.report_page)
        self.way = right_of_way.make()
        self.page = OrderPage()
        self.line, theirs = Line.pair()
        self.gate.take(os.dup(self.page.descriptor), os.dup(self.way), theirs)

    def replace_arbiter(self) -> None:
        """Have another arbiter hand its pages over."""
        self.page.close()
        self.line.close()
        self.page = OrderPage()
        self.line, theirs = Line.pair()
        self.gate.take(os.dup(self.page.descriptor), os.dup(self.way), theirs)

    def report(self) -> GateReport:
        found = self.reports.report()
        assert found is not None
        return found

    def rings(self) -> bool:
        """Tell whether the arbiter was rung since this was last asked."""
        heard = bool(select.select([self.line], [], [], 0)[0])
        self.line.clear()
        return heard

    def close(self) -> None:
        self.gate.close()
        self.page.close()
        self.line.close()
        self.reports.close()
        os.close(self.report_page)
        os.close(self.way)

    def open(self, seconds: float = inf, window: int = 0, budget: float = inf, duty: float = 1.0) -> None:
        now = self.now_ns / 1e9
        self.page.taken_ns = int(self.pace.used_seconds * 1e9)
        self.page.open(OpenGate("s", now + seconds, window, budget, duty), self.now_ns)

    def work(self, seconds: float) -> bool:
        """Launch one op of that length and let it finish; False if the gate does not let it through."""
        if not self.gate.may_launch():
            return False
        self.launch(seconds)
        self.pace.close_group()
        self.now_ns = max(self.now_ns, int(self.free_at * 1e9) + 1)
        self.pace.collect()
        return True

    def launch(self, seconds: float) -> None:
        self.pace.begin(False)
        self.free_at = max(self.now_ns / 1e9, self.free_at) + seconds
        self.pace.note_launches(1)

    def pass_time(self, seconds: float) -> None:
        self.now_ns += int(seconds * 1e9)
        self.page.beat(self.now_ns)


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.close()
