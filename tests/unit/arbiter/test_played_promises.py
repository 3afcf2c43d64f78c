"""What policies for sessions of different classes promise, on the played GPU, with notebooks that are not regular."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.unit.arbiter.played_device import ROUND_TRIP, Life, Op, Player, Process, World, asleep, busy, hog


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


def part(world: World, user: str, seconds: float) -> float:
    """Let time pass; return the user's part of the device."""
    before = world.ran().get(user, 0.0)
    world.clock.run(seconds)
    return (world.ran()[user] - before) / seconds


@pytest.mark.parametrize("world", ["tgs"], indirect=True)
@pytest.mark.parametrize("clock", [1.0, 1.2])
def test_tgs_spares_production_that_is_not_regular_and_uses_what_it_leaves(world: World, clock: float) -> None:
    """Neither its jitter nor a device that speeds up is taken for a slow-down by the others."""
    production = Production(world, world.join("p", kind="production"))
    world.clock.run(0.5)
    alone = production.rate(3.0)
    production.clock = clock
    hog(world, world.join("o", kind="best-effort"), 0.2e-3)
    world.clock.run(3.0)
    before = world.ran()["o"]
    assert production.rate(7.0) >= 0.95 * alone
    assert (world.ran()["o"] - before) / 7.0 > 0.05
