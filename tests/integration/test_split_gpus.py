"""A pool on a GPU that is split, as its driver was seen to speak: its instances are its devices, and come and go."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_backend.node.numbering import noted_numbers
from gpu_backend.pool import commands
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from tests.integration.notebook_pool import cpu_pool, wait_until
from tests.played_driver import install_driver, install_nvml

pytestmark = pytest.mark.timeout(180)

UNSEEN = "NVML does not say who uses an instance of a GPU (MIG)"


@pytest.fixture
def libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a played driver found by all that is started here, and something that is called CuPy."""
    folder = tmp_path / "driver"
    folder.mkdir()
    (folder / "cupy.py").touch()
    install_driver(folder, status=0)
    install_nvml(folder, is_split=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*filter(None, sys.path), str(folder)]))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return folder


@pytest.fixture
def pool(libraries: Path, tmp_path: Path) -> Iterator[PoolState]:
    settings = PoolSettings(devices="cuda", warm_executors_per_device=0)
    with cpu_pool(tmp_path / "own", settings) as own:
        yield own


def offered(pool: PoolState) -> dict[int, str]:
    return {device.ordinal: device.name for device in commands.status(pool).devices}


def test_instances_are_devices_and_keep_their_numbers_while_others_come_and_go(
    pool: PoolState, libraries: Path
) -> None:
    small, large, third = "GPU one MIG 1g.10gb", "GPU one MIG 3g.40gb", "GPU one MIG 2g.20gb"
    assert offered(pool) == {0: "GPU zero", 1: small, 2: large}
    before = noted_numbers(pool.node)
    install_nvml(libraries, is_split=True, parts=3)
    commands.reload(pool)
    assert offered(pool) == {0: "GPU zero", 1: small, 2: large, 3: third}
    install_nvml(libraries, is_split=False)
    commands.reload(pool)
    assert offered(pool) == {0: "GPU zero", 1: "GPU one"}
    install_nvml(libraries, is_split=True)
    commands.reload(pool)
    assert noted_numbers(pool.node) == before


def test_that_nobody_sees_who_uses_an_instance_is_said_once_of_each(pool: PoolState) -> None:
    wait_until(lambda: [device.unseen for device in commands.status(pool).devices][1:] == [UNSEEN, UNSEEN])
    logs = [log.read_text() for log in pool.runtime.glob("a/*/log")]
    assert sorted(log.count(UNSEEN) for log in logs) == [0, 1, 1]
