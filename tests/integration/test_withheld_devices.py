"""A device that its operator withholds: nobody new comes, nothing is kept ready, and who is there goes on."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_backend.node import launcher
from gpu_backend.node.numbering import noted_numbers
from gpu_backend.pool import commands
from gpu_backend.pool import settings as pool_settings
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from tests.faults.notebook import Notebook
from tests.integration.notebook_pool import cpu_pool, sessions, wait_until

pytestmark = pytest.mark.timeout(180)

BEGIN = "import cupy as cp; x = cp.arange(1000.0); float(x.sum())"


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[PoolState]:
    with cpu_pool(tmp_path, PoolSettings(devices="cpu", cpu_devices=2)) as own:
        yield own


def withhold(pool: PoolState, *uuids: str) -> None:
    settings = PoolSettings(devices="cpu", cpu_devices=2, withheld_devices=uuids)
    pool.settings_file.write_text(pool_settings.render(settings))
    commands.reload(pool)


def ready(pool: PoolState) -> set[int]:
    """Return the devices on which executors are kept ready."""
    idle = [one for one in launcher.directories(str(pool.runtime)) if launcher.assignment_in(one) is None]
    configs = [launcher.config_in(one) for one in idle if launcher.is_ready(one)]
    return {number for config in configs if config is not None for number in config.on_node}


def test_who_is_on_it_goes_on_and_nobody_new_comes(pool: PoolState) -> None:
    uuids = [f"cpu-{platform.node()}-{n}" for n in (0, 1)]
    assert noted_numbers(pool.node) == {uuids[0]: 0, uuids[1]: 1}
    with Notebook(pool.root / "client.toml") as mine:
        assert mine.value(BEGIN) == "499500.0"
        (before,) = sessions(pool)
        withhold(pool, uuids[before.device])
        wait_until(lambda: ready(pool) == {1 - before.device})
        wait_until(lambda: [one.state for one in sessions(pool)] == ["serving"])
        assert mine.value("float(x.sum())") == "499500.0"
        with Notebook(pool.root / "client.toml") as other, Notebook(pool.root / "client.toml") as third:
            for one in (other, third):
                assert one.value(BEGIN) == "499500.0"
            assert sorted(one.device for one in sessions(pool)) == sorted([before.device, *[1 - before.device] * 2])
        withhold(pool)
        wait_until(lambda: ready(pool) == {0, 1})
        assert [(one.session, one.epoch) for one in sessions(pool) if one.session == before.session] == [
            (before.session, before.epoch)
        ]
