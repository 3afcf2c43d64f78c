"""`workbench doctor` when something is wrong: which check says so, and whether it says what to do."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from gpu_backend.wire.control import AskPool, CloseSession, Denied, FromGateway, OpenSession, ToGateway
from gpu_backend.wire.errors import RefusalCode
from gpu_backend.wire.views import DeviceView, PoolView
from kernelproxy import settings
from kernelproxy.settings import CONFIG_VARIABLE, config_path
from tests.unit.workbench.scripted_gateway import ScriptedGateway, a_ticket, obliging
from workbench import diagnosis
from workbench.diagnosis import diagnose
from workbench.finding import Finding, State
from workbench.local_gpu import LocalGpu


@pytest.fixture(autouse=True)
def _no_probing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave this machine's GPU alone: looking at it starts a process."""
    monkeypatch.setattr(diagnosis, "probe", lambda: LocalGpu(reason="none", remedy="none is needed"))


def findings() -> dict[str, Finding]:
    return {one.subject: one for one in diagnose()}


def problems(found: dict[str, Finding]) -> Iterator[str]:
    return (subject for subject, one in found.items() if one.state is State.PROBLEM)


def test_no_pool_is_no_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path / "none.toml"))
    found = findings()
    assert list(problems(found)) == []
    assert found["pool"].state is State.NOTE
    assert "workbench lab" in found["pool"].remedy


def test_a_place_for_kernels_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path / "none.toml"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "file" / "runtime"))
    found = findings()
    assert list(problems(found)) == ["folders"]
    assert found["folders"].found == f"nothing can be written to {tmp_path}/file/runtime"
    assert "JUPYTER_RUNTIME_DIR" in found["folders"].remedy


def test_settings_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "client.toml").write_text("gateway = 1")
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path / "client.toml"))
    found = findings()
    assert list(problems(found)) == ["settings"]
    assert "workbench connect" in found["settings"].found


def test_a_key_that_others_can_read(gateway: ScriptedGateway) -> None:
    config_path().with_name("client.key").chmod(0o644)
    found = findings()
    assert list(problems(found)) == ["settings"]
    assert "chmod 600" in found["settings"].found


def test_a_key_that_the_pool_does_not_know(gateway: ScriptedGateway) -> None:
    gateway.allowed.replace([])
    found = findings()
    assert list(problems(found)) == ["pool"]
    told = list(found)
    assert told.index("pool") < told.index("gateway's port"), "what is to be mended comes first"


def test_a_pool_of_this_machine_that_is_down(gateway: ScriptedGateway, tmp_path: Path) -> None:
    settings.save(msgspec.structs.replace(settings.load(), gateway=f"ipc://{tmp_path}/gateway"))
    found = findings()["pool"]
    assert (found.state, "workbench doctor" in found.found) == (State.PROBLEM, False)
    assert "`workbench pool up` starts it" in found.remedy


def test_folders_are_told_as_they_are(gateway: ScriptedGateway) -> None:
    assert str(config_path().parent) in findings()["folders"].found


def test_a_pool_without_devices_that_gives_no_session(gateway: ScriptedGateway) -> None:
    def full(message: ToGateway) -> FromGateway:
        if isinstance(message, OpenSession):
            return Denied(0, RefusalCode.QUOTA, "All 8 places are taken.", "Try again later.")
        return obliging(message)

    gateway.answer = full
    found = findings()
    assert list(problems(found)) == ["pool", "session"]
    assert found["pool"].remedy
    assert found["session"].found == "All 8 places are taken. Try again later."


def test_a_full_pool_is_no_problem_of_this_machine(gateway: ScriptedGateway) -> None:
    def full(message: ToGateway) -> FromGateway:
        if isinstance(message, OpenSession):
            return Denied(0, RefusalCode.POOL_FULL, "All 8 places are taken.")
        return obliging(message)

    gateway.answer = full
    found = findings()["session"]
    assert (found.state, found.found) == (State.NOTE, "All 8 places are taken.")
    assert "waits for a place" in found.remedy


