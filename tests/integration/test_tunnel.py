"""A notebook that reaches its pool through a tunnel's near end only, as with ``ssh -L``: up, down, and up again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from gpu_backend.pool import commands, people
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from gpu_backend.transport import curve
from gpu_backend.wire.errors import ForeignServer, PoolUnreachable
from tests.faults.cutter import Cutter
from tests.faults.notebook import Notebook
from tests.integration.notebook_pool import cpu_pool, wait_until
from tests.spare_ports import spare_ports
from workbench import connecting
from workbench.diagnosis import diagnose
from workbench.finding import State

pytestmark = pytest.mark.timeout(300)

_POOL, _NEAR = "127.0.0.1", "127.0.0.2"
_AS_ON_ANOTHER_MACHINE = "from gpu_backend.transport import local; local.here = lambda: 'another machine'"


class Tunnel:
    """Near ends on this machine, and what they lead to under the same numbers."""

    def __init__(self, stack: ExitStack, ports: range) -> None:
        self._ways = [Cutter(f"tcp://{_POOL}:{port}", [], near=(_NEAR, port)) for port in ports]
        for way in self._ways:
            stack.callback(way.close)

    @property
    def turned_away(self) -> int:
        return sum(way.turned_away for way in self._ways)

    def lead(self, is_up: bool) -> None:
        """Have the near ends lead to the pool, or accept connections and close them."""
        for way in self._ways:
            way.leads_nowhere = not is_up
            way.cut()


@pytest.fixture
def ports() -> range:
    return spare_ports(5)


@pytest.fixture
def pool(tmp_path: Path, ports: range) -> Iterator[PoolState]:
    wanted = PoolSettings(
        devices="cpu", listen_host=_POOL, listen_port=ports[0], executor_ports=f"{ports[1]}-{ports[-1]}"
    )
    with cpu_pool(tmp_path, wanted) as own:
        yield own


@pytest.fixture
def tunnel(pool: PoolState, ports: range) -> Iterator[Tunnel]:
    """A tunnel to the pool, and this user connected through it."""
    with ExitStack() as stack:
        made = Tunnel(stack, ports)
        key = people.address(pool).server_key
        connecting.connect(f"{_NEAR}:{ports[0]}", key, pool.operator_key, executor_host=_NEAR)
        yield made


@pytest.fixture
def notebook(pool: PoolState, tunnel: Tunnel) -> Iterator[Notebook]:
    with Notebook(pool.root / "client.toml") as mine:
        mine.run(_AS_ON_ANOTHER_MACHINE)
        assert mine.value("x = cp.arange(1000.0); float(x.sum())") == "499500.0"
        assert mine.value("current_session().pipeline.connection.endpoint").startswith(f"'tls://{_NEAR}:")
        yield mine


def pool_finding() -> str:
    (found,) = [one for one in diagnose() if one.subject == "pool"]
    assert found.state is State.PROBLEM
    return found.found


def test_a_tunnel_that_breaks_behind_its_near_end_and_comes_back_loses_nothing(
    tunnel: Tunnel, notebook: Notebook
) -> None:
    tunnel.lead(is_up=False)
    before = tunnel.turned_away
    notebook.begin("x += 1; float(x.sum())")
    wait_until(lambda: tunnel.turned_away > before + 20)  # both ports were tried, the gateway's more than once
    tunnel.lead(is_up=True)
    outcome = notebook.finish()
    assert outcome.value == "500500.0", outcome


def test_a_pool_that_is_down_behind_its_tunnel_is_not_told_as_a_wrong_key(
    pool: PoolState, tunnel: Tunnel, notebook: Notebook
) -> None:
    commands.down(pool)
    assert notebook.run("float(x.sum())").error == "PoolUnreachable"
    with pytest.raises(PoolUnreachable, match="closes them without a word") as told:
        connecting.connect()
    assert "No key was looked at" in str(told.value)
    assert "closes them without a word" in pool_finding()

    commands.up(pool)
    connecting.connect()
    assert notebook.run("float(x.sum())").error == "SessionLost"
    assert notebook.value("float(cp.ones(3).sum())") == "3.0"


def test_a_wrong_server_key_is_told_as_one_through_a_tunnel(tunnel: Tunnel, ports: range) -> None:
    with pytest.raises(ForeignServer, match="is not the pool whose public key we hold"):
        connecting.connect(f"{_NEAR}:{ports[0]}", curve.generate().public.decode())
