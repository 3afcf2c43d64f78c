"""What a pool leaves behind when its notes are lost, spoilt or written by several at once: nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_backend.engine.detached import read_identity
from gpu_backend.node import launcher
from gpu_backend.pool import commands, running
from gpu_backend.pool import settings as pool_settings
from gpu_backend.pool import state as pool_state
from gpu_backend.pool.running import Running
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.wire.errors import PoolRefusal

from .conftest import PLAIN_EXECUTOR, MakePool, processes_with, until

AT_ONCE = 8


def test_of_eight_who_start_a_pool_at_once_all_find_it_up(make_pool: MakePool) -> None:
    root = make_pool().state.root.with_name("at-once")
    make_pool.pools.append(state := pool_state.at(root))
    state.make()
    plain = PoolSettings(devices="cpu", executor_command=PLAIN_EXECUTOR)
    state.settings_file.write_text(pool_settings.render(plain))
    (root / "runtime").write_text("")  # as somebody saw it who came while another one wrote
    command = [sys.executable, "-m", "gpu_backend.pool", "up", "--state", str(root)]
    ups = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(AT_ONCE)]
    said = [up.communicate(timeout=200)[1] for up in ups]
    assert [up.returncode for up in ups] == [0] * AT_ONCE, "\n".join(said)
    assert (root / "runtime").read_text() == str(state.runtime)
    roles = [one.role for one in running.processes(state)]
    assert (roles.count("supervisor"), roles.count("gateway"), roles.count("agent")) == (1, 1, 1)
    commands.down(state)
    assert processes_with(str(root)) + processes_with(str(state.runtime)) == []


def test_down_ends_processes_whose_notes_are_lost(make_pool: MakePool) -> None:
    pool = make_pool()
    executor = pool.executor(pool.open())
    before = running.processes(pool.state)
    assert {one.role for one in before} == {"supervisor", "gateway", "agent", "executor", "arbiter"}
    assert executor in [one.identity for one in before]
    for note in (*pool.state.runtime.rglob("*.json"), pool.state.node / "agent.json"):
        note.unlink()
    commands.down(pool.state)
    assert not any(one.identity.is_running for one in before)
    assert not pool.state.runtime.exists()


def test_down_ends_processes_whose_directory_is_gone(make_pool: MakePool) -> None:
    pool = make_pool()
    pool.open()
    before = running.processes(pool.state)
    for one in before:  # nobody may make it anew
        os.kill(one.identity.pid, signal.SIGSTOP)
    commands.shutil.rmtree(pool.state.runtime)
    for one in before:
        os.kill(one.identity.pid, signal.SIGCONT)
    commands.down(pool.state)
    assert not any(one.identity.is_running for one in before)


def test_up_finds_a_pool_whose_note_is_lost(make_pool: MakePool) -> None:
    pool = make_pool()
    supervisor = pool.process("supervisor")
    pool.state.process_file("supervisor").unlink()
    commands.up(pool.state)
    assert pool.process("supervisor") == supervisor


def test_down_never_says_that_it_is_done_while_processes_run_on(
    make_pool: MakePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = make_pool()
    stubborn = Running("executor", pool.executor(pool.open()))
    with monkeypatch.context() as patch:
        patch.setattr(running, "processes", lambda state: [stubborn])
        patch.setattr(commands, "end_all", lambda *_: None)
        patch.setattr(commands, "end_executors", lambda _: None)
        with pytest.raises(PoolRefusal, match=rf"^The pool is not down: executor {stubborn.identity.pid} cannot be"):
            commands.down(pool.state)
    assert pool.state.runtime.exists()
    commands.down(pool.state)
    assert not stubborn.identity.is_running


@pytest.mark.parametrize("has_agent", [True, False])
def test_an_executor_whose_settings_are_spoilt_is_ended(make_pool: MakePool, has_agent: bool) -> None:
    pool = make_pool()
    ticket = pool.open()
    executor = pool.executor(ticket)
    directory = Path(f"/proc/{executor.pid}/cwd").readlink().parent
    if not has_agent:
        os.kill(pool.process("supervisor").pid, signal.SIGKILL)
        os.kill(pool.process("gateway").pid, signal.SIGKILL)
    (directory / "config.json").write_bytes(b"{")
    os.kill(pool.process("agent").pid, signal.SIGKILL)
    if has_agent:  # the next agent cannot know what it was told, and does not lose sight of it
        until(lambda: not executor.is_running)
        until(lambda: not directory.exists())
    else:
        assert launcher.process_in(directory) == executor
        commands.down(pool.state)
    assert not executor.is_running


@pytest.mark.parametrize(
    "note", ["", ".", "relative/gpu-workbench-x", "/tmp", "/tmp/a\0b", "/nowhere/at/all", "/tmp/x"]
)
def test_a_note_that_names_no_runtime_directory_of_ours_is_none(tmp_path: Path, note: str) -> None:
    (tmp_path / "runtime").write_text(note)
    state = pool_state.at(tmp_path)
    assert state.runtime.is_absolute()
    assert state.runtime.name in pool_state.runtime_names(tmp_path)


def test_the_note_is_what_counts_under_other_variables(
    runtime_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = pool_state.at(tmp_path / "pool")
    state.make()
    assert state.runtime.parent == runtime_directory
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert pool_state.at(tmp_path / "pool") == state
    assert read_identity(state.process_file("supervisor")) is None
