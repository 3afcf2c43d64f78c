"""Kernels written in Python."""

from __future__ import annotations

import math

import cupy as cp
import numpy as np
from cupyx import jit
from cupyx.jit import threadIdx
from expecting import refused

FACTOR = 3


@jit.rawkernel()
def copy(x, y, size):
    tid = jit.blockIdx.x * jit.blockDim.x + jit.threadIdx.x
    ntid = jit.gridDim.x * jit.blockDim.x
    for i in range(tid, size, ntid):
        y[i] = x[i]


x = cp.arange(1024, dtype=cp.float32)
y = cp.empty_like(x)
for launch in (
    lambda: copy((128,), (1024,), (x, y, cp.uint32(1024))),
    lambda: copy[128, 1024](x, y, cp.uint32(1024)),
    lambda: copy((2,), (32,), (x, y, cp.uint32(1024)), stream=cp.cuda.Stream.null),
):
    y[...] = 0
    launch()
    assert (x == y).all()
assert "copy" in copy.cached_code
assert copy.__name__ == "copy"


@jit.rawkernel()
def reduce(x, y, size):
    tid = jit.threadIdx.x
    ntid = jit.blockDim.x
    value = cp.float32(0)
    for i in range(tid, size, ntid):
        value += x[i]
    smem = jit.shared_memory(cp.float32, 1024)
    smem[tid] = value
    jit.syncthreads()
    if tid == cp.uint32(0):
        value = cp.float32(0)
        for i in range(ntid):
            value += smem[i]
        y[0] = value


total = cp.empty((1,), dtype=cp.float32)
reduce[1, 64](cp.ones(1024, "f"), total, cp.uint32(1024))
assert float(total[0]) == 1024


@jit.rawkernel(device=True)
def inner(v):
    return v * FACTOR


def make(offset):
    @jit.rawkernel()
    def outer(x):
        i = threadIdx.x
        x[i] = inner(x[i]) + offset

    return outer


ones = cp.ones(4)
make(10)((1,), (4,), (ones,))
assert ones.get().tolist() == [13] * 4


def plus(n, *, times=1):
    @jit.rawkernel(device=True)
    def inner(v):
        if n > 1:
            return v + n * times + plus(n - 1)(v)
        return v

    return inner


@jit.rawkernel()
def templates(x):
    i = threadIdx.x
    x[i] = plus(1)(x[i]) + plus(FACTOR - 1, times=10)(x[i]) + ten()


def ten():
    return 10


ones = cp.ones(4)
templates((1,), (4,), (ones,))
assert ones.get().tolist() == [1 + (1 + 20 + 1) + 10] * 4


@jit.rawkernel()
def unknown(x):
    x[0] = plus(x[1])(x[0])


refused(TypeError, lambda: unknown((1,), (1,), (ones,)))


@jit.rawkernel()
def gather(x, y):
    jit.atomic_add(y, 0, x[jit.threadIdx.x])


y = cp.zeros(1, "f")
gather((1,), (4,), (cp.ones(4, "f"), y))
assert float(y[0]) == 4

# --- vectorize -------------------------------------------------------------------------------------------------------


@cp.vectorize
def distance(a, b):
    if a > b:
        return a - b
    return b - a


assert distance(cp.arange(4), cp.full(4, 2)).get().tolist() == [2, 1, 0, 1]
assert float(cp.vectorize(lambda x: x * x + 1)(cp.arange(3.0)).sum()) == 8
assert cp.vectorize(lambda x: cp.sin(x) + math.pi)(cp.zeros(2)).get().tolist() == [math.pi] * 2
assert cp.vectorize(lambda x: x + np.float32(1))(cp.arange(3, dtype="f")).dtype == np.float32
refused(NotImplementedError, lambda: cp.vectorize(lambda x: x, excluded=["x"]), "excluded")
assert distance.__class__ is cp.vectorize

# --- fuse ------------------------------------------------------------------------------------------------------------


@cp.fuse(kernel_name="squared")
def squared(x, y):
    return cp.sum((x - y) ** 2)


@cp.fuse()
def both(x):
    return x + 1, cp.sin(x)


@cp.fuse
def accumulate(x, y):
    x += y


x, y = cp.arange(10), cp.arange(10)[::-1]
assert squared.__name__ == "squared"
refused(TypeError, lambda: squared(x, [1]), "Invalid argument type for 'squared'")
assert float(squared(x, y)) == 330
assert float(both(cp.zeros(3))[0].sum()) == 3
z = cp.zeros(10, x.dtype)
accumulate(z, x)
assert float(z.sum()) == 45
