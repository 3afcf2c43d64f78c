"""Process groups over two machines: each rank's session is on another one, and what passes goes between these."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpu_backend.pool.state import PoolState
from tests.faults.machines import Machine
from tests.integration.notebook_pool import cpu_pool, open_to_machines, sessions, wait_until
from tests.integration.ranks import Ranks
from tests.integration.test_channels_of_two_nodes import other

__all__ = ["other"]

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    heard = open_to_machines(sessions_per_device=1, max_sessions_per_user=0)
    with cpu_pool(tmp_path_factory.mktemp("head"), heard) as own:
        yield own


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
