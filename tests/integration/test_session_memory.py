"""A session's limit holds whatever its program does to pools, limits and allocators."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from tests.integration.notebook_pool import cpu_pool

LIMIT = 64 << 20
PROGRAM = f"""
import cupy as cp

OutOfMemoryError = cp.cuda.memory.OutOfMemoryError
pool = cp.get_default_memory_pool()
assert cp.cuda.runtime.memGetInfo()[1] == {LIMIT}
assert pool.get_limit() == {LIMIT}


def most():
    kept = []
    try:
        while len(kept) < 100:
            kept.append(cp.zeros(1 << 20, "f"))
    except OutOfMemoryError:
        return len(kept)
    return None


assert most() == 16
pool.free_all_blocks()
pool.set_limit(size=0)
assert most() == 16
pool.free_all_blocks()  # what one pool has cached is no other's
cp.cuda.set_allocator(cp.cuda.MemoryPool().malloc)
assert most() == 16
cp.cuda.set_allocator(None)
assert most() == 16
cp.cuda.set_allocator(pool.malloc)
pool.set_limit(size={LIMIT} // 2)
pool.free_all_blocks()
assert most() == 8
"""


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    with cpu_pool(tmp_path_factory.mktemp("memory"), PoolSettings(devices="cpu", default_memory_bytes=LIMIT)) as own:
        yield own


def test_no_setting_of_a_program_lifts_its_limit(pool: PoolState) -> None:
    command = [sys.executable, "-m", "workbench", "run", "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
