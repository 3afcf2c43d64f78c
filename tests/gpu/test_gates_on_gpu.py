"""The driver's samples say who uses a GPU, and who uses it behind a shut gate is ended."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from gpu_backend.metering.meters import meter_of
from gpu_backend.node.inventory import devices
from gpu_backend.pool.settings import PoolSettings
from tests.attack.test_gates import BREAKER, Scene, scene_of
from tests.integration.notebook_pool import wait_until
from tests.integration.test_sharing import HOG

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(240)]

BUSY = """
import cupy as cp
a = cp.ones((4096, 4096), dtype='float32')
while True:
    for _ in range(20):
        a @ a
    cp.cuda.runtime.deviceSynchronize()
"""


def test_the_meter_sees_who_computes_and_nobody_else() -> None:
    meter = meter_of("cuda", devices("cuda", 0)[0].uuid)
    assert not meter.problem
    idle = subprocess.Popen([sys.executable, "-c", "import cupy, signal; cupy.ones(3); signal.pause()"])
    busy = subprocess.Popen([sys.executable, "-c", BUSY], start_new_session=True)
    try:
        wait_until(lambda: (meter.seen(busy.pid) or 0.0) > 2.0, 60)
        assert (meter.seen(idle.pid) or 0.0) <= 0.5  # its start may be a sample
        assert not meter.problem
    finally:
        for process in (idle, busy):
            process.kill()
            process.wait()
        meter.close()


def test_where_there_is_no_such_gpu_nothing_is_seen_and_it_is_said_why() -> None:
    meter = meter_of("cuda", "GPU-00000000000000000000000000000000")
    assert "NVML does not know" in meter.problem
    assert meter.seen(os.getpid()) is None


@pytest.fixture(scope="module")
def scene(one_gpu: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    settings = PoolSettings(devices="cuda", executor_command=BREAKER)
    with scene_of(tmp_path_factory.mktemp("g"), settings) as made:
        yield made


def test_who_computes_on_the_gpu_behind_a_shut_gate_is_ended(scene: Scene) -> None:
    scene.start(HOG)
    (hog,) = scene.wait_for(1)
    session, notebook = scene.idler()
    scene.wait_for_progress(hog)
    process = scene.attack(session, "burn_on_gpu")
    wait_until(lambda: not process.is_running)
    out, _ = notebook.communicate("\n", timeout=60)
    assert "kept the device busy while its gate was shut" in out
    scene.wait_for_progress(hog, 200)
