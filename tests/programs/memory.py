"""Device memory: what pools say, limits, errors at the line that caused them, pointers."""

import ctypes
import gc

import cupy as cp
import cupyx
import numpy as np
from expecting import refused

pool = cp.get_default_memory_pool()
pinned = cp.get_default_pinned_memory_pool()
OutOfMemoryError = cp.cuda.memory.OutOfMemoryError


# --- what is held ----------------------------------------------------------------------------------------------------

a = cp.zeros(1000, dtype=cp.float32)
assert pool.used_bytes() == 4096
b = cp.zeros(1 << 20, dtype=cp.uint8)
assert pool.used_bytes() == 4096 + (1 << 20)
view = b[::2]
del a, b
assert pool.used_bytes() == 1 << 20, "a view keeps the memory of its root"
del view
gc.collect()
assert pool.used_bytes() == 0
assert pool.total_bytes() == pool.free_bytes() > 0
assert pool.n_free_blocks() == 2
pool.free_all_blocks()
assert (pool.total_bytes(), pool.n_free_blocks()) == (0, 0)

# --- limits: the error comes at the call that caused it --------------------------------------------------------------

before = pool.get_limit()
pool.set_limit(size=64 << 20)
assert pool.get_limit() == 64 << 20
kept = []
try:
    for place in range(20):  # noqa: B007 (looked at below)
        kept.append(cp.zeros(1 << 20))
    raise AssertionError("nothing was refused")
except OutOfMemoryError as error:
    assert place == 8, place
    assert "Out of memory allocating 8,388,608 bytes" in str(error)
    assert "limit set to: 67,108,864 bytes" in str(error)
kept.clear()
pool.free_all_blocks()
x = cp.zeros(1 << 20)
sums = []
try:
    for place in range(20):
        sums.append(x + place)
    raise AssertionError("nothing was refused")
except MemoryError:
    assert place == 7, place
sums.clear()
assert float((x + 1)[0]) == 1, "after an error and freeing, there is room again"
del x
pool.set_limit(fraction=0.5)
assert pool.get_limit() > 64 << 20
refused(ValueError, lambda: pool.set_limit(size=1, fraction=0.5))
pool.set_limit(size=before)
refused(OutOfMemoryError, lambda: cp.zeros(10**14))
refused(OutOfMemoryError, lambda: cp.empty((1 << 20, 1 << 20)))
free, total = cp.cuda.runtime.memGetInfo()
assert 0 < free <= total
assert cp.cuda.Device().mem_info[1] == total

# --- allocators ------------------------------------------------------------------------------------------------------

own = cp.cuda.MemoryPool()
cp.cuda.set_allocator(own.malloc)
a = cp.ones(1000)
assert own.used_bytes() >= 8192
assert cp.cuda.get_allocator() == own.malloc
cp.cuda.set_allocator(None)
cp.cuda.set_allocator(pool.malloc)
assert float(a.sum()) == 1000
with cp.cuda.using_allocator(own.malloc):
    assert float(cp.arange(10).sum()) == 45
with cp.cuda.using_allocator(cp.cuda.MemoryAsyncPool().malloc):
    assert float(cp.arange(10).sum()) == 45

# --- pointers --------------------------------------------------------------------------------------------------------

memory = cp.cuda.alloc(1024)
assert isinstance(memory, cp.cuda.MemoryPointer)
assert int(memory) == memory.ptr != 0
assert memory.mem.size >= 1024
assert memory.device == cp.cuda.Device(0)
a = cp.ndarray((128,), dtype=cp.float64, memptr=memory)
a[...] = 3
b = cp.ndarray((64,), dtype=cp.float64, memptr=memory + 512)
b[...] = 1
assert float(a.sum()) == 64 * 3 + 64
assert a.data.ptr == memory.ptr
memory.memset(0, 1024)
assert float(a.sum()) == 0
host = np.arange(10.0)
memory.copy_from_host(host.ctypes.data, 80)
memory.copy_from_host(ctypes.c_void_p(host.ctypes.data), 80)
assert float(a.sum()) == 45
back = np.empty(10)
memory.copy_to_host(back.ctypes.data, 80)
assert (back == host).all()
other = cp.cuda.alloc(80)
other.copy_from_device(memory, 80)
other.copy_from(memory, 80)
stream = cp.cuda.Stream()
other.copy_from_host_async(host.ctypes.data, 80, stream)
stream.synchronize()
assert float(cp.ndarray((10,), "d", other).sum()) == 45

a = cp.arange(10.0)
place = a.data.ptr
assert a[2:].data.ptr == place + 16
assert a[::-1].data.ptr == place + 72
assert a.data.mem.ptr == place
assert float(cp.ndarray(5, "d", a.data + 8)[0]) == 1
unowned = cp.cuda.UnownedMemory(a.data.ptr, a.nbytes, a)
cp.ndarray(10, "d", cp.cuda.MemoryPointer(unowned, 0))[0] = 100
assert float(a[0]) == 100

# --- host memory -----------------------------------------------------------------------------------------------------

pinned.free_all_blocks()
assert pinned.n_free_blocks() == 0
memory = cp.cuda.alloc_pinned_memory(80)
assert isinstance(memory, cp.cuda.PinnedMemoryPointer)
assert memory.size() >= 80
host = np.frombuffer(memory, np.float64, 10)
host[...] = np.arange(10)
assert float(cp.asarray(host).sum()) == 45
cp.arange(10.0)[::-1].copy().get(out=host)
assert host[0] == 9
assert cupyx.empty_pinned((3, 4), "f").shape == (3, 4)
assert cupyx.zeros_like_pinned(cp.ones((2, 3))).tolist() == [[0] * 3] * 2