def test_it_is_told_which_port_is_shut(gateway: ScriptedGateway) -> None:
    found = findings()
    assert found["gateway's port"].state is State.OK
    assert list(problems(found)) == ["pool", "executor's port", "session"]  # the played pool has no device
    assert found["executor's port"].found == "127.0.0.1:9 is shut: connection refused"
    assert "executor_ports" in found["executor's port"].remedy
    assert [one.session for one in gateway.asked_for(CloseSession)] == ["s1"]

    with socket.create_server(("127.0.0.1", 0)) as executor:  # who listens, be it no executor
        port = executor.getsockname()[1]

        def elsewhere(message: ToGateway) -> FromGateway:
            ticket = msgspec.structs.replace(a_ticket(), endpoints=(f"tls://127.0.0.1:{port}",))
            return ticket if isinstance(message, OpenSession) else obliging(message)

        gateway.answer = elsewhere
        assert findings()["executor's port"].found == f"127.0.0.1:{port} is open from here"


def test_executors_are_tried_where_this_machine_reaches_them(gateway: ScriptedGateway) -> None:
    settings.save(msgspec.structs.replace(settings.load(), executor_host="localhost"))
    assert findings()["executor's port"].found == "localhost:9 is shut: connection refused"


def test_a_gateway_that_cannot_be_reached(gateway: ScriptedGateway) -> None:
    for address, said in (("tcp://127.0.0.1:9", "shut: connection refused"), ("tcp://no.such.invalid:7733", "no host")):
        settings.save(msgspec.structs.replace(settings.load(), gateway=address))
        found = findings()
        assert list(problems(found)) == ["gateway's port", "pool"]
        assert said in found["gateway's port"].found
        assert found["gateway's port"].remedy


def test_a_missing_compiler_is_noted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path / "none.toml"))
    monkeypatch.setattr(shutil, "which", lambda _: None)
    found = findings()["C++ compiler"]
    assert found.state is State.NOTE
    assert "apt-get install" in found.remedy


def test_a_kernel_that_jupyter_does_not_see(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path / "none.toml"))
    monkeypatch.setattr(diagnosis, "KERNEL_NAME", "not-installed")
    found = findings()["kernel"]
    assert found.state is State.PROBLEM
    assert "workbench install" in found.remedy


def test_a_device_that_is_shared_at_a_time_is_named_and_why_nobody_can_begin_there(gateway: ScriptedGateway) -> None:
    plain = DeviceView("n", 0, "cuda", "a GPU", 1, 1, 1, wall="Landlock 7, seccomp")
    shared = msgspec.structs.replace(plain, ordinal=1, space="MPS, for group 'vision'")
    ailing = msgspec.structs.replace(shared, ailment="its daemon has ended")
    for one, state in ((plain, None), (shared, State.OK), (ailing, State.PROBLEM)):
        view = PoolView(0, "lab", "1", "ada", 0.0, (one,), ())
        gateway.answer = lambda message, view=view: view if isinstance(message, AskPool) else obliging(message)
        finding = findings().get("MPS")
        assert (finding.state if finding is not None else None) is state
    assert finding is not None
    assert finding.found == "no session can begin on n/cuda1, shared by MPS, for group 'vision': its daemon has ended"
    assert "devices_shared_by_mps" in finding.remedy


def test_a_device_whose_use_is_seen_by_nobody_is_named(gateway: ScriptedGateway) -> None:
    seen = DeviceView("n", 0, "cuda", "a GPU", 1, 1, 1, wall="Landlock 7, seccomp")
    unseen = msgspec.structs.replace(seen, ordinal=1, unseen="NVML names no processes here")
    for devices in ((seen,), (seen, unseen)):
        view = PoolView(0, "lab", "1", "ada", 0.0, devices, ())
        gateway.answer = lambda message, view=view: view if isinstance(message, AskPool) else obliging(message)
        finding = findings().get("measuring")
        assert (finding is not None) == (unseen in devices)
    assert finding is not None
    assert finding.state is State.NOTE
    assert "n/cuda1" in finding.found
    assert "NVML names no processes here" in finding.found
