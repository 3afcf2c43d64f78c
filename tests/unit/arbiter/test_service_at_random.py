"""Executors come, work and go, and arbiters are killed, at random: no gate stays shut, and no GPU time is lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from gpu_backend.gate import tally
from gpu_backend.gate.reports import GateReport
from tests.unit.arbiter.test_service import MILLISECOND, Bench

STEPS = 4_000
#: Virtual time that a session may wait, milliseconds: the patience with a dead arbiter, and everybody's turns.
LONGEST_WAIT = 1_000 + 16 * 20 * 4


@dataclass
class Life:
    """A bench with executors that work whenever their gates let them."""

    bench: Bench
    random: Random
    used: dict[str, float] = field(default_factory=dict)  # by session, milliseconds
    queued: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, float] = field(default_factory=dict)  # since when it has not been let through, milliseconds
    counted: dict[str, float] = field(default_factory=dict)  # by user, of arbiters that are gone, seconds
    all_used: dict[str, float] = field(default_factory=dict)  # by user, seconds
    joined: int = 0
    left: int = 0
    longest: float = 0.0

    def step(self) -> None:
        chance = self.random.random()
        if chance < 0.06 and len(self.used) < 8:
            self.join()
        elif chance < 0.09 and len(self.used) > 2:
            self.leave()
        elif chance < 0.10:
            self.kill_arbiter()
        elif chance < 0.5:
            self.change_queue()
        self.work(self.random.uniform(0.2, 8.0))

    def join(self) -> None:
        self.joined += 1
        session = f"s{self.joined}"
        self.bench.join(session, f"u{self.joined % 4}")
        self.used[session], self.queued[session] = 0.0, 0

    def leave(self) -> None:
        """Die with a last report that nobody has read."""
        self.left += 1
        session = self.random.choice(list(self.used))
        self.use(session, self.random.uniform(0, 5))
        name = self.bench.members[session].name
        for table in (self.used, self.queued, self.waiting, self.bench.members):
            table.pop(session, None)  # type: ignore[attr-defined]
        self.bench.publish()
        self.bench.pages.pop(session).close()
        tally.remove(self.bench.directory, name)  # its number may be another's next

    def kill_arbiter(self) -> None:
        for user, seconds in self.bench.arbiter._scheduler.used_by_user.items():
            self.counted[user] = self.counted.get(user, 0.0) + seconds
        self.bench.arbiter.close()
        for _ in range(self.random.randrange(0, 800)):  # executors go on without one
            self.bench.now += 5 * MILLISECOND
            self.run(5.0)
        now = self.bench.now
        self.waiting.clear()  # a new arbiter knows nothing of earlier waits
        self.bench.start("fair_share")
        self.bench.now = self.bench.arbiter._origin_ns = max(now, self.bench.now)
        self.bench.pass_time(0)

    def change_queue(self) -> None:
        if self.used:
            session = self.random.choice(list(self.used))
            self.queued[session] = self.random.choice([0, 1, 1_000, 1_000])
            self.report(session)
            self.bench.pass_time(0.05)

    def work(self, milliseconds: float) -> None:
        self.bench.pass_time(milliseconds)
        self.run(milliseconds)

    def run(self, milliseconds: float) -> None:
        now = self.bench.now / MILLISECOND
        is_open = self.bench.open()
        runners = [session for session in self.used if self.queued[session] and session in is_open]
        for session in runners:
            self.use(session, milliseconds / len(runners))
        for session in self.used:
            if self.queued[session] and session not in is_open:
                self.longest = max(self.longest, now - self.waiting.setdefault(session, now))
            else:
                self.waiting.pop(session, None)

    def use(self, session: str, milliseconds: float) -> None:
        self.used[session] += milliseconds
        user = f"u{int(session[1:]) % 4}"
        self.all_used[user] = self.all_used.get(user, 0.0) + milliseconds / 1e3
        self.report(session)

    def report(self, session: str) -> None:
        report = (int(self.used[session] * MILLISECOND), int(self.used[session] * 10), self.queued[session])
        self.bench.pages[session].write(GateReport(*report, 0, self.queued[session] == 1))


def check(life: Life, steps: int, arrivals: int = 0) -> None:
    """Live on; no gate stays shut, and what was used is counted, for its user."""
    scheduler = life.bench.arbiter._scheduler
    for _ in range(steps):
        life.step()
        scheduler = life.bench.arbiter._scheduler
        scheduler.validate()
        assert life.longest <= LONGEST_WAIT
        if arrivals and life.joined >= arrivals:
            break
    life.bench.pass_time(50)
    for user, seconds in scheduler.used_by_user.items():
        life.counted[user] = life.counted.get(user, 0.0) + seconds
    assert life.counted == pytest.approx(life.all_used, rel=1e-6)


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    bench = Bench(tmp_path)
    yield Life(bench, Random(3))
    bench.close()


def test_no_gate_stays_shut_and_no_time_is_lost(life: Life) -> None:
    check(life, STEPS)
    assert life.joined > 80


@pytest.mark.soak
@pytest.mark.timeout(1_200)
def test_nor_in_ten_thousand_arrivals_and_departures(life: Life) -> None:
    check(life, 1_000_000, arrivals=5_000)
    assert life.joined + life.left >= 9_990
