"""Process groups over two machines: each rank's session is on another one, and what passes goes between these."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpu_backend.pool import commands
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from tests.faults.machines import Machine, machine
from tests.integration.notebook_pool import cpu_pool, sessions, wait_until
from tests.integration.ranks import Ranks
from tests.integration.test_channels_of_two_nodes import _ELSEWHERE, ROOT
from tests.spare_ports import spare_ports

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    ports = spare_ports(2)
    heard = PoolSettings(
        devices="cpu", sessions_per_device=1, max_sessions_per_user=0, listen_host="127.0.0.1", listen_port=ports[0],
        nodes_host="127.0.0.1", nodes_port=ports[1],
    )  # fmt: skip
    with cpu_pool(tmp_path_factory.mktemp("head"), heard) as own:
        yield own


@pytest.fixture(scope="module", params=["one host", "two hosts"])
def other(
    pool: PoolState, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Machine]:
    with machine(pool) as one, pytest.MonkeyPatch.context() as patch:
        if request.param == "two hosts":
            folder = tmp_path_factory.mktemp("elsewhere")
            (folder / "sitecustomize.py").write_text(_ELSEWHERE)
            patch.setenv("PYTHONPATH", f"{folder}:{ROOT}")
        one.join()
        patch.undo()
        wait_until(lambda: len({device.node for device in commands.status(pool).devices}) == 2)
        yield one


_PROGRAM = """
comm = init_process_group(size, rank)
host = np.arange(3 << 20, dtype="f8")
out = cp.empty(3 << 20)
comm.all_reduce(cp.asarray(host) * (rank + 1), out)
print(bool((out.get() == 3 * host).all()), flush=True)
sys.stdin.read()
every = cp.empty(2, "i")
comm.all_gather(cp.full(1, rank, "i"), every, 1)
print(every.get().tolist())
"""


def test_ranks_are_on_both_machines(pool: PoolState, other: Machine) -> None:
    with Ranks(_PROGRAM, 2) as both:
        assert [both.line(rank) for rank in range(2)] == ["True\n"] * 2
        assert len({one.node for one in sessions(pool)}) == 2
        assert both.said() == ["[0, 1]\n"] * 2
    wait_until(lambda: sessions(pool) == ())
