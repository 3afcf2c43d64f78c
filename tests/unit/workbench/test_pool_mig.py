"""``workbench pool mig`` as people and programs see it."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest

from gpu_backend.node.mig_nvml import NvmlMig
from gpu_backend.wire.errors import PoolRefusal
from tests.played_nvml import PlayedGpu, PlayedNvml, recorded
from workbench.cli import main, parsed
from workbench.commands import pool_mig


@pytest.fixture
def driver() -> NvmlMig:
    return NvmlMig(PlayedNvml([PlayedGpu(recorded("h100_80gb")), PlayedGpu(recorded("a100_40gb"), is_split=False)]))


def said(root: Path, *words: str) -> Namespace:
    return parsed(["pool", "mig", *words, "--state", str(root / "pool")])


def test_nothing_said_lists_gpus_profiles_and_instances(
    tmp_path: Path, driver: NvmlMig, capsys: pytest.CaptureFixture[str]
) -> None:
    driver.create(driver.gpus()[0], driver.profiles(driver.gpus()[0])[0])
    assert pool_mig.carry_out(said(tmp_path), driver) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["0", "NVIDIA", "H100", "80GB", "HBM3", "split"] in lines
    assert ["1", "NVIDIA", "A100-SXM4-40GB", "whole"] in lines
    assert ["0", "1g.10gb", "19", "9.8", "GiB", "16", "6", "7"] in lines
    assert ["1", "1g.5gb", "19", "4.8", "GiB", "14", "-", "7"] in lines
    uuid = driver.instances(driver.gpus()[0])[0].uuid
    assert ["0", "1g.10gb", uuid, "9.8", "GiB", "-", "none"] in lines


def test_what_was_made_is_said_and_told_to_programs(
    tmp_path: Path, driver: NvmlMig, capsys: pytest.CaptureFixture[str]
) -> None:
    pool_mig.carry_out(said(tmp_path, "create", "0", "3g.40gb", "1g.10gb"), driver)
    first, second = driver.instances(driver.gpus()[0])
    assert f"made: 3g.40gb ({first.uuid}), 1g.10gb ({second.uuid})." in capsys.readouterr().out
    pool_mig.carry_out(said(tmp_path, "destroy", first.uuid, "--json"), driver)
    told = json.loads(capsys.readouterr().out)
    assert (told["changed"], told["then"]) == ([first.uuid], [])
    [instance] = told["gpus"][0]["instances"]
    assert (instance["uuid"], instance["sessions"], instance["device"]) == (second.uuid, [], None)
    assert told["gpus"][1]["mode"] == "whole"
    pool_mig.carry_out(said(tmp_path, "destroy", "--all", "0"), driver)
    assert f"removed: 1g.10gb ({second.uuid})." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (["create", "0"], "create GPU PROFILE"),
        (["create", "0", "1g.10gb", "--all", "0"], "create GPU PROFILE"),
        (["destroy"], "destroy INSTANCE"),
        (["destroy", "MIG-1", "--all", "0"], "destroy INSTANCE"),
        (["destroy", "MIG-1", "MIG-2"], "destroy INSTANCE"),
        (["list", "0"], "takes no names"),
    ],
)
def test_what_is_missing_or_too_much_is_said(tmp_path: Path, driver: NvmlMig, words: list[str], usage: str) -> None:
    with pytest.raises(PoolRefusal, match=usage):
        pool_mig.carry_out(said(tmp_path, *words), driver)


def test_without_the_driver_s_library_there_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NvmlMig, "of", classmethod(lambda cls: "there is no NVML (libnvidia-ml.so.1)"))
    assert main(["pool", "mig", "--state", str(tmp_path)]) == 1
    assert "GPUs cannot be looked at: there is no NVML" in capsys.readouterr().err
