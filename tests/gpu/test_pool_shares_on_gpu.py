"""Two GPUs, one share: six notebooks of one user, packed as badly as can be, and two of another's come out even."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from gpu_backend.node import arbiter as arbiters
from gpu_backend.node.inventory import devices
from gpu_backend.pool import commands
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from tests.faults.machines import Machine, machine, only
from tests.integration.notebook_pool import cpu_pool, wait_until
from tests.integration.test_pool_shares import LARGE, SMALL, TwoDevices
from tests.spare_ports import spare_ports

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(240)]

#: Notebooks on the first GPU.
PLACES = 4
#: GPU time of both devices over which shares are compared, seconds: five of each.
WINDOW = 10.0


class TwoMachines(TwoDevices):
    """A pool of two machines with a GPU each, of which the second has joined the first."""

    def __init__(self, pool: PoolState, root: Path, other: Machine) -> None:
        super().__init__(pool, root)
        self.other = other

    def start(self, user: str, notebooks: int = 1) -> None:
        """Have the first four on the first machine, and the others on the other."""
        names = [one.name for one in commands.status(self.pool).nodes]
        here = next(name for name in names if (name == self.other.name) == (len(self.notebooks) >= PLACES))
        with only(self.pool, here):
            super().start(user, notebooks)

    def directory(self, ordinal: int) -> Path:
        runtime = (self.pool, self.other.state)[ordinal].runtime
        return arbiters.directory_of(str(runtime), 0)


@pytest.fixture(params=["one machine", "two machines"])
def two(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TwoDevices]:
    if len(devices("cuda", 0)) != 2:
        pytest.skip("this needs two GPUs, and no more: set CUDA_VISIBLE_DEVICES=0,1")
    ports, is_one = spare_ports(2), request.param == "one machine"
    packed = PoolSettings(devices="cuda", placement=("best_fit",), sessions_per_device=PLACES)
    heard = {"listen_host": "127.0.0.1", "listen_port": ports[0], "nodes_host": "127.0.0.1", "nodes_port": ports[1]}
    with ExitStack() as stack:
        if is_one:
            pool = stack.enter_context(cpu_pool(tmp_path, packed))
            made = TwoDevices(pool, tmp_path)
        else:
            gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "0,1").split(",")
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", gpus[0])
            pool = stack.enter_context(cpu_pool(tmp_path, packed.model_copy(update=heard)))
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", gpus[1])
            other = stack.enter_context(machine(pool))
            other.join(devices="cuda")
            made = TwoMachines(pool, tmp_path, other)
        stack.callback(made.clear)
        yield made


def test_shares_are_of_both_gpus(two: TwoDevices) -> None:
    for user in ["six"] * 6 + ["two"] * 2:
        two.start(user)
    assert not two.weight("two", 0), "they were to be packed"
    wait_until(lambda: 0 < two.weight("six", 1) < SMALL and two.weight("six", 0) > LARGE)
    settled = booked(two)
    wait_until(lambda: sum(booked(two).values()) > sum(settled.values()) + WINDOW)

    before = booked(two)
    wait_until(lambda: sum(booked(two).values()) > sum(before.values()) + WINDOW)
    after = booked(two)
    had = {user: after[user] - before[user] for user in after}
    assert had["six"] / sum(had.values()) == pytest.approx(0.5, abs=0.01), had


def booked(two: TwoDevices) -> dict[str, float]:
    """Return each user's GPU time, as the arbiters of both have booked it, seconds."""
    return {user: two.used(user, 0) + two.used(user, 1) for user in ("six", "two")}
