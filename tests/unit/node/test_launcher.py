"""Executors' directories: private, found again, swept away."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

import msgspec
import pytest

from gpu_backend.engine import detached
from gpu_backend.node import launcher
from gpu_backend.node import settings as node_settings
from gpu_backend.node.inventory import Found
from gpu_backend.node.settings import NodeSettings
from gpu_backend.node.walls import gpu_devices, level
from gpu_backend.transport import local
from gpu_backend.wire.errors import PoolRefusal
from gpu_backend.wire.orders import Assign
from tests.integration.notebook_pool import wait_until
from tests.spare_ports import spare_ports

CPU = Found(0, "cpu", "a CPU", "cpu-0", 1 << 30)


@pytest.fixture
def settings(tmp_path: Path) -> NodeSettings:
    return NodeSettings(
        node="n", gateway="ipc://g", gateway_key="k" * 40, key_file="k", runtime_dir=str(tmp_path),
        log_dir=str(tmp_path / "logs"), cache_dir=str(tmp_path / "c"), orphan_seconds=7.0, kept_bytes=5,
        executor_command=(sys.executable, "-c", "import signal; signal.pause()"),
    )  # fmt: skip


PART = Found(
    5, "cuda", "a GPU MIG 1g.10gb", "MIG-1", 1 << 30, "MIG-1", ("/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap66")
)


def test_an_executor_on_a_part_of_a_gpu_sees_and_opens_that_part_alone(settings: NodeSettings) -> None:
    directory, process = launcher.launch(settings, b"a" * 40, [PART])
    environment = Path(f"/proc/{process.pid}/environ")
    wait_until(lambda: b"CUDA_VISIBLE_DEVICES=MIG-1" in environment.read_bytes().split(b"\0"))
    detached.end(process, 1.0)
    told = launcher.config_in(directory)
    assert told is not None
    assert (told.ordinal, told.on_node) == (0, (5,))
    launcher.sweep(directory, None)
    assert gpu_devices(PART) == ("/dev/nvidiactl", "/dev/nvidia-uvm", *PART.nodes)
    untold = msgspec.structs.replace(PART, nodes=())
    assert gpu_devices(untold)[-1] == "/dev/nvidia-caps"
    kernel = level(settings, PART)
    assert level(settings, untold) == (f"{kernel}, all GPUs within reach" if kernel else "")


def test_an_executor_is_told_all_it_needs_in_a_private_file(settings: NodeSettings) -> None:
    directory, process = launcher.launch(settings, b"a" * 40, [CPU])
    detached.end(process, 1.0)
    config = directory / "config.json"
    told = json.loads(config.read_text())
    assert (len(told.pop("secret")), len(told.pop("certificate"))) == (64, 64)
    near, far = told.pop("endpoints")
    assert near.startswith(f"unix-abstract://{local.here()}/{directory.name}-")
    assert far.startswith("tls://127.0.0.1:")
    assert (directory / "own" / "tls.pem").stat().st_mode & 0o777 == 0o600
    assert set(told.pop("descriptors")) == {"local", "control", "far", "report", "other_reports"}
    walls = told.pop("walls")
    assert walls is None or (walls["devices"], walls["private"][0]) == ([], settings.runtime_dir)
    defaults = {"memory_limit_bytes": 0, "credit_ops": 16_384, "credit_bytes": 256 << 20}
    assert told == defaults | {
        "device_kind": "cpu", "ordinal": 0, "devices": 1, "on_node": [0], "agent_key": "a" * 40, "orphan_seconds": 7.0,
        "own": f"{directory}/own", "has_arbiter": True, "prepared": "", "kept_bytes": 5, "group": "", "daemon": "",
        "passes": ["store", "reuse", "segments", "products", "replay", "reductions"],
    }  # fmt: skip
    assert (config.stat().st_mode & 0o777, directory.stat().st_mode & 0o777) == (0o600, 0o700)
    launcher.sweep(directory, None)
    assert not directory.exists()


def test_executors_listen_on_the_ports_that_they_may_have(settings: NodeSettings) -> None:
    port = spare_ports(2)[0]
    with socket.create_server(("127.0.0.1", port)):
        few = msgspec.structs.replace(settings, executor_ports=(port, port + 1))
        directory, process = launcher.launch(few, b"a" * 40, [CPU])
        try:
            config = launcher.config_in(directory)
            assert config is not None
            assert config.endpoints[1] == f"tls://127.0.0.1:{port + 1}"
            with pytest.raises(OSError, match=rf"all 2 ports of executor_ports \({port}-{port + 1}\) are taken"):
                launcher.launch(few, b"a" * 40, [CPU])
            assert list(launcher.directories(settings.runtime_dir)) == [directory]
        finally:
            detached.end(process, 1.0)
            launcher.sweep(directory, None)


def test_where_the_driver_shares_there_is_no_arbiter_to_wake(settings: NodeSettings) -> None:
    ungated = msgspec.structs.replace(settings, policy="fifo", device_policies={0: "driver"})
    directory, process = launcher.launch(ungated, b"a" * 40, [CPU])
    detached.end(process, 1.0)
    config = launcher.config_in(directory)
    assert config is not None
    assert not config.has_arbiter
    launcher.sweep(directory, None)


def test_an_executor_that_has_ended_before_anybody_looked_is_quoted(
    settings: NodeSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = detached.ProcessId.of

    def find_late(pid: int) -> detached.ProcessId | None:
        wait_until(lambda: find(pid) is None)
        return None

    monkeypatch.setattr(detached.ProcessId, "of", find_late)
    for code, said in (("raise SystemExit('No room.')", "; its log ends: No room$"), ("pass", " and said nothing$")):
        ending = msgspec.structs.replace(settings, executor_command=(sys.executable, "-c", code))
        with pytest.raises(ProcessLookupError, match=f"ended at once{said}"):
            launcher.launch(ending, b"a" * 40, [CPU])
    assert list(launcher.directories(settings.runtime_dir)) == []


def test_a_running_executor_is_found_again_and_a_dead_one_is_not(settings: NodeSettings) -> None:
    directory, process = launcher.launch(settings, b"a" * 40, [CPU])
    assert list(launcher.directories(settings.runtime_dir)) == [directory]
    assert launcher.process_in(directory) == process
    detached.end(process, 1.0)
    assert launcher.process_in(directory) is None


def test_an_executor_whose_start_was_not_noted_has_noted_itself(settings: NodeSettings) -> None:
    code = "import sys, signal, time, pathlib; from gpu_backend.executor import config\n"
    code += "while not pathlib.Path(sys.argv[1], 'unlinked').exists(): time.sleep(0.01)\n"
    code += "config.note_process(pathlib.Path(sys.argv[1])); signal.pause()"
    noting = msgspec.structs.replace(settings, executor_command=(sys.executable, "-c", code))
    directory, process = launcher.launch(noting, b"a" * 40, [CPU])
    (directory / "process.json").unlink()
    (directory / "unlinked").touch()
    try:
        wait_until(lambda: launcher.process_in(directory) == process)
    finally:
        detached.end(process, 1.0)


def test_an_executor_has_the_sockets_that_it_was_told_of_and_no_other_has_them(settings: NodeSettings) -> None:
    directory, process = launcher.launch(settings, b"a" * 40, [CPU])
    try:
        config = launcher.config_in(directory)
        assert config is not None
        for number in (config.descriptors.local, config.descriptors.control, config.descriptors.far):
            theirs = os.readlink(f"/proc/{process.pid}/fd/{number}")
            assert theirs.startswith("socket:")
            assert theirs not in [os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
        with socket.create_connection(("127.0.0.1", int(config.endpoints[1].rpartition(":")[2])), 5):
            pass
    finally:
        detached.end(process, 1.0)


def test_a_config_with_a_word_that_nobody_knows_is_none(settings: NodeSettings) -> None:
    directory, process = launcher.launch(settings, b"a" * 40, [CPU])
    detached.end(process, 1.0)
    told = json.loads((directory / "config.json").read_text())
    assert launcher.config_in(directory) is not None
    (directory / "config.json").write_text(json.dumps({**told, "gates": "a word of another version"}))
    assert launcher.config_in(directory) is None


def test_an_assignment_is_kept_for_the_next_agent(tmp_path: Path) -> None:
    order = Assign("s", 2, "k" * 40, 5, 60.0)
    assert launcher.assignment_in(tmp_path) is None
    launcher.note_assignment(tmp_path, order)
    assert launcher.assignment_in(tmp_path) == order
    assert not launcher.is_serving(tmp_path)
    launcher.note_serving(tmp_path)
    assert launcher.is_serving(tmp_path)


def test_half_written_files_are_not_there_yet(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"device_kind": 1')
    (tmp_path / "assign.json").write_text('["assign", "s"')
    assert launcher.config_in(tmp_path) is None
    assert launcher.assignment_in(tmp_path) is None


def test_the_last_words_are_the_last_line(tmp_path: Path) -> None:
    assert launcher.last_words(tmp_path) == ""
    (tmp_path / "log").write_bytes(b"x" * 10_000 + b"\nTraceback\n  in it\nMemoryError: \xff too much\n\n")
    assert launcher.last_words(tmp_path) == "MemoryError: \ufffd too much"


def test_sweeping_keeps_the_logs_of_the_last_crashes(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    for number in range(25):
        directory = tmp_path / f"{number:08x}"
        directory.mkdir()
        (directory / "log").write_text(str(number))
        launcher.sweep(directory, logs)
        assert not directory.exists()
    assert len(list(logs.iterdir())) == 20
    quiet = tmp_path / "quiet"
    quiet.mkdir()
    (quiet / "log").write_text("nothing to see")
    launcher.sweep(quiet, None)
    assert len(list(logs.iterdir())) == 20


def test_settings_that_are_not_there_say_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(PoolRefusal, match="workbench pool up"):
        node_settings.read(tmp_path)
