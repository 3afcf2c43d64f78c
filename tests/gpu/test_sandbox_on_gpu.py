"""CuPy and its libraries compute inside the sandbox of an executor, on its own GPU, and no other GPU can be opened."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_backend.executor import sandbox
from gpu_backend.node import inventory
from gpu_backend.node.environment import executor_environment
from gpu_backend.node.walls import gpu_devices

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

INSIDE = """
import glob, json, os, resource, sys, time
from gpu_backend.executor import sandbox
own, devices = sys.argv[1], json.loads(sys.argv[2])
if devices:
    sandbox.enter(own, sandbox.Walls(devices=tuple(devices)))
import cupy as cp, cupyx.scipy.sparse as sparse
cp.zeros(1)  # CUDA has begun
if devices:
    sandbox.seal()
x = cp.arange(1 << 16, dtype="f8")
add = cp.RawKernel('extern "C" __global__ void f(float* o) { o[threadIdx.x] = threadIdx.x * 2.5f; }', "f")
out = cp.zeros(32, "f4")
add((1,), (32,), (out,))
pinned = cp.cuda.alloc_pinned_memory(1 << 20)
found = {
    "blas": float(cp.eye(64).dot(cp.ones(64)).sum()),
    "fft": abs(complex(cp.fft.fft(x)[0])),
    "solver": float(cp.linalg.svd(cp.eye(16))[1].sum()),
    "sparse": float((sparse.eye(8, format="csr") @ cp.ones(8)).sum()),
    "nvrtc": float(out[3]),
    "random": float(cp.random.RandomState(1).rand(8).sum()),
    "devices": cp.cuda.runtime.getDeviceCount(),
}
before = resource.getrusage(resource.RUSAGE_SELF)
time.sleep(1)
after = resource.getrusage(resource.RUSAGE_SELF)
found["idle_seconds"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
opened = []
for path in sorted(glob.glob("/dev/nvidia[0-9]*") or [f"/dev/nvidia{n}" for n in range(16)]):
    try:
        os.close(os.open(path, os.O_RDWR))
        opened.append(path)
    except OSError:
        pass
found["opened"] = opened
try:
    cp.cuda.runtime.ipcOpenMemHandle(bytes(64))
    found["forged"] = "opened"
except cp.cuda.runtime.CUDARuntimeError:
    found["forged"] = "refused"
print(json.dumps(found))
"""


def run(own: Path, device: inventory.Found, devices: tuple[str, ...]) -> dict[str, object]:
    own.mkdir(mode=0o700)
    environment = executor_environment(own, [device], {"PYTHONPATH": ":".join(filter(None, sys.path))})
    command = [sys.executable, "-c", INSIDE, str(own), json.dumps(devices)]
    done = subprocess.run(command, env=environment, cwd=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.skipif(not sandbox.level(), reason="this system cannot shut a process in")
def test_all_of_cupy_computes_inside_and_sees_one_gpu(tmp_path: Path) -> None:
    gpus = inventory.devices("cuda", 1)
    assert all(len(gpu.nodes) == 1 for gpu in gpus), "the driver tells which device node is whose"
    assert len({gpu.nodes for gpu in gpus}) == len(gpus)
    for gpu in gpus:
        outside = run(tmp_path / f"out{gpu.ordinal}", gpu, ())
        inside = run(tmp_path / f"in{gpu.ordinal}", gpu, gpu_devices(gpu))
        assert inside.pop("opened") == list(gpu.nodes)
        assert set(gpu.nodes) <= set(outside.pop("opened"))  # type: ignore[call-overload]
        assert inside.pop("forged") == outside.pop("forged") == "refused"
        assert inside.pop("idle_seconds") < 0.2, "no thread of CUDA spins"  # type: ignore[operator]
        outside.pop("idle_seconds")
        assert inside == outside
        assert inside["devices"] == 1
