"""Processes that outlive whoever started them, and cannot be taken for others."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gpu_backend.engine import detached
from gpu_backend.engine.detached import ProcessId, Watched


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


def spawn(tmp_path: Path, code: str = "import signal; signal.pause()") -> ProcessId:
    return detached.spawn([sys.executable, "-c", code], tmp_path / "log", tmp_path)


def test_a_spawned_process_is_nobodys_child_and_leads_its_own_session(tmp_path: Path) -> None:
    identity = spawn(tmp_path)
    try:
        stat = Path(f"/proc/{identity.pid}/stat").read_text().rsplit(")", 1)[1].split()
        parent, session = int(stat[1]), int(stat[3])
        assert parent != os.getpid()
        assert session != os.getsid(0)
    finally:
        detached.end(identity, 1.0)


def test_its_words_go_to_the_log_for_its_owner_only(tmp_path: Path) -> None:
    code = "import signal, sys; print('one', flush=True); print('two', file=sys.stderr); signal.pause()"
    identity = spawn(tmp_path, code)  # which lives on: one that ends before it is looked at was never started
    log = tmp_path / "log"
    try:
        until(lambda: log.read_text() == "one\ntwo\n")
        assert log.stat().st_mode & 0o077 == 0
    finally:
        detached.end(identity, 1.0)


def test_a_process_is_known_by_its_start_time_too() -> None:
    own = ProcessId.mine()
    assert own.is_running
    assert not ProcessId(own.pid, own.start_time + 1).is_running
    with pytest.raises(ProcessLookupError):
        Watched(ProcessId(own.pid, own.start_time + 1))


def test_a_zombie_does_not_run() -> None:
    child = os.posix_spawn(sys.executable, [sys.executable, "-c", ""], os.environ)
    try:
        until(lambda: ProcessId.of(child) is None)
    finally:
        os.waitpid(child, 0)


def test_a_process_runs_until_its_last_thread_has_ended(tmp_path: Path) -> None:
    code = (
        "import ctypes, signal, threading\n"
        "threading.Thread(target=signal.pause).start()\n"
        "ctypes.CDLL(None).syscall(60 if __import__('platform').machine() == 'x86_64' else 93, 0)  # this thread alone"
    )
    identity = spawn(tmp_path, code)
    try:
        stat = Path(f"/proc/{identity.pid}/stat")
        until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z")
        assert identity.is_running
    finally:
        os.kill(identity.pid, signal.SIGKILL)
    until(lambda: not identity.is_running)


def test_the_end_of_a_process_that_is_no_child_is_seen(tmp_path: Path) -> None:
    identity = spawn(tmp_path)

    async def story() -> None:
        watched = Watched(identity)
        waiting = asyncio.create_task(watched.ended())
        await asyncio.wait({waiting}, timeout=0.05)
        assert not waiting.done()
        watched.send_signal(signal.SIGKILL)
        await asyncio.wait_for(waiting, 90)
        watched.send_signal(signal.SIGKILL)  # of no use, and no harm
        await asyncio.wait_for(watched.ended(), 90)
        watched.close()

    asyncio.run(story())
    assert detached.wait_gone(identity, 90)


def test_who_does_not_end_when_asked_is_killed(tmp_path: Path) -> None:
    code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); open('deaf', 'w').close(); signal.pause()"
    identity = spawn(tmp_path, code)
    until((tmp_path / "deaf").exists)
    detached.end(identity, 0.1)
    assert not identity.is_running


def test_an_identity_is_read_back_only_while_it_runs(tmp_path: Path) -> None:
    path = tmp_path / "who.json"
    assert detached.read_identity(path) is None
    identity = spawn(tmp_path)
    detached.write_identity(path, identity)
    assert detached.read_identity(path) == identity
    detached.end(identity, 1.0)
    assert detached.read_identity(path) is None
    path.write_text("{")
    assert detached.read_identity(path) is None
