"""A device keeps its number while others come and go."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gpu_backend.engine.detached import ProcessId, write_identity
from gpu_backend.executor.config import CONFIG, PROCESS, Descriptors, ExecutorConfig
from gpu_backend.node import launcher
from gpu_backend.node.inventory import Found
from gpu_backend.node.numbering import held_numbers, noted_numbers, numbered, renumber


def found(*uuids: str) -> list[Found]:
    return [Found(n, "cuda", "a GPU", uuid, 1 << 30, uuid) for n, uuid in enumerate(uuids)]


def numbers(devices: tuple[Found, ...]) -> dict[str, int]:
    return {device.uuid: device.ordinal for device in devices}


def test_where_nothing_was_noted_the_driver_s_numbers_count() -> None:
    assert numbers(numbered(found("a", "b", "c"), {}, ())) == {"a": 0, "b": 1, "c": 2}


def test_who_stays_keeps_their_number_and_who_comes_takes_a_free_one() -> None:
    assert numbers(numbered(found("b", "x", "y"), {"a": 0, "b": 1}, ())) == {"b": 1, "x": 0, "y": 2}


def test_a_number_that_an_executor_still_has_is_nobody_else_s() -> None:
    assert numbers(numbered(found("b", "x"), {"a": 0, "b": 1}, {0})) == {"b": 1, "x": 2}


def test_devices_come_in_the_order_of_their_numbers() -> None:
    assert [device.ordinal for device in numbered(found("b", "a"), {"a": 0, "b": 1}, ())] == [0, 1]


def test_numbers_are_noted_and_those_of_who_is_gone_are_free_again(tmp_path: Path) -> None:
    runtime = str(tmp_path)
    renumber(tmp_path, found("a", "b"), runtime)
    assert noted_numbers(tmp_path) == {"a": 0, "b": 1}
    assert numbers(renumber(tmp_path, found("b", "x"), runtime)) == {"b": 1, "x": 0}
    assert noted_numbers(tmp_path) == {"b": 1, "x": 0}


def test_a_device_that_is_gone_keeps_its_number_while_an_executor_runs_on_it(tmp_path: Path) -> None:
    renumber(tmp_path, found("a", "b"), str(tmp_path))
    directory = launcher.executors_dir(str(tmp_path)) / "x"
    directory.mkdir()
    config = ExecutorConfig(
        device_kind="cuda", on_node=(0,), own="", agent_key="", endpoints=(), secret="", certificate="",
        descriptors=Descriptors(local=0, control=0, far=0, report=0),
    )  # fmt: skip
    (directory / CONFIG).write_bytes(msgspec.json.encode(config))
    write_identity(directory / PROCESS, ProcessId.mine())
    assert numbers(renumber(tmp_path, found("b", "x"), str(tmp_path))) == {"b": 1, "x": 2}
    assert noted_numbers(tmp_path) == {"a": 0, "b": 1, "x": 2}
    assert numbers(renumber(tmp_path, found("a", "b", "x"), str(tmp_path))) == {"a": 0, "b": 1, "x": 2}


def test_numbers_that_cannot_be_noted_count_all_the_same(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "devices.json").mkdir()  # nothing can be written there
    assert numbers(renumber(tmp_path, found("a"), str(tmp_path))) == {"a": 0}
    assert "the numbers of devices cannot be noted" in caplog.text


def test_a_note_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    (tmp_path / "devices.json").write_text('{"a": "first"}')
    assert noted_numbers(tmp_path) == {}
    assert held_numbers(str(tmp_path)) == set()
