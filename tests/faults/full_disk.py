"""A pool on a disk of its own that gets full. Run where file systems can be mounted: ``unshare -rm``.

``python full_disk.py MOUNT_POINT`` ends with 0 if no session was lost, none was given halfway, and nobody saw a
traceback.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_backend.engine.detached import read_identity
from gpu_backend.node import launcher
from gpu_backend.pool import commands, running, state
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.transport.asking import ask
from gpu_backend.wire import control
from gpu_backend.wire.errors import PoolError, PoolRefusal
from tests.integration.conftest import PLAIN_EXECUTOR, granted, until
from tests.integration.notebook_pool import be_patient

VERBS = (
    *("users add bob", "users remove ada", "keys make --user ada --file {0}/ada.key"),
    *("shares set user ada --weight 3", "usage", "users", "status"),
)


def fill(disk: Path) -> Path:
    """Leave not a byte on ``disk``; return what takes them up."""
    path = disk / "filling"
    with path.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    return path


def told(verb: str) -> subprocess.CompletedProcess[str]:
    """Run ``workbench pool`` and see to it that no traceback is shown."""
    command = [sys.executable, "-m", "workbench", "pool", *verb.format(disk).split(), "--state", str(pool.root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert "Traceback" not in done.stderr, done.stderr
    assert len(done.stderr.strip().splitlines()) <= 1, done.stderr
    return done


def executors() -> int:
    return sum(one.role == "executor" for one in running.processes(pool))


def is_settled() -> bool:
    """Tell whether one executor serves, and the next is ready: neither has anything to write before it is used."""
    directories = list(launcher.directories(str(pool.runtime)))
    return [len(list(filter(is_so, directories))) for is_so in (launcher.is_ready, launcher.is_serving)] == [2, 1]


def refused(waiter: str) -> None:
    with pytest.raises(PoolRefusal, match="disk is full"):
        ask(door, control.OpenSession(0, "x", waiter=waiter))


def story() -> None:
    ticket = granted(door, control.OpenSession(0, "kept"))
    until(is_settled)
    filling = fill(disk)
    for number in range(4):
        refused(f"waiter {number}")
    for verb in VERBS:
        done = told(verb)
        assert done.returncode == 0 or "full" in done.stderr, (verb, done)
    assert told("users add bob").returncode == 1
    assert commands.up(pool).devices  # it is up: there is nothing to be written
    gateway = read_identity(pool.process_file("gateway"))
    assert gateway is not None
    os.kill(gateway.pid, signal.SIGKILL)
    until(lambda: read_identity(pool.process_file("gateway")) not in (None, gateway))
    until(lambda: isinstance(ask(door, control.RenewTicket(0, ticket.session)), control.Ticket))
    assert [one.session for one in commands.status(pool).sessions] == [ticket.session]
    until(lambda: executors() == 2)  # what is just being started counts, and what an executor starts itself
    filling.unlink()
    until(lambda: granted(door, control.OpenSession(0, "next")).epoch == 1)
    assert told("users add bob").returncode == 0


if __name__ == "__main__":
    disk = Path(sys.argv[1])
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], check=True)
    pool = state.at(disk / "pool")
    be_patient(pytest.MonkeyPatch())
    try:
        commands.up(pool, PoolSettings(devices="cpu", executor_command=PLAIN_EXECUTOR))
        told("users add ada")
        door = commands.operator_door(pool)
        story()
        fill(disk)
    except PoolError as error:
        raise AssertionError(str(error)) from error
    finally:
        commands.down(pool)
    assert not running.processes(pool)
