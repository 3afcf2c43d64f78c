"""A range of ports for executors, and what happens when it is full."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from gpu_backend.node import launcher
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from tests.faults.notebook import Notebook
from tests.integration.notebook_pool import cpu_pool, sessions, wait_until
from tests.spare_ports import spare_ports

pytestmark = pytest.mark.timeout(180)

_COMPUTE = "import cupy as cp; float(cp.arange(10).sum())"


@pytest.fixture
def ports() -> range:
    return spare_ports(3)


@pytest.fixture
def pool(tmp_path: Path, ports: range) -> Iterator[PoolState]:
    wanted = PoolSettings(devices="cpu", executor_ports=f"{ports[0]}-{ports[-1]}", warm_executors_per_device=1)
    with cpu_pool(tmp_path, wanted) as own:
        yield own


def listening(pool: PoolState) -> set[int]:
    """Return the ports of all executors that run."""
    running = [one for one in launcher.directories(str(pool.runtime)) if launcher.process_in(one) is not None]
    told = [config for one in running if (config := launcher.config_in(one)) is not None]
    return {int(far.rpartition(":")[2]) for one in told for far in one.endpoints if far.startswith("tls://")}


def test_a_full_range_is_one_clear_message_and_the_other_sessions_go_on(pool: PoolState, ports: range) -> None:
    config = pool.root / "client.toml"
    with ExitStack() as stack:
        three = [stack.enter_context(Notebook(config)) for _ in range(3)]
        assert [one.value(_COMPUTE) for one in three] == ["45.0"] * 3
        assert listening(pool) == set(ports)
        fourth = stack.enter_context(Notebook(config))
        refused = fourth.run(_COMPUTE)
        assert refused.error in ("PoolRefusal", "SessionLost")  # it may hear of it only as it asks again
        assert f"all 3 ports of executor_ports ({ports[0]}-{ports[-1]}) are taken" in refused.text
        assert "can widen the range in pool.toml" in refused.text
        assert [one.value("float(cp.ones(3).sum())") for one in three] == ["3.0"] * 3
        assert len(sessions(pool)) == 3
        three[0].end()
        wait_until(lambda: len(sessions(pool)) == 2)
        wait_until(lambda: not fourth.run(_COMPUTE).error, 60)
