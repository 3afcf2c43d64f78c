"""``python -m gpu_backend.pool``: the processes of a pool. People use ``workbench pool`` instead."""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import logging
import os
import sqlite3
from pathlib import Path

from gpu_backend.engine import logs
from gpu_backend.engine.detached import ProcessId
from gpu_backend.pool import commands, foreground, serving
from gpu_backend.pool import settings as pool_settings
from gpu_backend.pool.keeping import keep
from gpu_backend.pool.state import PoolState, at
from gpu_backend.pool.supervisor import Supervisor
from gpu_backend.wire.errors import PoolError

log = logging.getLogger("pool")


def main() -> None:
    """Run one process of the pool."""
    parser = argparse.ArgumentParser(prog="python -m gpu_backend.pool", description=__doc__)
    parser.add_argument("process", choices=("supervise", "gateway", "keep", "up", "down"))
    parser.add_argument("--state", type=Path, default=None, help="the pool's state directory")
    parser.add_argument("--owner", type=_process, default=None, help="PID:START of a process not to outlive")
    parser.add_argument("--foreground", action="store_true", help="somebody else starts this process and watches it")
    arguments = parser.parse_args()
    os.umask(0o077)
    logs.set_up()
    state = at(arguments.state)
    try:
        _run(arguments.process, state, arguments.owner, arguments.foreground)
    except (PoolError, OSError, sqlite3.Error) as error:  # the last two: a full disk, say
        log.error("%s", error)
        raise SystemExit(2) from None


def _run(process: str, state: PoolState, owner: ProcessId | None, is_in_foreground: bool) -> None:
    if process == "up":
        view = commands.up(state)
        log.info("the pool %s is up with %d devices", view.pool, len(view.devices))
    elif process == "down":
        commands.down(state)
    else:
        lock = os.open(state.runtime / f"{process}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.error("another one runs for %s", state.root)
            raise SystemExit(1) from None
        if is_in_foreground:
            _serve(process, state, owner)
            return
        if process == "keep":
            if asyncio.run(keep(state, owner)):
                log.info("the owner of the node is gone, so the node ends")
                commands.end_processes(state, ("ray", "agent", "executor", "arbiter"))
            return
        settings = pool_settings.read(state.settings_file)
        if process == "gateway":
            serving.serve(state, settings)
        elif asyncio.run(Supervisor(state, settings, owner).run()):
            log.info("the owner of the pool is gone, so the pool ends")
            commands.end_processes(state, ("gateway", "ray", "agent", "executor", "arbiter"))


def _serve(process: str, state: PoolState, owner: ProcessId | None) -> None:
    if process == "keep":
        foreground.serve(state, lambda: keep(state, owner), foreground.node_standing(state))
        return
    supervisor = Supervisor(state, pool_settings.read(state.settings_file), owner)
    foreground.serve(state, supervisor.run, foreground.pool_standing(state))


def _process(text: str) -> ProcessId:
    pid, _, start_time = text.partition(":")
    return ProcessId(int(pid), int(start_time))


main()
