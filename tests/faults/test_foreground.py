"""A pool under systemd and its like: it says when it is up, ends when it is told to; an upgrade costs no session."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gpu_backend.engine.detached import ProcessId, read_identity
from gpu_backend.node import arbiter
from gpu_backend.pool import commands, joining, machines, running, state
from gpu_backend.pool.state import PoolState
from tests.integration.conftest import processes_with, until
from tests.integration.notebook_pool import be_patient
from tests.ray_nodes import NEEDS_RAY
from tests.spare_ports import spare_ports

from .machines import ADDRESS, only, sessions_on
from .notebook import Notebook
from .served import ROOT, served

pytestmark = pytest.mark.timeout(300)

_BEGIN = "x = cp.arange(1000.0); cp.random.seed(7); y = cp.random.rand(3); float(x[1])"
_WORK = "import os\nwhile not os.path.exists({flag!r}):\n    x = x + 1; float(x[1])\n"
_STANDING = "(current_session().ticket.epoch, float((x - x[0]).sum()), cp.random.rand(2).shape)"
_STOOD = "(1, 499500.0, (2,))"


@pytest.fixture
def home() -> Iterator[Path]:
    """A place for everything of the pool; nothing of it runs in the end."""
    with TemporaryDirectory(prefix="gwb") as directory, pytest.MonkeyPatch.context() as patch:
        be_patient(patch)
        for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
            patch.setenv(name, directory)
        patch.delenv("XDG_RUNTIME_DIR", raising=False)
        Path(directory, "told").mkdir()
        yield Path(directory)
        for name in ("pool", "node"):
            commands.end_processes(state.at(Path(directory, name)))
        assert not processes_with(directory)


@pytest.fixture
def pool(home: Path) -> PoolState:
    return state.at(home / "pool")


@pytest.fixture
def newer(home: Path) -> Path:
    """The same packages in another place: what an upgrade has installed."""
    for package in ("workbench", "kernelproxy", "catalog", "gpu_backend"):
        shutil.copytree(ROOT / package, home / "newer" / package, ignore=shutil.ignore_patterns("__pycache__"))
    return home / "newer"


def words_for(pool: PoolState, *options: str) -> tuple[str, ...]:
    return ("pool", "serve", "--state", str(pool.root), "--devices", "cpu", *options)


def servants(pool: PoolState) -> dict[str, ProcessId | None]:
    return {role: read_identity(pool.process_file(role)) for role in ("gateway", "agent")}


def code_of(process: ProcessId | None) -> str:
    """Return where the packages of a running process are."""
    assert process is not None
    variables = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
    return next(one.partition(b"=")[2].decode() for one in variables if one.startswith(b"PYTHONPATH="))


def executors(pool: PoolState) -> list[int]:
    return sorted(one.identity.pid for one in running.processes(pool) if one.role == "executor")


def test_an_upgrade_costs_no_session_and_no_notebook_notices(home: Path, pool: PoolState, newer: Path) -> None:
    flag = str(home / "flag")
    with served(home / "told", *words_for(pool)) as old:
        assert "is up with 1 devices" in old.wait_ready()
        config = commands.write_client_file(pool, home / "client.toml")
        with Notebook(config) as notebook:
            notebook.value(_BEGIN)
            (executor,) = [one.session for one in commands.status(pool).sessions]
            before, serving = servants(pool), joining.serving(pool)
            notebook.begin(_WORK.format(flag=flag))  # it computes, and reads results, all the while
            assert old.stop() == 0
            assert old.told() == "STOPPING=1"
            assert not any(process and process.is_running for process in before.values())
            assert joining.serving(pool) == serving, "its executor goes on"
            with served(home / "told", *words_for(pool), code=newer) as new:
                new.wait_ready()
                after = servants(pool)
                assert {code_of(process) for process in after.values()} == {str(newer)}
                until(lambda: [code_of(one) for one in arbiter.processes(pool.runtime)] == [str(newer)])
                Path(flag).touch()
                assert not notebook.finish().error
                assert notebook.value(_STANDING) == _STOOD
                assert [one.session for one in commands.status(pool).sessions] == [executor]
                with Notebook(config) as another:  # the new version serves new ones
                    assert another.value("float(cp.arange(3).sum())") == "3.0"
                commands.down(pool)
                assert new.process.wait(60) == 0
    assert not processes_with(str(pool.root))


def test_who_keeps_it_may_be_killed(home: Path, pool: PoolState) -> None:
    with served(home / "told", *words_for(pool)) as first:
        first.wait_ready()
        with Notebook(commands.write_client_file(pool, home / "client.toml")) as notebook:
            notebook.value(_BEGIN)
            left = servants(pool)
            assert first.stop(signal.SIGKILL) == -signal.SIGKILL
            with served(home / "told", *words_for(pool)) as second:
                second.wait_ready()
                assert not any(process and process.is_running for process in left.values()), "they are replaced"
                assert notebook.value(_STANDING) == _STOOD
                assert second.stop() == 0


def test_it_is_kept_once_and_says_what_is_wrong(home: Path, pool: PoolState) -> None:
    with served(home / "told", *words_for(pool)) as first:
        first.wait_ready()
        with served(home / "told", *words_for(pool)) as second:
            assert second.process.wait(60) == 1
        assert f"is up already: process {first.process.pid} keeps it" in second.log.read_text()
        commands.down(pool)
        assert first.process.wait(60) == 0
    other = state.at(home / "node")
    with served(home / "told", "pool", "serve", "--state", str(other.root), "--devices", "cuda") as without:
        assert without.process.wait(120) == 2
    assert "It cannot come up. No GPU can be offered here" in without.log.read_text()


def test_what_the_supervisor_says_in_the_environment_is_nobody_elses(home: Path, pool: PoolState) -> None:
    with served(home / "told", *words_for(pool)) as one:
        one.wait_ready()
        running = [*servants(pool).values(), *(ProcessId.of(pid) for pid in executors(pool))]
        assert len(running) > 2
        for process in running:
            assert process is not None
            assert b"NOTIFY_SOCKET" not in Path(f"/proc/{process.pid}/environ").read_bytes()


def test_a_node_is_upgraded_and_its_sessions_go_on(home: Path, pool: PoolState, newer: Path) -> None:
    ports = spare_ports(2)
    head_options = (
        "--listen",
        "127.0.0.1",
        "--port",
        str(ports[0]),
        "--head",
        "127.0.0.1",
        "--nodes-port",
        str(ports[1]),
    )
    node = state.at(home / "node")
    words = ("node", "serve", "--state", str(node.root))
    with served(home / "told", *words_for(pool, *head_options)) as head:
        head.wait_ready()
        invited = machines.invite(pool, "m", 1.0)
        joining.enrol(node, invited.address, invited.token, {"executor_host": ADDRESS, "devices": "cpu"})
        assert not processes_with(str(node.root)), "it has joined, and starts nothing by itself"
        config = commands.write_client_file(pool, home / "client.toml")
        with served(home / "told", *words) as old:
            assert "the node m of pool is up with 1 devices" in old.wait_ready()
            with only(pool, "m"), Notebook(config) as notebook:
                notebook.value(_BEGIN)
                assert len(sessions_on(pool, "m")) == 1
                assert old.stop() == 0
                with served(home / "told", *words, code=newer) as new:
                    new.wait_ready()
                    assert code_of(read_identity(node.process_file("agent"))) == str(newer)
                    until(lambda: [one.state for one in sessions_on(pool, "m")] == ["serving"])
                    assert notebook.value(_STANDING) == _STOOD
                    joining.down(node, is_at_once=True)
                    assert new.process.wait(60) == 0
        os.kill(head.process.pid, signal.SIGTERM)
        assert head.process.wait(60) == 0


@pytest.mark.ray
@NEEDS_RAY
@pytest.mark.timeout(600)
def test_ray_is_started_anew_with_its_machine_or_its_head_and_no_session_notices(home: Path, pool: PoolState) -> None:
    ports = [str(port) for port in spare_ports(2)]
    options = ("--engine", "ray", "--head", "127.0.0.1", "--nodes-port", ports[0], "--ray-port", ports[1])
    node = state.at(home / "node")
    words = ("node", "serve", "--state", str(node.root))
    with ExitStack() as stack:
        head = stack.enter_context(served(home / "told", *words_for(pool, *options)))
        head.wait_ready()
        invited = machines.invite(pool, "m", 1.0)
        joining.enrol(node, invited.address, invited.token, {"executor_host": ADDRESS, "devices": "cpu"})
        assert not processes_with(str(node.root)), "it has joined, and starts nothing by itself"
        machine = stack.enter_context(served(home / "told", *words))
        assert "the node m of pool is up with 1 devices" in machine.wait_ready()
        config = commands.write_client_file(pool, home / "client.toml")
        with only(pool, "m"):
            notebook = stack.enter_context(Notebook(config))
            notebook.value(_BEGIN)
        assert machine.stop() == 0
        assert not {one.role for one in running.processes(node)} & {"supervisor", "ray", "agent"}
        assert notebook.value(_STANDING) == _STOOD
        machine = stack.enter_context(served(home / "told", *words))
        machine.wait_ready()
        assert head.stop() == 0
        assert not {one.role for one in running.processes(pool)} & {"supervisor", "gateway", "ray", "agent"}
        assert notebook.value(_STANDING) == _STOOD
        head = stack.enter_context(served(home / "told", *words_for(pool)))
        head.wait_ready()
        until(lambda: {one.name: one.state for one in commands.status(pool).nodes}["m"] == "up")
        assert [one.state for one in sessions_on(pool, "m")] == ["serving"]
        assert notebook.value(_STANDING) == _STOOD
        commands.down(pool)
        assert head.process.wait(60) == 0
        joining.down(node, is_at_once=True)
        assert machine.process.wait(60) == 0
