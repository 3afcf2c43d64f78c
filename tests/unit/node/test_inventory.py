"""Which devices a node offers, by what a played CUDA driver says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from gpu_backend.node import cuda_probe, inventory
from gpu_backend.wire.errors import PoolRefusal

#: A CUDA driver of two GPUs, as a C library: what the probe loads by name.
DRIVER = r"""
#include <string.h>
int cuInit(unsigned f) { return STATUS; }
int cuDeviceGetCount(int *n) { *n = 2; return 0; }
int cuDeviceGet(int *d, int o) { *d = o; return 0; }
int cuDeviceGetName(char *s, int n, int d) { strncpy(s, d ? "GPU one" : "GPU zero", n); return 0; }
int cuDeviceTotalMem_v2(size_t *b, int d) { *b = (size_t)(d + 1) << 40; return 0; }
int cuDeviceGetPCIBusId(char *s, int n, int d) { strncpy(s, d ? "0000:AF:00.0" : "0000:3B:00.0", n); return 0; }
int cuDeviceCanAccessPeer(int *can, int d, int peer) { *can = d != peer; return 0; }
int cuDeviceGetUuid_v2(unsigned char *u, int d) { memset(u, 16 + d, 16); return 0; }
"""


def install_driver(directory: Path, status: int) -> None:
    source = directory / "driver.c"
    source.write_text(DRIVER)
    library = directory / "libcuda.so.1"
    subprocess.run(["cc", f"-DSTATUS={status}", "-shared", "-fPIC", "-o", library, source], check=True)


def found(directory: Path, monkeypatch: pytest.MonkeyPatch, with_cupy: bool = True) -> tuple[inventory.Found, ...]:
    if with_cupy:
        (directory / "cupy.py").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", str(directory))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(directory), *sys.path]))
    return inventory.devices("auto", 1)


def test_the_driver_s_gpus_are_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_driver(tmp_path, status=0)
    devices = found(tmp_path, monkeypatch)
    assert devices == (
        inventory.Found(0, "cuda", "GPU zero", "GPU-" + "10" * 16, 1 << 40, dashed("10"), island="0"),
        inventory.Found(1, "cuda", "GPU one", "GPU-" + "11" * 16, 2 << 40, dashed("11"), island="0"),
    )


def dashed(byte: str) -> str:
    return "GPU-" + "-".join(byte * count for count in (4, 2, 2, 2, 6))


def test_the_driver_tells_which_nodes_are_a_gpus_own(tmp_path: Path) -> None:
    information = tmp_path / "0000:3b:00.0" / "information"
    information.parent.mkdir()
    information.write_text("Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-????????\nDevice Minor: \t 3\n")
    assert cuda_probe.nodes("0000:3B:00.0", "GPU-1", tmp_path) == ["/dev/nvidia3"]
    assert cuda_probe.nodes("0000:3B:00.0", "MIG-1", tmp_path) == ["/dev/nvidia3", "/dev/nvidia-caps"]
    assert cuda_probe.nodes("0000:AF:00.0", "GPU-1", tmp_path) == []
    information.write_text("Device Minor: \t ?\n")
    assert cuda_probe.nodes("0000:3B:00.0", "GPU-1", tmp_path) == []


def test_a_part_of_a_gpu_keeps_the_name_by_which_it_was_chosen() -> None:
    chosen = "MIG-11111111-2222-3333-4444-555555555555, GPU-6"
    assert cuda_probe.visible_name(0, bytes(16), chosen) == "MIG-11111111-2222-3333-4444-555555555555"
    assert cuda_probe.visible_name(1, bytes([0x11] * 16), chosen) == dashed("11")
    assert cuda_probe.visible_name(0, bytes([0x11] * 16), "") == dashed("11")


def test_a_driver_that_refuses_leaves_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_driver(tmp_path, status=100)
    assert [device.kind for device in found(tmp_path, monkeypatch)] == ["cpu"]
    with pytest.raises(PoolRefusal, match=r"cuInit \(status 100\)"):
        inventory.devices("cuda", 1)


def test_a_probe_that_breaks_leaves_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert [device.kind for device in inventory.devices("auto", 1)] == ["cpu"]
    with pytest.raises(PoolRefusal, match="asking the CUDA driver failed"):
        inventory.devices("cuda", 1)


def test_the_cpu_may_stand_for_several_devices() -> None:
    devices = inventory.devices("cpu", 3)
    assert [device.ordinal for device in devices] == [0, 1, 2]
    assert len({device.uuid for device in devices}) == 3
    assert all(device.total_bytes > 1 << 28 and device.name for device in devices)


def test_the_probe_s_answer_is_what_the_inventory_reads() -> None:
    done = subprocess.run([sys.executable, "-m", "gpu_backend.node.cuda_probe"], capture_output=True, check=True)
    assert set(msgspec.json.decode(done.stdout)) == {"devices", "problem"}


def test_gpus_that_reach_each_other_are_an_island() -> None:
    pairs = {(0, 2), (2, 0), (1, 3), (3, 1), (4, 0)}  # the last reaches one that does not reach it
    assert cuda_probe.islands(5, lambda one, other: (one, other) in pairs) == ["0", "1", "0", "1", ""]
    assert cuda_probe.islands(2, lambda one, other: False) == ["", ""]
