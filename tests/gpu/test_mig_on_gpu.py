"""What a real driver says of MIG. It is only asked: no GPU's settings are changed, nor an instance made or removed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from gpu_backend.node.inventory import devices
from gpu_backend.node.mig import Mode
from gpu_backend.node.mig_nvml import NvmlMig
from tests.played_nvml import recorded

pytestmark = pytest.mark.gpu

#: Models of which answers were recorded.
RECORDED = {"NVIDIA H100 80GB HBM3": "h100_80gb", "NVIDIA A100-SXM4-40GB": "a100_40gb"}


@pytest.fixture
def driver() -> NvmlMig:
    found = NvmlMig.of()
    assert isinstance(found, NvmlMig), found
    return found


def smi(what: str) -> list[str]:
    command = ["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_gpus_and_their_modes_are_those_of_nvidia_smi(driver: NvmlMig) -> None:
    words = {"Enabled": Mode.ON, "Disabled": Mode.OFF, "[N/A]": Mode.NEVER}
    modes = [words[mode.strip()] for mode in smi("mig.mode.current")]
    gpus = driver.gpus()
    assert [(str(gpu.number), gpu.uuid, gpu.name) for gpu in gpus] == [
        tuple(part.strip() for part in line.split(",")) for line in smi("index,uuid,name")
    ]
    assert [gpu.mode for gpu in gpus] == modes


def test_what_a_model_can_be_split_into_is_what_was_recorded(driver: NvmlMig) -> None:
    """What is told of a GPU that is whole may be nothing; what is told is right."""
    for gpu in driver.gpus():
        told = {one.number: (one.name, one.most, one.multiprocessors) for one in driver.profiles(gpu)}
        if gpu.mode is Mode.NEVER:
            assert told == {}
        elif gpu.name in RECORDED and told:
            known = recorded(RECORDED[gpu.name])["profiles"]
            expected = {
                one["id"]: (one["name"].removeprefix("MIG "), one["instances"], one["multiprocessors"]) for one in known
            }
            assert {number: told.get(number) for number in expected} == expected


def test_whole_gpus_are_devices_and_split_ones_are_not(driver: NvmlMig) -> None:
    gpus = driver.gpus()
    offered = devices("cuda", 0)
    whole = {gpu.uuid for gpu in gpus if gpu.mode is not Mode.ON}
    assert {one.visible for one in offered if not one.is_part} <= whole
    parts = {part.uuid for gpu in gpus for part in driver.instances(gpu)}
    assert {one.uuid for one in offered if one.is_part} == parts


def test_listing_changes_nothing(driver: NvmlMig) -> None:
    before, modes = driver.gpus(), smi("mig.mode.current,mig.mode.pending")
    command = [sys.executable, "-m", "workbench", "pool", "mig", "list", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)["gpus"]
    assert [(one["gpu"], one["uuid"], one["mode"]) for one in told] == [
        (gpu.number, gpu.uuid, gpu.mode.value) for gpu in before
    ]
    assert (driver.gpus(), smi("mig.mode.current,mig.mode.pending")) == (before, modes)


def test_a_whole_gpu_is_not_split_by_asking_for_instances(driver: NvmlMig) -> None:
    whole = [gpu for gpu in driver.gpus() if gpu.mode is Mode.OFF]
    if not whole:
        pytest.skip("no GPU here is whole and can be split")
    command = [sys.executable, "-m", "workbench", "pool", "mig", "create", str(whole[0].number), "1g.10gb"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"nvidia-smi -i {whole[0].number} -mig 1" in done.stderr
    assert driver.gpus()[whole[0].number].mode is Mode.OFF
