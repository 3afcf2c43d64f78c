"""A notebook whose GPUs are of two machines, played on one host: each has the GPU, and an executor of its own there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_backend.pool import commands
from tests.faults.machines import machine
from tests.integration.notebook_pool import cpu_pool, open_to_machines, wait_until
from tests.integration.test_several_devices import PROGRAM, PROGRAMS_RESULT, run

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(240)]

_KERNELS = """
import json
import numpy as np
import cupy as cp

add = cp.RawKernel('extern "C" __global__ void add(double* x, int n, double by) {'
                   'int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] += by; }', "add")
scaled = cp.ElementwiseKernel("T x, T by", "T y", "y = x * by", "scaled")
host, found = np.arange(1 << 24, dtype="f8"), []
with cp.cuda.Device(0):
    there = cp.asarray(host)
for number in (1, 0, 1):
    with cp.cuda.Device(number):
        x = cp.asarray(there)
        for step in range(20):
            add((1 << 16,), (256,), (x, x.size, step / 2))
            x = scaled(x, 0.5)
        found.append(float(x.sum()))
expected = host.copy()
for step in range(20):
    expected = (expected + step / 2) * 0.5
with cp.cuda.Device(1):
    same = bool((cp.asarray(there).get() == host).all())
print(json.dumps([same, [one / expected.sum() for one in found]]))
"""


@pytest.fixture(scope="module", autouse=True)
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    root: Path = tmp_path_factory.mktemp("head")
    with cpu_pool(root, open_to_machines(devices="cuda")) as own, machine(own) as other:
        other.join(devices="cuda")
        wait_until(lambda: len({device.node for device in commands.status(own).devices}) == 2)
        yield


def test_a_program_with_gpus_of_two_machines() -> None:
    done = run("-c", PROGRAM, GPU_WORKBENCH_DEVICES="2", CUDA_VISIBLE_DEVICES="0")
    assert done.stderr == ""
    assert json.loads(done.stdout) == PROGRAMS_RESULT


def test_kernels_and_large_copies_on_both() -> None:
    done = run("-c", _KERNELS, GPU_WORKBENCH_DEVICES="2")
    assert done.stderr == ""
    same, ratios = json.loads(done.stdout)
    assert same
    assert ratios == pytest.approx([1.0] * 3, rel=1e-12)
