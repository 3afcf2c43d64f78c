"""A session's limit holds on a GPU, whatever its program does to pools, limits and allocators."""

from __future__ import annotations

import os

import numpy as np
import pytest

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

LIMIT = 64 << 20


def test_every_pool_keeps_to_the_limit_of_the_device() -> None:
    from gpu_backend.devices import open_device

    device = open_device("cuda", int(os.environ.get("GPU_WORKBENCH_TEST_ORDINAL", "0")))
    device.set_memory_limit(LIMIT)
    empty, set_allocator = device.resolve("cupy.empty"), device.resolve("cupy.cuda.set_allocator")
    out_of_memory = device.resolve("cupy.cuda.memory.OutOfMemoryError")

    def most() -> int:
        kept = []
        try:
            while len(kept) < 100:
                kept.append(empty((1 << 22,), np.uint8))
        except out_of_memory:
            return len(kept)
        return -1

    pool = device.resolve("cupy.get_default_memory_pool")()
    try:
        assert most() == 16
        pool.free_all_blocks()
        pool.set_limit(size=0)
        assert most() == 16
        pool.free_all_blocks()
        own = device.resolve("cupy.cuda.MemoryPool")()
        set_allocator(own.malloc)
        assert most() == 16
        own.free_all_blocks()
        set_allocator(None)
        assert most() == 16
        with pytest.raises(RuntimeError, match="past what the session was given"):
            device.resolve("cupy.cuda.malloc_managed")(8)
        with pytest.raises(TypeError, match="MemoryPool"):
            set_allocator(lambda size: None)
    finally:
        set_allocator(pool.malloc)
        device.set_memory_limit(0)
