"""Two machines with a device each, of which some are taken: who wants both waits for both, and holds none meanwhile."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_backend.pool import commands, people
from gpu_backend.pool.state import PoolState
from gpu_backend.transport import curve
from gpu_backend.transport.asking import Door, ask
from gpu_backend.wire.control import CloseSession, OpenSession
from tests.faults.machines import Machine, machine
from tests.integration.conftest import granted
from tests.integration.notebook_pool import cpu_pool, open_to_machines, sessions, wait_until
from tests.integration.running_kernel import notebook
from tests.integration.test_jupyter_waiting import told, waiting
from tests.integration.test_several_devices import RUN

pytestmark = pytest.mark.timeout(240)

_CELL = "import cupy as cp\nwith cp.cuda.Device(1):\n    x = cp.arange(10.0)\n    print(float(x.sum()), x.device.id)"
_PROGRAM = "import cupy as cp\ncp.cuda.Device(1).use()\nprint(float(cp.arange(10.0).sum()))"
_ONE_FREE = "2 devices were asked for, with a session each; 1 at most can be had now."


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    heard = open_to_machines(sessions_per_device=1, max_sessions_per_user=0)
    with cpu_pool(tmp_path_factory.mktemp("head"), heard) as own, pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPU_WORKBENCH_DEVICES", "2")
        yield own


@pytest.fixture(scope="module")
def other(pool: PoolState) -> Iterator[Machine]:
    with machine(pool) as one:
        one.join()
        wait_until(lambda: len({device.node for device in commands.status(pool).devices}) == 2)
        yield one


@pytest.fixture(scope="module")
def eve(pool: PoolState) -> Door:
    """Another user."""
    people.add_user(pool, "eve")
    people.make_key(pool, "eve", pool.root / "eve.key")
    operators = commands.operator_door(pool)
    return Door(operators.endpoint, operators.server_key, curve.load(pool.root / "eve.key"))


@pytest.fixture
def taken(pool: PoolState, other: Machine, eve: Door) -> Iterator[str]:
    """A session of hers, on one of the two devices."""
    wait_until(lambda: not sessions(pool))
    session = granted(eve, OpenSession(0, "first.ipynb")).session
    yield session
    free(eve, session)


def free(eve: Door, session: str) -> None:
    ask(eve, CloseSession(0, session))


def there(pool: PoolState) -> list[str]:
    return [one.session for one in sessions(pool)]


def hers(pool: PoolState) -> str:
    """Return settings of a program with which it is hers."""
    path = pool.root / "eve.toml"
    own = Path(os.environ["GPU_WORKBENCH_CONFIG"]).read_text()
    lines = [line for line in own.splitlines() if not line.startswith("key_file")]
    path.write_text("\n".join([f'key_file = "{pool.root / "eve.key"}"', *lines]))
    return str(path)


def test_a_notebook_waits_for_both_and_holds_none_meanwhile(pool: PoolState, taken: str, eve: Door) -> None:
    with notebook() as running:
        cell = running.client.execute(_CELL)
        assert told(running, cell, "number 1 of 1").startswith(_ONE_FREE)
        assert there(pool) == [taken]
        assert told(running, cell, "Waiting for"), "it asks again and again, and has none of them"
        assert there(pool) == [taken]
        free(eve, taken)
        assert running.collect(cell).endswith("45.0 1\n")
        assert len({one.node for one in sessions(pool)}) == 2
    wait_until(lambda: not sessions(pool))


def test_the_stop_button_leaves_nothing_behind(pool: PoolState, taken: str) -> None:
    with notebook() as running:
        cell = running.client.execute(_CELL)
        told(running, cell, "number 1 of 1")
        running.manager.interrupt_kernel()
        assert "KeyboardInterrupt" in running.collect(cell)
        wait_until(lambda: waiting(pool) == 0)
        assert there(pool) == [taken]
        cell = running.client.execute(_CELL)  # who waits again waits for both again
        assert told(running, cell, "number 1 of 1").startswith(_ONE_FREE)
        running.manager.interrupt_kernel()
        running.collect(cell)


def test_two_who_want_both_come_one_after_the_other(pool: PoolState, taken: str, eve: Door) -> None:
    with notebook() as running:
        cell = running.client.execute(_CELL)
        told(running, cell, "number 1 of 1")
        program = subprocess.Popen(
            [*RUN, "-c", _PROGRAM], stdout=subprocess.PIPE, text=True,
            env={**os.environ, "GPU_WORKBENCH_CONFIG": hers(pool)},
        )  # fmt: skip
        wait_until(lambda: waiting(pool) == 2)
        free(eve, taken)
        assert running.collect(cell).endswith("45.0 1\n")
        assert (len(there(pool)), waiting(pool)) == (2, 1)
        assert program.poll() is None
    said, _ = program.communicate()
    assert (said, program.returncode) == ("45.0\n", 0)
    wait_until(lambda: not sessions(pool))


def test_a_kernel_that_starts_again_gives_up_what_it_had_to_wait_for_both(
    pool: PoolState, other: Machine, eve: Door
) -> None:
    wait_until(lambda: not sessions(pool))
    with notebook() as running:
        assert running.run(_CELL) == "45.0 1\n"
        running.restart()
        wait_until(lambda: len(there(pool)) == 1)  # the other ended with its kernel
        taken = granted(eve, OpenSession(0, "first.ipynb")).session
        cell = running.client.execute(_CELL)
        assert "number 1 of 1" in told(running, cell, _ONE_FREE)  # once what it gave up has ended
        wait_until(lambda: there(pool) == [taken])
        free(eve, taken)
        assert running.collect(cell).endswith("45.0 1\n")
        running.restart()
        assert running.run(_CELL).endswith("45.0 1\n")
    wait_until(lambda: not sessions(pool))
