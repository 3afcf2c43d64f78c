"""Which devices a node offers, by what a played CUDA driver says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from gpu_backend.node import cuda_probe, inventory
from gpu_backend.node.mig_nvml import NvmlMig
from gpu_backend.wire.errors import PoolRefusal
from tests.played_driver import NVML, install_driver, install_nvml
from tests.played_nvml import PlayedGpu, PlayedNvml, recorded


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


#: What the played CUDA driver has to say of a GPU: it knows two of everything, whatever is chosen.
WHOLE = inventory.Found(0, "cuda", "GPU zero", "GPU-" + "10" * 16, 1 << 40, "GPU-10101010-1010-1010-1010-101010101010")


def test_a_gpu_that_is_split_is_offered_by_its_instances(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_driver(tmp_path, status=0)
    install_nvml(tmp_path, is_split=True)
    small, large = "MIG-33333333-3333-5333-b333-333333333333", "MIG-44444444-4444-5444-b444-444444444444"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", f"{small},{large}")
    assert found(tmp_path, monkeypatch) == (
        inventory.Found(0, "cuda", "GPU one MIG 1g.10gb", small, 3 << 33, small),
        inventory.Found(1, "cuda", "GPU one MIG 3g.40gb", large, 4 << 33, large),
    )


def test_whole_gpus_are_offered_beside_instances(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA is shown the whole GPUs alone, by their UUIDs."""
    install_driver(tmp_path, status=0)
    install_nvml(tmp_path, is_split=True)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    devices = found(tmp_path, monkeypatch)
    assert [device.name for device in devices] == ["GPU zero", "GPU one MIG 1g.10gb", "GPU one MIG 3g.40gb"]
    assert devices[0] == WHOLE


def test_where_no_gpu_is_split_nothing_else_is_asked_of_nvml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_driver(tmp_path, status=0)
    install_nvml(tmp_path, is_split=False)
    assert [device.name for device in found(tmp_path, monkeypatch)] == ["GPU zero", "GPU one"]


def test_an_instance_that_cuda_took_by_a_number_is_known_by_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_driver(tmp_path, status=0)
    part = "MIG-11111111-1111-1111-1111-111111111111"
    source = NVML.replace("MIG-33333333-3333-5333-b333-333333333333", part)
    install_nvml(tmp_path, is_split=True, source=source)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert [(device.name, device.visible) for device in found(tmp_path, monkeypatch)] == [
        ("GPU zero", WHOLE.visible), ("GPU one MIG 1g.10gb", part)
    ]  # fmt: skip


def test_what_is_said_of_an_instance_is_what_the_inventory_reads() -> None:
    driver = NvmlMig(PlayedNvml([PlayedGpu(recorded("h100_80gb"))]))
    driver.create(driver.gpus()[0], driver.profiles(driver.gpus()[0])[0])
    gpus, [part] = cuda_probe.split(driver)
    told = cuda_probe.as_device(part, gpus, Path("/nonexistent"))
    assert told["uuid"] == told["visible"] == part.uuid
    assert told["name"] == "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
    assert msgspec.convert({**told, "ordinal": 4}, inventory.Found).is_part


def test_gpus_that_are_split_into_nothing_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_driver(tmp_path, status=0)
    install_nvml(tmp_path, is_split=True)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-55555555-5555-5555-b555-555555555555")
    assert [device.kind for device in found(tmp_path, monkeypatch)] == ["cpu"]
    with pytest.raises(PoolRefusal, match=r"are split \(MIG\), and no instance is; see `workbench pool mig`"):
        inventory.devices("cuda", 1)


def test_a_gpu_that_fails_takes_no_other_with_it() -> None:
    library = PlayedNvml([PlayedGpu(recorded("h100_80gb")), PlayedGpu(recorded("a100_40gb"))])
    driver = NvmlMig(library)
    first, second = driver.gpus()
    for gpu in (first, second):
        driver.create(gpu, driver.profiles(gpu)[0])
    library.failing["nvmlDeviceGetMaxMigDeviceCount"] = 15  # of the first, which is asked first
    gpus, instances = cuda_probe.split(driver)
    assert (gpus, [part.gpu for part in instances]) == ([first, second], [second.uuid])
    library.failing["nvmlDeviceGetMinorNumber"] = 15
    assert cuda_probe.split(driver)[0] == [second]
    library.failing["nvmlDeviceGetCount_v2"] = 999
    assert cuda_probe.split(driver) == ([], [])


def dashed(byte: str) -> str:
    return "GPU-" + "-".join(byte * count for count in (4, 2, 2, 2, 6))


def test_the_driver_tells_which_nodes_are_a_gpus_own(tmp_path: Path) -> None:
    information = tmp_path / "0000:3b:00.0" / "information"
    information.parent.mkdir()
    information.write_text("Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-????????\nDevice Minor: \t 3\n")
    assert cuda_probe.nodes("0000:3B:00.0", "GPU-1", tmp_path) == ["/dev/nvidia3"]
    assert cuda_probe.nodes("0000:3B:00.0", "MIG-1", tmp_path) == []
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
