"""A full pool and real notebooks: waiting in a cell, being served, giving up, and a gateway that dies meanwhile."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import pytest

from gpu_backend.engine.detached import read_identity
from gpu_backend.pool import commands
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from gpu_backend.transport.asking import ask
from gpu_backend.wire.control import CloseSession, OpenSession
from gpu_backend.wire.errors import PoolError
from tests.integration.notebook_pool import STATE_SECONDS, cpu_pool, sessions, wait_until
from tests.integration.running_kernel import Notebook, notebook

from .conftest import granted

_CELL = "import cupy as cp\nprint(float(cp.arange(10).sum()))"


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    wanted = PoolSettings(devices="cpu", sessions_per_device=1, max_sessions_per_user=0)
    with cpu_pool(tmp_path_factory.mktemp("waiting"), wanted) as own:
        yield own


@contextmanager
def taken(pool: PoolState) -> Iterator[str]:
    """Have somebody hold the pool's only place."""
    wait_until(lambda: not sessions(pool))
    session = granted(commands.operator_door(pool), OpenSession(0, "first.ipynb")).session
    yield session
    free(pool, session)


def free(pool: PoolState, session: str) -> None:
    ask(commands.operator_door(pool), CloseSession(0, session))


def told(running: Notebook, message_id: str, words: str) -> str:
    """Wait until the cell's line says ``words``; return the line."""
    deadline = monotonic() + STATE_SECONDS
    while monotonic() < deadline:
        message = running.client.get_iopub_msg(timeout=STATE_SECONDS)
        if message["parent_header"].get("msg_id") != message_id:
            continue
        text = message["content"].get("data", {}).get("text/plain", "")
        if message["msg_type"] in ("display_data", "update_display_data") and words in text:
            return str(text)
    raise AssertionError("it was never said")


def waiting(pool: PoolState) -> int:
    try:
        return len(commands.status(pool).waiting)
    except PoolError:  # it is just away
        return -1


def test_a_notebook_waits_and_is_served_and_keeps_its_session_over_a_restart(pool: PoolState) -> None:
    with taken(pool) as session:
        with notebook() as running:  # the kernel starts although the pool is full
            assert [one.session for one in sessions(pool)] == [session]
            cell = running.client.execute(_CELL)
            line = told(running, cell, "number 1 of 1")
            assert "1 of 1 places are taken" in line
            assert told(running, cell, "Waiting for") != line, "the line is kept up to date"
            free(pool, session)
            told(running, cell, "A place in the pool was free after")
            assert running.collect(cell).endswith("45.0\n")
            (own,) = sessions(pool)
            running.restart()
            assert running.run(_CELL) == "45.0\n"
            assert [(one.session, one.epoch) for one in sessions(pool)] == [(own.session, 2)]
        wait_until(lambda: not sessions(pool))


def test_the_stop_button_ends_the_wait(pool: PoolState) -> None:
    with taken(pool), notebook() as running:
        cell = running.client.execute(_CELL)
        told(running, cell, "number 1 of 1")
        running.manager.interrupt_kernel()
        said = running.collect(cell)  # though the pool is as full as before
        assert "KeyboardInterrupt" in said
        wait_until(lambda: waiting(pool) == 0)
        assert running.run("1 + 1") == "2"


def test_a_killed_kernel_leaves_the_queue_by_itself(pool: PoolState) -> None:
    with taken(pool), notebook() as running:
        cell = running.client.execute(_CELL)
        told(running, cell, "number 1 of 1")
        running.manager.provisioner.process.send_signal(signal.SIGKILL)  # type: ignore[union-attr]
        wait_until(lambda: waiting(pool) == 0)


def test_a_killed_gateway_keeps_the_place_in_the_queue(pool: PoolState) -> None:
    with taken(pool) as session, notebook() as running:
        cell = running.client.execute(_CELL)
        told(running, cell, "number 1 of 1")
        gateway = read_identity(pool.process_file("gateway"))
        assert gateway is not None
        os.kill(gateway.pid, signal.SIGKILL)
        wait_until(lambda: waiting(pool) == 1)
        free(pool, session)
        assert running.collect(cell).endswith("45.0\n")


def test_who_waits_while_the_pool_goes_down_is_given_no_place_of_its_last(tmp_path: Path) -> None:
    with cpu_pool(tmp_path, PoolSettings(devices="cpu", sessions_per_device=1, max_sessions_per_user=0)) as own:
        granted(commands.operator_door(own), OpenSession(0, "first.ipynb"))
        with notebook() as running:
            cell = running.client.execute(_CELL)
            told(running, cell, "number 1 of 1")
            commands.down(own)
            said = running.collect(cell)
            assert said.startswith(("PoolRefusal: The pool is being stopped by its operator.", "PoolUnreachable: "))
            assert "Restart the kernel" not in said
