"""Pools of device memory, asked from a notebook: each has its own books and its own limit, as in CuPy."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from gpu_backend.devices import open_device
from kernelproxy.client import current
from tests.conformance.asked_of_views import REMOTE as cp
from tests.conformance.in_process import InProcess, notebook_on, notebook_on_two

MIB = 1 << 20


@pytest.fixture(scope="module")
def notebook() -> Iterator[InProcess]:
    with notebook_on(open_device("cpu")) as one:
        yield one


@pytest.fixture
def executor(notebook: InProcess) -> Iterator[InProcess]:
    gc.collect()  # errors of other tests hold arrays
    usual = cp.get_default_memory_pool()
    yield notebook
    cp.cuda.set_allocator(usual.malloc)
    usual.set_limit(size=0)
    notebook.device.set_memory_limit(0)


def counts(pool: Any) -> tuple[int, int, int]:
    return pool.used_bytes(), pool.total_bytes(), pool.n_free_blocks()


def test_what_comes_from_a_pool_is_on_its_books(executor: InProcess) -> None:
    usual, own, other = cp.get_default_memory_pool(), cp.cuda.MemoryPool(), cp.cuda.MemoryPool()
    usual.free_all_blocks()
    before = usual.used_bytes()
    block = own.malloc(MIB)
    kept = cp.zeros(2 * MIB, "u1")
    assert (usual.used_bytes() - before, counts(own), counts(other)) == (2 * MIB, (MIB, MIB, 0), (0, 0, 0))
    del block
    usual.free_all_blocks()
    assert counts(own) == (0, MIB, 1)
    assert own.free_bytes() == MIB
    own.free_all_blocks()
    assert (counts(own), usual.used_bytes() - before) == ((0, 0, 0), 2 * MIB)
    assert kept.nbytes == 2 * MIB


def test_arrays_come_from_the_pool_that_is_set(executor: InProcess) -> None:
    usual, own = cp.get_default_memory_pool(), cp.cuda.MemoryPool()
    small = cp.ones(10)
    before = usual.used_bytes()
    with cp.cuda.using_allocator(own.malloc):
        made = [cp.ones(MIB, "u1"), cp.arange(10), small + 1]
        assert cp.cuda.alloc(MIB).mem.size == MIB
    assert (own.used_bytes(), own.free_bytes(), usual.used_bytes()) == (MIB + 1024, MIB, before)
    after = [cp.ones(10), cp.cuda.alloc(MIB)]
    assert (own.used_bytes(), usual.used_bytes()) == (MIB + 1024, before + MIB + 512)
    made.clear()
    assert own.used_bytes() == 0
    after.clear()
    assert usual.used_bytes() == before


def test_what_comes_from_no_pool_is_on_none_of_their_books(executor: InProcess) -> None:
    usual = cp.get_default_memory_pool()
    before, held = usual.used_bytes(), executor.device.held_bytes()
    cp.cuda.set_allocator(None)
    kept = cp.zeros(MIB, "u1")
    assert (usual.used_bytes(), executor.device.held_bytes()) == (before, held + MIB)
    del kept
    cp.cuda.set_allocator(usual.malloc)
    assert (usual.used_bytes(), executor.device.held_bytes()) == (before, held)


def test_a_limit_is_one_pools(executor: InProcess) -> None:
    usual, own, other = cp.get_default_memory_pool(), cp.cuda.MemoryPool(), cp.cuda.MemoryPool()
    own.set_limit(size=MIB)
    assert (usual.get_limit(), own.get_limit(), other.get_limit()) == (0, MIB, 0)
    kept = [cp.zeros(2 * MIB, "u1"), other.malloc(2 * MIB), own.malloc(MIB)]
    said = r"allocating 512 bytes \(allocated so far: 1,048,576 bytes, limit set to: 1,048,576 bytes\)"
    with pytest.raises(cp.cuda.memory.OutOfMemoryError, match=said):
        own.malloc(1)
    with cp.cuda.using_allocator(own.malloc), pytest.raises(cp.cuda.memory.OutOfMemoryError):
        cp.zeros(2 * MIB, "u1")
    kept.pop()
    assert own.malloc(1).mem.size  # cut from what is cached
    other.set_limit(fraction=0.5)
    assert other.get_limit() == cp.cuda.runtime.memGetInfo()[1] // 2
    with pytest.raises(ValueError, match="size and fraction"):
        other.set_limit(1, 0.5)
    other.set_limit()
    assert (other.get_limit(), own.get_limit(), usual.get_limit()) == (0, MIB, 0)


def test_the_sessions_limit_is_below_all_pools(executor: InProcess) -> None:
    executor.device.free_unused()
    limit = executor.device.held_bytes() + 8 * MIB
    executor.device.set_memory_limit(limit)
    usual, own = cp.get_default_memory_pool(), cp.cuda.MemoryPool()
    assert (usual.get_limit(), own.get_limit()) == (limit, 0)
    usual.set_limit(size=0)
    kept = [own.malloc(5 * MIB)]
    with pytest.raises(cp.cuda.memory.OutOfMemoryError):
        int(cp.zeros(5 * MIB, "u1").sum())
    with pytest.raises(cp.cuda.memory.OutOfMemoryError):
        cp.cuda.MemoryPool().malloc(5 * MIB)
    kept.clear()
    assert own.total_bytes() == 5 * MIB
    with pytest.raises(cp.cuda.memory.OutOfMemoryError):
        int(cp.zeros(5 * MIB, "u1").sum())  # what another pool has cached is not there to be had
    own.free_all_blocks()
    assert not cp.zeros(5 * MIB, "u1").any()


def test_a_pool_that_is_gone_has_cached_nothing(executor: InProcess) -> None:
    executor.device.set_memory_limit(executor.device.held_bytes() + 8 * MIB)
    executor.device.free_unused()
    own = cp.cuda.MemoryPool()
    block, rest = own.malloc(3 * MIB), own.malloc(3 * MIB)
    del own, rest
    gc.collect()
    kept = cp.zeros(4 * MIB, "u1")
    del block
    assert not cp.zeros(3 * MIB, "u1").any()
    assert kept.nbytes == 4 * MIB


def test_the_notebook_knows_the_lowest_limit_of_the_pools_in_use(executor: InProcess) -> None:
    usual, own, memory = cp.get_default_memory_pool(), cp.cuda.MemoryPool(), current().memory
    usual.set_limit(size=8 * MIB)
    own.set_limit(size=4 * MIB)
    assert memory.limit_bytes == 8 * MIB  # nothing comes from the other
    with cp.cuda.using_allocator(own.malloc):
        assert memory.limit_bytes == 4 * MIB
        own.set_limit(size=64 * MIB)
        assert memory.limit_bytes == 8 * MIB
        own.set_limit(size=2 * MIB)
        assert memory.limit_bytes == 2 * MIB
    assert memory.limit_bytes == 8 * MIB
    usual.set_limit(size=16 * MIB)
    assert memory.limit_bytes == 16 * MIB


def test_no_pool_is_remembered_as_what_arrays_come_from(executor: InProcess) -> None:
    own = cp.cuda.MemoryPool()
    cp.cuda.set_allocator(None)
    try:
        assert cp.cuda.get_allocator().__name__ == "_malloc"
        with cp.cuda.using_allocator(own.malloc):
            assert cp.cuda.get_allocator() == own.malloc
        before = cp.get_default_memory_pool().used_bytes(), own.used_bytes()
        kept = cp.zeros(MIB, "u1")
        assert int(kept.sum()) == 0
        assert (cp.get_default_memory_pool().used_bytes(), own.used_bytes()) == before
    finally:
        cp.cuda.set_allocator(cp.get_default_memory_pool().malloc)


def test_each_device_has_a_limit_that_is_known(tmp_path_factory: pytest.TempPathFactory) -> None:
    with notebook_on_two("cpu", tmp_path_factory.mktemp("kernels")):
        usual = cp.get_default_memory_pool()
        try:
            usual.set_limit(size=4 * MIB)
            with cp.cuda.Device(1):
                usual.set_limit(size=64 * MIB)
            assert current().memory.limit_bytes == 4 * MIB
        finally:  # these books are the next test's, too
            for number in (0, 1):
                with cp.cuda.Device(number):
                    usual.set_limit()


def test_a_pool_has_books_on_each_device(tmp_path_factory: pytest.TempPathFactory) -> None:
    with notebook_on_two("cpu", tmp_path_factory.mktemp("kernels")):
        usual, own = cp.get_default_memory_pool(), cp.cuda.MemoryPool()
        own.set_limit(size=8 * MIB)
        cp.cuda.set_allocator(own.malloc)
        kept = [cp.zeros(MIB, "u1")]
        with cp.cuda.Device(1):
            assert (counts(own), own.get_limit()) == ((0, 0, 0), 0)
            kept += [cp.zeros(16 * MIB, "u1"), own.malloc(MIB)]
            assert (own.used_bytes(), usual.used_bytes()) == (17 * MIB, 0)
        assert (own.used_bytes(), own.get_limit()) == (MIB, 8 * MIB)
        kept.clear()
        assert counts(own) == (0, MIB, 1)
        with cp.cuda.Device(1):
            assert own.used_bytes() == 0
        cp.cuda.set_allocator(usual.malloc)


def test_an_allocator_ends_with_its_executor() -> None:
    device = open_device("cpu")
    usual = device.resolve("cupy.get_default_memory_pool")()
    for _ in range(2):
        with notebook_on(device):
            assert cp.cuda.get_allocator() == cp.get_default_memory_pool().malloc
            own = cp.cuda.MemoryPool()
            with cp.cuda.using_allocator(own.malloc):
                assert cp.cuda.get_allocator() == own.malloc
            cp.cuda.set_allocator(own.malloc)
            assert cp.cuda.get_allocator() == own.malloc
        device.resolve("cupy.cuda.set_allocator")(usual.malloc)  # it stands for the next executor's, too


def test_an_executor_that_is_lost_in_a_context_is_asked_for_nothing_at_its_end() -> None:
    """What the context then raises is what its body has raised."""
    device = open_device("cpu")
    usual = device.resolve("cupy.get_default_memory_pool")()

    def lose() -> None:
        with cp.cuda.using_allocator(cp.cuda.MemoryPool().malloc):
            current().adopt(None)
            raise ZeroDivisionError

    with notebook_on(device), pytest.raises(ZeroDivisionError):
        lose()
    device.resolve("cupy.cuda.set_allocator")(usual.malloc)
