"""Two devices in one notebook: a real pool with two CPU devices, an executor that holds both, and what it is counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.error import UsageError
from IPython.testing.globalipapp import get_ipython

from gpu_backend.pool import commands
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from kernelproxy.client import current
from tests.integration.notebook_pool import cpu_pool, sessions, wait_until

RUN = (sys.executable, "-m", "workbench", "run")
_PROGRAM = """
import json, threading
import numpy as np
import cupy as cp

found = {"count": cp.cuda.runtime.getDeviceCount()}
host = np.arange(300_000, dtype="f8")
halves = []
for number in range(found["count"]):
    with cp.cuda.Device(number):
        halves.append(cp.asarray(np.array_split(host, found["count"])[number]) * (number + 1))
found["devices"] = [half.device.id for half in halves]
for _ in range(20):
    for number, half in enumerate(halves):
        with cp.cuda.Device(number):
            half += 1
sums = []
for number, half in enumerate(halves):
    with cp.cuda.Device(number):
        sums.append(half.sum())
found["sum"] = float(sum(cp.asarray(one) for one in sums))
with cp.cuda.Device(found["count"] - 1):
    found["moved"] = float(cp.asarray(halves[0])[-1])
    found["free"] = cp.cuda.runtime.memGetInfo()[0] > 0
results = {}
def work(number):
    with cp.cuda.Device(number):
        x = cp.full(1000, number + 1.0)
        for _ in range(50):
            x = x * 1.5 - 0.5 * x
        results[number] = (float(x.sum()), x.device.id)
threads = [threading.Thread(target=work, args=(number,)) for number in range(found["count"])]
[one.start() for one in threads], [one.join() for one in threads]
found["threads"] = [results[number] for number in range(found["count"])]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    with cpu_pool(tmp_path_factory.mktemp("two"), PoolSettings(devices="cpu", cpu_devices=2)) as own:
        yield own


def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RUN, *words], capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **more}
    )


def test_a_program_with_two_devices(pool: PoolState) -> None:
    done = run("--devices", "2", "-c", _PROGRAM)
    assert done.stderr == ""
    first, second = range(150_000), range(150_000, 300_000)
    assert json.loads(done.stdout) == {
        "count": 2, "devices": [0, 1], "sum": sum(first) + 2 * sum(second) + 20 * 300_000, "moved": 149_999 + 20.0,
        "free": True, "threads": [[1000.0, 0], [2000.0, 1]],
    }  # fmt: skip
    wait_until(lambda: sessions(pool) == ())


def test_a_program_that_asks_for_none_has_one(pool: PoolState) -> None:
    done = run("-c", "import cupy as cp; print(cp.cuda.runtime.getDeviceCount()); cp.cuda.Device(1).use()")
    assert done.stdout == "1\n"
    assert done.stderr.rstrip().endswith("cudaErrorInvalidDevice: invalid device ordinal")
    wait_until(lambda: sessions(pool) == ())


def test_more_than_a_node_has_are_refused_with_what_could_be_had(pool: PoolState) -> None:
    done = run("-c", "import cupy as cp; cp.zeros(1)", GPU_WORKBENCH_DEVICES="3")
    assert "3 devices of one node were asked for; no node of this pool has more than 2 that could serve." in done.stderr
    assert sessions(pool) == ()
