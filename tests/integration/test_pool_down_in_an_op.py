"""Executors that end while they compute and can say nothing: somebody else tells the notebook what is known."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from gpu_backend.engine.detached import read_identity
from gpu_backend.pool import commands, running
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from gpu_backend.transport import exchange
from gpu_backend.wire.control import OpenSession
from kernelproxy import settings as client_settings
from kernelproxy.session import handover
from tests.executor_of import pid_of
from tests.faults.notebook import Notebook
from tests.integration.conftest import granted, kill_and_wait, until
from tests.integration.notebook_pool import cpu_pool, sessions, wait_until
from tests.integration.test_jupyter_signs import SLOW

pytestmark = pytest.mark.timeout(240)

#: More than any processor counts to in a day, in native code that hears nothing.
_LOOPS = 10**15
#: Processor time after which an executor that does nothing else must be in the op, in ticks of the system.
_TICKS = 50


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[PoolState]:
    """A pool that does not wait long for its executors."""
    with cpu_pool(tmp_path, PoolSettings(devices="cpu", stop_seconds=0.5)) as own:
        yield own


@contextmanager
def computing(pool: PoolState, then: str = "", executor: int = 0, **environment: str) -> Iterator[Notebook]:
    """Have a notebook whose ``executor`` is in the middle of an op without end; its cell goes on with ``then``."""
    with Notebook(pool.root / "client.toml", **environment) as mine:
        assert mine.value(SLOW + "slow((1,), (1,), (1, out)); float(out[1])") == "0.0"
        executor = executor or mine.executor_pid()
        before = _ticks(executor)
        mine.begin(f"slow((1,), (1,), ({_LOOPS}, out)); {then or 'current_session().flush()'}")
        wait_until(lambda: _ticks(executor) > before + _TICKS)
        yield mine


def _ticks(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


@contextmanager
def computing_far(pool: PoolState, tmp_path: Path) -> Iterator[Notebook]:
    """Do what `computing` does, for a notebook that reaches its executor as one of another host does."""
    own = client_settings.load(pool.root / "client.toml")
    door = exchange.Door(own.gateway, own.server_key.encode(), commands.operator_door(pool).keys)
    ticket = granted(door, OpenSession(0, "far.ipynb"))
    far = tuple(one for one in ticket.endpoints if one.startswith("tls://"))
    handed = tmp_path / "ticket.json"
    handover.write(msgspec.structs.replace(ticket, endpoints=far), handed)
    with computing(pool, executor=pid_of(ticket), **{handover.TICKET_VARIABLE: str(handed)}) as mine:
        yield mine


def kill_all(pool: PoolState) -> None:
    """End every process of ``pool`` at once, as a host does that loses its power: none can say or note anything."""
    roles = ("supervisor", "gateway", "agent")

    def strike() -> bool:
        noted = [one for role in roles if (one := read_identity(pool.process_file(role))) is not None]
        return kill_and_wait({*noted, *(process.identity for process in running.processes(pool))})

    # What one of them was just starting is there later; and who is looked for while it comes is seen the second time.
    wait_until(lambda: not strike() and not strike())


def comes_back(pool: PoolState, mine: Notebook, why: str) -> None:
    """Start the pool again; the notebook is told once what was lost, and is at work again."""
    commands.up(pool)
    lost = mine.run("float(cp.ones(3).sum())")
    assert lost.error == "SessionLost"
    assert lost.text.startswith(why)
    assert "The arrays made so far are lost; a fresh executor" in lost.text
    assert mine.value("float(cp.ones(3).sum())") == "3.0"
    assert len(sessions(pool)) == 1


def test_who_waits_for_the_op_is_told(pool: PoolState) -> None:
    with computing(pool, "float(out[0])") as mine:
        commands.down(pool)
        told = mine.finish()
        assert told.error in ("PoolRefusal", "PoolUnreachable")
        assert "The arrays of this notebook are lost with it." in told.text
        assert "keeps" not in told.text
        comes_back(pool, mine, "The pool was stopped by its operator.")


def test_who_comes_later_is_told_what_this_host_knows(pool: PoolState) -> None:
    with computing(pool) as mine:
        mine.finish()
        commands.down(pool)
        for _ in range(2):
            told = mine.run("float(out[0])")
            assert told.error == "PoolUnreachable"
            assert told.text.startswith(
                "The process that held this notebook's arrays has ended. The arrays of this notebook are lost with it. "
                "The pool cannot be reached now: it may have been stopped. When it is up again, run your cells again "
                "from the top"
            )
            assert "keeps" not in told.text
        comes_back(pool, mine, "The pool was stopped by its operator.")


def test_a_pool_that_died_at_once_is_told_of_as_one_that_cannot_be_reached(pool: PoolState) -> None:
    with computing(pool) as mine:
        mine.finish()
        kill_all(pool)
        told = mine.run("float(out[0])")
        assert told.text.startswith("The process that held this notebook's arrays has ended.")
        assert "keeps" not in told.text
        comes_back(pool, mine, "The process that held this notebook's arrays ended unexpectedly.")


def test_an_executor_and_the_gateway_that_die_together_come_back_by_themselves(pool: PoolState) -> None:
    with computing(pool) as mine:
        mine.finish()
        executor, gateway = mine.executor_pid(), read_identity(pool.process_file("gateway"))
        assert gateway is not None
        os.kill(gateway.pid, signal.SIGKILL)
        os.kill(executor, signal.SIGKILL)
        until(lambda: read_identity(pool.process_file("gateway")) not in (None, gateway))
        until(lambda: bool(commands.status(pool).devices))
        told = mine.run("float(cp.ones(3).sum())")
        assert told.error == "SessionLost"
        assert "ended" in told.text
        assert mine.value("float(cp.ones(3).sum())") == "3.0"


def test_from_another_host_it_cannot_be_known_and_nothing_is_promised(pool: PoolState, tmp_path: Path) -> None:
    with computing_far(pool, tmp_path) as mine:
        mine.finish()
        mine.run("from kernelproxy.session import lease; lease.PATIENCE_SECONDS = 3.0")
        kill_all(pool)
        told = mine.run("float(out[0])")
        assert told.error == "PoolUnreachable"
        assert "Connection refused" in told.text
        assert "Whether your arrays are still there cannot be known from here." in told.text
        comes_back(pool, mine, "The process that held this notebook's arrays ended unexpectedly.")
