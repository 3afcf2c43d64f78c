"""Devices for which something is set and which are not there: a GPU may be away, so the pool runs, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_backend.pool import commands, people, setup, state
from gpu_backend.pool.settings import PoolSettings, SharedByMps
from gpu_backend.wire.views import DeviceView, PoolView
from workbench.commands.pool import PoolStatus


@pytest.fixture
def pool(tmp_path: Path) -> state.PoolState:
    made = state.at(tmp_path / "pool")
    setup.prepare(
        made, PoolSettings(device_policies={0: "tgs", 9: "driver"}, devices_shared_by_mps={8: SharedByMps(group="a")})
    )
    return made


def view(*devices: DeviceView) -> PoolView:
    return PoolView(0, "pool", "1", "ada", 0.0, devices, ())


def test_those_that_this_machine_has_not_are_told(pool: state.PoolState) -> None:
    own = setup.node_name(pool)
    seen = view(DeviceView(own, 0, "cuda", "a GPU", 1, 1, 0), DeviceView("other", 9, "cuda", "a GPU", 1, 1, 0))
    assert commands.absent(pool, seen) == [8, 9]
    shown = PoolStatus(seen, pool, people.address(pool), commands.absent(pool, seen))
    assert "set in pool.toml, and not there" in repr(shown)
    assert shown.to_dict()["absent_devices"] == [8, 9]


def test_of_a_machine_that_was_not_heard_nothing_is_known(pool: state.PoolState) -> None:
    assert commands.absent(pool, view()) == []


def test_a_pool_that_nobody_supervises_is_shown_as_one(pool: state.PoolState) -> None:
    shown = PoolStatus(view(), pool, people.address(pool), is_supervised=False)
    assert "`workbench pool up`" in repr(shown)
    assert shown.to_dict()["is_supervised"] is False
    assert "supervisor" not in repr(PoolStatus(view(), pool, people.address(pool)))
