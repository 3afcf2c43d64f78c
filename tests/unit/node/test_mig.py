"""What the driver is asked about GPUs that are split, played from what H100 and A100 were seen to answer."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

from gpu_backend.node import mig_nvml
from gpu_backend.node.mig import DriverRefusal, Gpu, Instance, Mode, Profile, Status, device_nodes, in_sight
from gpu_backend.node.mig_nvml import NvmlMig
from tests.played_nvml import PlayedGpu, PlayedNvml, recorded

#: Name and number of each profile as NVIDIA's guide has them.
DOCUMENTED = {
    "h100_80gb": {
        "1g.10gb": 19, "1g.10gb+me": 20, "1g.20gb": 15, "2g.20gb": 14, "3g.40gb": 9, "4g.40gb": 5, "7g.80gb": 0,
    },
    "a100_40gb": {
        "1g.5gb": 19, "1g.5gb+me": 20, "1g.10gb": 15, "2g.10gb": 14, "3g.20gb": 9, "4g.20gb": 5, "7g.40gb": 0,
    },
}  # fmt: skip


class Bench:
    """One GPU and a driver that knows it."""

    def __init__(self, name: str = "h100_80gb", is_root: bool = True) -> None:
        self.played = PlayedGpu(recorded(name))
        self.library = PlayedNvml([self.played], is_root)
        self.driver = NvmlMig(self.library)

    @property
    def gpu(self) -> Gpu:
        [gpu] = self.driver.gpus()
        return gpu

    def profile(self, name: str) -> Profile:
        return {one.name: one for one in self.driver.profiles(self.gpu)}[name]

    def free(self) -> dict[str, int | None]:
        return {one.name: self.driver.free(self.gpu, one) for one in self.driver.profiles(self.gpu)}

    def create(self, *names: str) -> None:
        for name in names:
            self.driver.create(self.gpu, self.profile(name))

    def there(self) -> list[str]:
        return [one.profile for one in self.driver.instances(self.gpu)]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_profiles_have_the_names_and_numbers_of_the_guide(name: str) -> None:
    bench = Bench(name)
    assert {one.name: one.number for one in bench.driver.profiles(bench.gpu)} == DOCUMENTED[name]


def test_a_profile_says_how_large_it_is() -> None:
    assert Bench().profile("3g.40gb") == Profile(9, "3g.40gb", 2, 40448 << 20, 60)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_seven_of_the_smallest_fill_a_gpu(name: str) -> None:
    bench = Bench(name)
    smallest = next(iter(DOCUMENTED[name]))
    assert bench.free()[smallest] == 7
    bench.create(*[smallest] * 7)
    assert set(bench.free().values()) == {0}
    assert len({one.uuid for one in bench.driver.instances(bench.gpu)}) == 7
    with pytest.raises(DriverRefusal) as refused:
        bench.create(smallest)
    assert refused.value.status == Status.INSUFFICIENT_RESOURCES


def test_what_is_there_leaves_room_for_what_lies_beside_it() -> None:
    bench = Bench()
    bench.create("3g.40gb")
    assert bench.free() == {
        "1g.10gb": 4, "1g.10gb+me": 1, "1g.20gb": 2, "2g.20gb": 2, "3g.40gb": 1, "4g.40gb": 1, "7g.80gb": 0,
    }  # fmt: skip
    bench.create("2g.20gb", "1g.20gb")
    assert bench.there() == ["3g.40gb", "2g.20gb", "1g.20gb"]
    assert set(bench.free().values()) == {0}


def test_an_instance_is_a_device_by_its_uuid_with_memory_of_its_own() -> None:
    bench = Bench()
    bench.create("3g.40gb", "2g.20gb")
    first, second = bench.driver.instances(bench.gpu)
    assert first.uuid.startswith("MIG-")
    assert first.uuid != second.uuid
    # As an H100 numbers them, and has them in its folder of capabilities.
    assert (first.gpu_instance, first.compute_instance, first.total_bytes) == (2, 0, 40448 << 20)
    assert (second.profile, second.gpu, second.gpu_instance) == ("2g.20gb", bench.gpu.uuid, 3)


def test_what_is_removed_is_gone_with_both_its_halves_and_leaves_its_room() -> None:
    bench = Bench()
    bench.create("3g.40gb", "3g.40gb")
    first, second = bench.driver.instances(bench.gpu)
    bench.driver.destroy(first)
    assert bench.driver.instances(bench.gpu) == [second]
    assert bench.free()["3g.40gb"] == 1
    bench.create("3g.40gb")
    assert first in bench.driver.instances(bench.gpu)  # what is made again has the name that it had


def test_a_gpu_instance_that_others_compute_in_stays_when_one_of_them_goes() -> None:
    bench = Bench()
    bench.create("3g.40gb")
    bench.played.instances[0].computes.append(1)
    first, second = bench.driver.instances(bench.gpu)
    bench.driver.destroy(first)
    assert bench.driver.instances(bench.gpu) == [second]
    bench.driver.destroy(second)
    assert not bench.played.instances


def test_what_computes_is_not_removed() -> None:
    bench = Bench()
    bench.create("1g.10gb")
    bench.played.instances[0].is_busy = True
    [there] = bench.driver.instances(bench.gpu)
    with pytest.raises(DriverRefusal) as refused:
        bench.driver.destroy(there)
    assert refused.value.status == Status.IN_USE
    assert bench.driver.instances(bench.gpu) == [there]


@pytest.mark.parametrize(
    "half", ["nvmlGpuInstanceCreateComputeInstance", "nvmlGpuInstanceGetComputeInstanceProfileInfo"]
)
def test_nothing_stays_half_made(half: str) -> None:
    bench = Bench()
    bench.library.failing[half] = 999
    with pytest.raises(DriverRefusal, match=rf"{half} \(status 999\)"):
        bench.create("2g.20gb")
    assert not bench.played.instances


def test_who_is_not_root_sees_what_is_there_and_changes_nothing() -> None:
    bench = Bench()
    bench.create("1g.20gb")
    bench.library.is_root = False
    assert bench.there() == ["1g.20gb"]
    assert set(bench.free().values()) == {None}
    for change in (lambda: bench.create("1g.10gb"), lambda: bench.driver.destroy(bench.driver.instances(bench.gpu)[0])):
        with pytest.raises(DriverRefusal) as refused:
            change()
        assert refused.value.status == Status.NO_PERMISSION


def test_modes_are_told_apart() -> None:
    whole = PlayedGpu(recorded("h100_80gb"), is_split=False)
    waiting = PlayedGpu(recorded("a100_40gb"), is_split=False, is_to_be_split=True)
    plain = PlayedGpu(recorded("h100_80gb"), is_split=False, can_be_split=False)
    driver = NvmlMig(PlayedNvml([whole, waiting, plain]))
    modes = [(gpu.mode, gpu.pending) for gpu in driver.gpus()]
    assert modes == [(Mode.OFF, Mode.OFF), (Mode.OFF, Mode.ON), (Mode.NEVER, Mode.NEVER)]
    assert [gpu.minor for gpu in driver.gpus()] == [0, 3, 0]
    assert all(driver.instances(gpu) == [] for gpu in driver.gpus())
    with pytest.raises(DriverRefusal) as refused:
        driver.create(driver.gpus()[0], driver.profiles(driver.gpus()[0])[0])
    assert refused.value.status == Status.NOT_SUPPORTED


def test_structs_are_laid_out_as_the_header_has_them() -> None:
    assert ctypes.sizeof(mig_nvml._GpuProfile) == 0x98
    assert (mig_nvml._GpuProfile.memory_mib.offset, mig_nvml._GpuProfile.name.offset) == (48, 56)
    assert ctypes.sizeof(mig_nvml._ComputeProfile) == 36
    assert ctypes.sizeof(mig_nvml._Memory) == 24


def test_where_there_is_no_library_or_an_old_one_it_is_said(tmp_path: Path) -> None:
    assert NvmlMig.of("libnvidia-ml-nowhere.so.1") == "there is no NVML (libnvidia-ml-nowhere.so.1)"
    source, library = tmp_path / "old.c", tmp_path / "libold.so"
    source.write_text("int nvmlInit_v2(void) { return 0; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    assert NvmlMig.of(str(library)) == f"this NVML ({library}) is too old for MIG"


GPUS = [Gpu(0, "GPU-a", "A", 0, Mode.ON, Mode.ON), Gpu(1, "GPU-b", "B", 1, Mode.OFF, Mode.OFF)]
PARTS = [Instance("MIG-1", "GPU-a", "1g.10gb", 7, 0, 10), Instance("MIG-2", "GPU-a", "2g.20gb", 3, 0, 20)]


@pytest.mark.parametrize(
    ("chosen", "whole", "parts"),
    [
        (None, "GPU-b", PARTS),
        ("MIG-2, GPU-b", "GPU-b", PARTS[1:]),
        ("1", "1", []),
        ("MIG-1", "", PARTS[:1]),
        ("", "", []),
    ],
)
def test_whole_gpus_are_asked_for_apart_from_instances(chosen: str | None, whole: str, parts: list[Instance]) -> None:
    assert in_sight(GPUS, PARTS, chosen) == (whole, parts)


def test_an_instance_is_opened_by_its_gpu_and_its_own_capabilities(tmp_path: Path) -> None:
    folder = tmp_path / "gpu1" / "mig" / "gi3"
    (folder / "ci0").mkdir(parents=True)
    gpu = GPUS[0]._replace(minor=1)
    (folder / "access").write_text("DeviceFileMinor: 30\nDeviceFileMode: 292\nDeviceFileModify: 1\n")
    assert device_nodes(gpu, PARTS[1], tmp_path) == []
    (folder / "ci0" / "access").write_text("DeviceFileMinor: 31\nDeviceFileMode: 292\n")
    caps = ["/dev/nvidia-caps/nvidia-cap30", "/dev/nvidia-caps/nvidia-cap31"]
    assert device_nodes(gpu, PARTS[1], tmp_path) == ["/dev/nvidia1", *caps]
    assert device_nodes(gpu, PARTS[0], tmp_path) == []
