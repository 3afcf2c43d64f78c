"""Pools of memory of the CPU device itself: what its classes and its ledger say, without a notebook."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices import open_device
from gpu_backend.devices.cpu.memory import LEDGER, Ledger, OutOfMemoryError

MIB = 1 << 20


@pytest.fixture
def cp() -> Iterator[Any]:
    gc.collect()
    device = open_device("cpu")
    yield device.resolve
    device.resolve("cupy.cuda.set_allocator")(device.resolve("cupy.get_default_memory_pool")().malloc)


def test_raw_memory_is_no_pools(cp: Any) -> None:
    usual, before = cp("cupy.get_default_memory_pool")(), LEDGER.used_bytes
    booked = usual.used_bytes()
    raw, managed = cp("cupy.cuda.Memory")(MIB), cp("cupy.cuda.malloc_managed")(MIB)
    assert (usual.used_bytes(), LEDGER.used_bytes) == (booked, before + 2 * MIB)
    total = LEDGER.total_bytes
    del raw, managed
    assert (LEDGER.used_bytes, LEDGER.total_bytes) == (before, total - 2 * MIB)
    pooled = cp("cupy.cuda.alloc")(MIB)
    assert usual.used_bytes() == booked + MIB
    pooled.mem.free()
    assert usual.used_bytes() == booked


def test_what_was_noted_before_another_pool_was_set_is_the_first_ones(cp: Any) -> None:
    usual, own = cp("cupy.get_default_memory_pool")(), cp("cupy.cuda.MemoryPool")()
    before, zeros = usual.used_bytes(), cp("cupy.zeros")
    kept = [zeros(8)]
    cp("cupy.cuda.set_allocator")(own.malloc)
    assert cp("cupy.cuda.get_allocator")() == own.malloc
    kept += [zeros(8), zeros(8)]
    window = kept[0][2:]
    assert (usual.used_bytes() - before, own.used_bytes()) == (512, 1024)
    kept.clear()
    assert (usual.used_bytes() - before, own.used_bytes()) == (512, 0)
    del window
    assert usual.used_bytes() == before


def test_an_allocator_of_ones_own_is_refused(cp: Any) -> None:
    with pytest.raises(NotImplementedError, match="needs a CUDA device"):
        cp("cupy.cuda.set_allocator")(lambda size: None)


def test_the_operators_limit_leaves_a_lower_one_of_the_program() -> None:
    ledger = Ledger()
    ledger.set_quota(8 * MIB)
    assert (ledger.usual.limit_bytes, ledger.limit_bytes) == (8 * MIB, 8 * MIB)
    ledger.set_limit(ledger.usual, 4 * MIB)
    ledger.set_quota(16 * MIB)
    assert (ledger.usual.limit_bytes, ledger.limit_bytes, ledger.quota_bytes) == (4 * MIB, 4 * MIB, 16 * MIB)


def test_what_a_pool_has_cached_is_given_up_for_what_it_asks() -> None:
    ledger, kept = Ledger(), []
    own = ledger.new_pool()
    ledger.set_limit(own, 4 * MIB)
    ledger.book_in(own)
    for _ in range(3):
        array = np.empty(MIB, np.uint8)
        ledger.hold(array)
        kept.append(array)
    del array
    kept.clear()
    assert (ledger.settled(own).n_free_blocks, own.total_bytes) == (3, 3 * MIB)
    ledger.require(4 * MIB)
    array = np.empty(4 * MIB, np.uint8)
    ledger.hold(array)
    assert (own.n_free_blocks, own.total_bytes, ledger.total_bytes) == (0, 4 * MIB, 4 * MIB)
    with pytest.raises(OutOfMemoryError, match="so far: 4,194,304 bytes, limit set to: 4,194,304 bytes"):
        ledger.require(1)
