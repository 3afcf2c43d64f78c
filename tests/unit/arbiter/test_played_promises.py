"""What policies for sessions of different classes promise, on the played GPU, with notebooks that are not regular."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random

import pytest

from gpu_backend.arbiter.views import SessionView
from gpu_backend.wire.op_classes import OpClass
from tests.unit.arbiter.played_device import ROUND_TRIP, Life, Op, Player, Process, World, asleep, busy
from tests.unit.arbiter.played_notebooks import hog, ticks, ticks_beside_hogs


@pytest.fixture
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    made = World(tmp_path, request.param)
    yield made
    made.close()


class Production:
    """Computes for 2 ms and rests for 2 ms, for ever, with the jitter of a host and of what is computed."""

    def __init__(self, world: World, player: Player, seed: int = 0) -> None:
        self._world, self._player, self._random = world, player, Random(seed)
        #: How much faster the device is than at first: its clock rises when there is more to do.
        self.clock = 1.0
        player.notebook = Process(world.clock, self._live())

    def rate(self, seconds: float) -> float:
        """Let time pass; return how often it had a result in a second."""
        before = self._player.answered
        self._world.clock.run(seconds)
        return (self._player.answered - before) / seconds

    def _live(self) -> Life:
        random, now, until, pace = self._random, self._world.clock, 0.0, 1.0
        while True:
            if now.now >= until:  # a few per cent more or less in each second or so
                until, pace = now.now + random.expovariate(1.0), random.gauss(1.0, 0.01)
            answered = self._player.answered
            self._player.ask([Op(2e-3 * pace / self.clock), Op(0.0, is_awaited=True)])
            while self._player.answered == answered:
                yield asleep(1.0)
            late = random.expovariate(1 / 2e-3) if random.random() < 0.005 else 0.0
            yield busy(ROUND_TRIP + 2e-3 * pace + 60e-6 + random.expovariate(1 / 50e-6) + late)


#: What an arbiter takes to be bound by arithmetic and by memory, as parts of time, of products, sums, and own kernels.
BOUND = {"a": (1.0, 0.0), "b": (0.0, 1.0), "c": (0.0, 0.0)}


def sessions(world: World) -> Iterable[SessionView]:
    return world.arbiter._scheduler.sessions.values()


def part(world: World, user: str, seconds: float) -> float:
    """Let time pass; return the user's part of the device."""
    before = world.ran().get(user, 0.0)
    world.clock.run(seconds)
    return (world.ran()[user] - before) / seconds


def beside_a_hog(world: World, settle: float, seconds: float, clock: float = 1.0) -> tuple[float, float]:
    """Return the part of its rate that production keeps beside a best-effort hog, and the hog's part of the device.

    ``clock`` is how much faster the device is from when the hog begins, ``settle`` seconds before it is measured.
    """
    production = Production(world, world.join("p", kind="production"))
    world.clock.run(0.5)
    alone = production.rate(3.0)
    production.clock = clock
    hog(world, world.join("o", kind="best-effort"), 0.2e-3)
    world.clock.run(settle)
    before = world.ran()["o"]
    kept = production.rate(seconds) / alone
    return kept, (world.ran()["o"] - before) / seconds


@pytest.mark.parametrize("world", ["tgs"], indirect=True)
@pytest.mark.parametrize("clock", [1.0, 1.2])
def test_tgs_spares_production_that_is_not_regular_and_uses_what_it_leaves(world: World, clock: float) -> None:
    """Neither its jitter nor a device that speeds up is taken for a slow-down by the others."""
    kept, used = beside_a_hog(world, 3.0, 7.0, clock)
    assert kept >= 0.95
    assert used > 0.05


@pytest.mark.parametrize("world", ["antman"], indirect=True)
def test_antman_spares_production_that_is_not_regular_and_uses_its_idle_time(world: World) -> None:
    kept, used = beside_a_hog(world, 1.5, 8.0)
    assert kept >= 0.95
    assert used > 0.05


@pytest.mark.parametrize("world", ["orion"], indirect=True)
def test_orion_keeps_priority_work_at_its_speed_where_the_driver_alternates(world: World) -> None:
    """What is unknown is tried beside it, found to cost too much, and let run in its pauses."""
    kept, used = beside_a_hog(world, 1.5, 8.0)
    assert kept >= 0.9
    assert used >= 0.2


