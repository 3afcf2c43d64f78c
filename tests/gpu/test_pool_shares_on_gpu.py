"""Two GPUs, one share: six notebooks of one user, packed as badly as can be, and two of another's come out even."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_backend.node.inventory import devices
from gpu_backend.pool.settings import PoolSettings
from tests.integration.notebook_pool import cpu_pool, wait_until
from tests.integration.test_pool_shares import LARGE, SMALL, TwoDevices

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(240)]

#: GPU time of both devices over which shares are compared, seconds: five of each.
WINDOW = 10.0


@pytest.fixture
def two(tmp_path: Path) -> Iterator[TwoDevices]:
    if len(devices("cuda", 0)) != 2:
        pytest.skip("this needs two GPUs, and no more: set CUDA_VISIBLE_DEVICES=0,1")
    packed = PoolSettings(devices="cuda", placement=("best_fit",), sessions_per_device=4)
    with cpu_pool(tmp_path, packed) as pool:
        made = TwoDevices(pool, tmp_path)
        try:
            yield made
        finally:
            made.clear()


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