@pytest.mark.parametrize("world", ["orion"], indirect=True)
def test_the_arbiter_hears_by_what_sessions_are_bound(world: World) -> None:
    for user, kind in (("a", OpClass.LINALG), ("b", OpClass.REDUCTION), ("c", OpClass.KERNEL)):
        hog(world, world.join(user), 0.5e-3, kind=kind)
    world.clock.run(1.0)
    seen = {view.terms.user: (view.compute_part, view.memory_part) for view in sessions(world)}
    assert seen == {user: pytest.approx(parts, abs=0.01) for user, parts in BOUND.items()}


@pytest.mark.parametrize("world", ["muxflow"], indirect=True)
def test_muxflow_gives_offline_work_no_more_than_the_complement(world: World) -> None:
    """Online work is busy for half of the time, and slowed down claims more: the driver alternates between the two."""
    kept, used = beside_a_hog(world, 1.5, 8.0)
    assert 0.2 <= used <= 0.55
    assert kept >= 0.6


@pytest.mark.parametrize("world", ["iadeep"], indirect=True)
def test_iadeep_gives_two_that_pause_each_others_pauses(world: World) -> None:
    one, other = (Production(world, world.join(user), seed) for seed, user in enumerate("ab"))
    world.clock.run(1.0)
    both = one.rate(4.0)
    assert other.rate(1.0) == pytest.approx(both, rel=0.1)
    assert sum(world.ran().values()) / world.clock.now > 0.7


@pytest.mark.parametrize("world", ["reef"], indirect=True)
def test_reef_withdraws_what_best_effort_sessions_have_queued(world: World) -> None:
    """Priority work waits for two ops of 2 ms at most, and the best-effort sessions lose nothing else."""
    taken, worked = ticks_beside_hogs(world, 2e-3, 2.0, kind="best-effort")
    assert len(taken) > 80
    assert max(taken) <= 2 * 2e-3 + 0.5e-3
    assert worked >= 0.95


@pytest.mark.parametrize("world", ["paella"], indirect=True)
def test_paella_serves_what_ends_soon_first_and_passes_nobody_over_for_ever(world: World) -> None:
    """Cells of 20 ms and of 100 ms on end beside one another, and a person with single ops."""
    hog(world, world.join("short"), 1e-3, chunk_seconds=0.02)
    hog(world, world.join("long"), 1e-3, chunk_seconds=0.1)
    taken: list[float] = []
    ticks(world, world.join("person"), taken)
    world.clock.run(1.0)
    taken.clear()
    assert 0.15 < part(world, "long", 3.0) < 0.5  # its deficit bounds how long it waits; it is not preferred
    taken.sort()
    assert taken[len(taken) // 2] <= 3e-3
    assert taken[int(0.95 * len(taken))] <= 20e-3  # others' deficits come first now and then, for a tenth of a turn


@pytest.mark.parametrize("world", ["gemini", "kubeshare"], indirect=True)
def test_the_token_keeps_requests_and_limits(world: World) -> None:
    hog(world, world.join("a", request=0.5, limit=0.6), 2e-3)
    hog(world, world.join("b", request=0.2, limit=0.3), 2e-3)
    world.clock.run(2.0)
    before = world.ran()
    world.clock.run(10.0)
    parts = {user: (used - before[user]) / 10.0 for user, used in world.ran().items()}
    assert 0.47 <= parts["a"] <= 0.63
    assert 0.17 <= parts["b"] <= 0.33


@pytest.mark.parametrize("world", ["gaiagpu"], indirect=True)
def test_gaiagpu_meets_a_hard_target_and_grows_into_what_is_idle(world: World) -> None:
    hog(world, world.join("hard", request=0.3, limit=0.3), 2e-3)
    hog(world, world.join("elastic", request=0.2, limit=0.9), 2e-3)
    world.clock.run(8.0)
    before = world.used()  # what it goes by: of ops side by side the driver's slices in between are measured too
    world.clock.run(4.0)
    parts = {user: (used - before[user]) / 4.0 for user, used in world.used().items()}
    assert parts["hard"] == pytest.approx(0.3, abs=0.05)
    assert parts["elastic"] >= 0.2
