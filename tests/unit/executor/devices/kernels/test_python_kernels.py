"""Kernels written in Python: ``cupyx.jit.rawkernel``, ``cupy.vectorize``, ``cupy.fuse``."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices.cpu.kernels.fusion import fuse
from gpu_backend.devices.cpu.kernels.jit import FunctionSource, JitRawKernel, ModuleName, rawkernel
from gpu_backend.devices.cpu.kernels.vectorize import vectorize

# Kernels name these modules; only their names count, nothing of them is looked up.
jit: Any = types.ModuleType("cupyx.jit")
cupy: Any = types.ModuleType("cupy")

FACTOR = 3


@rawkernel(device=True)
def bump(x, y):
    x += 1
    return x * FACTOR + y


@rawkernel()
def kitchen_sink(x, y, out, counts, n):
    tid = jit.grid(1)
    total = x[tid] * 0
    for i in range(tid, n, jit.gridsize(1)):
        if i == 5:
            continue
        total += bump(x[i], y[i]) if i % 2 == 0 else max(x[i], y[i], 2)
    k = 0
    while True:
        k += 1
        if k > 3:
            break
    smem = jit.shared_memory(np.int32, 32)
    smem[jit.threadIdx.x] = total
    jit.syncthreads()
    value = smem[jit.blockDim.x - 1 - jit.threadIdx.x]
    value += jit.shfl_xor_sync(0xFFFFFFFF, value, 1)
    out[tid] = value + k
    jit.atomic_add(counts, tid % 2, 1)


def test_a_kernel_with_loops_shared_memory_shuffles_and_atomics() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(-9, 9, 100).astype(np.int32), rng.integers(-9, 9, 100).astype(np.int32)
    out, counts = np.zeros(64, np.int32), np.zeros(2, np.int32)
    kitchen_sink((2,), (32,), (x, y, out, counts, np.uint32(100)))
    totals = np.zeros(64, np.int64)
    for i in range(100):
        if i != 5:
            totals[i % 64] += (x[i] + 1) * 3 + y[i] if i % 2 == 0 else max(x[i], y[i], 2)
    turned = totals.reshape(2, 32)[:, ::-1]
    expected = turned + turned[:, np.arange(32) ^ 1] + 4
    np.testing.assert_array_equal(out, expected.ravel())
    assert counts.tolist() == [32, 32]


@rawkernel()
def copy_2d(x, y, n, m):
    i, j = jit.grid(2)
    if i < n and j < m:
        y[i, j] = x[i, j]
        row = x[i]
        y[i, j] += row[j] * x.ndim + x.shape[1] + len(x)


def test_two_dimensions_strides_rows_and_attributes() -> None:
    x = np.arange(40.0).reshape(5, 8).T[::2]
    y = np.zeros(x.shape)
    copy_2d[(1, 1), (4, 5)](x, y, *x.shape)
    np.testing.assert_array_equal(y, x * 3 + 5 + 4)
    assert len(copy_2d.cached_codes) == 1
    assert "py_copy_2d" in copy_2d.cached_code


@rawkernel(mode="cuda")
def typed(x, b, i, f, c):
    x[0] = 1 / 2
    x[1] = f
    x[2] = i // 2
    x[3] = i % 3
    x[4] = abs_of(c)
    x[5] = cupy.sqrt(f) + np.float64(b)
    x[6] = -(i**2) if b else 0
    return


@rawkernel(device=True)
def abs_of(c):
    return cupy.absolute(c)


def test_numbers_of_every_kind() -> None:
    x = np.zeros(7)
    typed((1,), (1,), (x, True, -7, 2.25, 3 + 4j))
    np.testing.assert_allclose(x, [0.5, 2.25, -4, 2, 5, 2.5, -49])


def outside(x):
    return unknown_name + x  # noqa: F821


def recursive(x):
    x[0] = itself(x)


@rawkernel(device=True)
def itself(x):
    return itself(x)


def with_statement(x):
    with x:
        pass


def unpacks_one(x):
    (a,) = jit.grid(1)
    x[0] = a


def unpacks_three(x):
    a, b, c = jit.grid(2)
    x[0] = a + b + c


def bad_grid(x):
    x[0] = jit.grid(4)


def float_index(x):
    x[0.5] = 1


def changes_type(x):
    a = 1
    a = 2.5
    x[0] = a


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (outside, NameError, "Unbound name: unknown_name"),
        (recursive, ValueError, "Recursive function"),
        (with_statement, ValueError, "Switching contexts"),
        (unpacks_one, ValueError, "cannot be unpack"),
        (unpacks_three, ValueError, "not enough values"),
        (bad_grid, ValueError, "Only ndim=1,2,3"),
        (float_index, TypeError, "must be integers"),
        (changes_type, TypeError, "Cannot cast from 'float32' to int32"),
    ],
)
def test_what_is_refused_and_where(function: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text) as caught:
        JitRawKernel(function)((1,), (1,), (np.zeros(1),))
    assert "\n> " in str(caught.value)


def test_a_kernel_that_only_others_may_call_and_one_that_they_may_not() -> None:
    with pytest.raises(TypeError, match="not supported for RawKernel"):
        kitchen_sink((1,), (1,), ("text",))
    names = {"other": kitchen_sink}
    caller = JitRawKernel(FunctionSource("caller", "def caller(x):\n    other(x)", names))
    with pytest.raises(TypeError, match="Calling __global__ function kitchen_sink"):
        caller((1,), (1,), (np.zeros(1),))


def test_a_kernel_from_its_source_alone() -> None:
    text = "@jit.rawkernel()\ndef scale(x, n):\n    i = jit.grid(1)\n    if i < n:\n        x[i] *= cupy.float32(K)\n"
    kernel = JitRawKernel(
        FunctionSource("scale", text, {"jit": ModuleName("cupyx.jit"), "cupy": ModuleName("cupy"), "K": 4})
    )
    x = np.arange(5, dtype=np.float32)
    kernel((1,), (8,), (x, 5))
    np.testing.assert_array_equal(x, np.arange(5) * 4)


def test_nothing_of_a_module_but_arrays_words_can_be_reached() -> None:
    text = "def f(x):\n    x[0] = {}\n"
    names = {"numpy": ModuleName("numpy"), "os": ModuleName("os"), "one": 1}
    for expression in ("numpy.ctypeslib.x", "os.getpid()", "numpy.load('x')", "one.__class__"):
        with pytest.raises(AttributeError):
            JitRawKernel(FunctionSource("f", text.format(expression), names))((1,), (1,), (np.zeros(1),))


def my_func(x, y):
    if x > y:
        return x - y
    total = 0.0 * x
    for i in range(3):
        total += y * i
    return total


def test_vectorize_branches_and_loops() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(4, 5)), rng.normal(size=5)
    np.testing.assert_allclose(vectorize(my_func)(x, y), np.vectorize(my_func)(x, y), rtol=1e-15)


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "complex128"])
def test_vectorize_operators_of_each_type(dtype: str) -> None:
    rng = np.random.default_rng(2)
    x = rng.integers(1, 9, 20).astype(dtype)
    y = rng.integers(1, 5, 20).astype(dtype)
    pairs = [
        (vectorize(lambda a, b: a + b * 2), x + y * 2),
        (vectorize(lambda a, b: a / b), x / y),
        (vectorize(lambda a, b: a == b), x == y),
        (vectorize(lambda a, b: a if b != 3 else b), np.where(y != 3, x, y)),
    ]
    if dtype != "complex128":
        pairs += [
            (vectorize(lambda a, b: a // b), x // y),
            (vectorize(lambda a, b: a % b), x % y),
        ]
    for function, expected in pairs:
        result = function(x, y)
        np.testing.assert_allclose(result, expected, rtol=2e-3 if dtype == "float16" else 1e-15)


def test_vectorize_compares_signed_with_unsigned() -> None:
    x, y = np.array([-1, 5, 2**62]), np.array([3, 5, 2**63], np.uint64)
    np.testing.assert_array_equal(vectorize(lambda a, b: a < b)(x, y), [True, False, True])
    np.testing.assert_array_equal(vectorize(lambda a, b: a >= b)(y, x), [True, True, True])


def test_vectorize_tuples_ufuncs_and_what_is_not_supported() -> None:
    def both(x, y):
        return cupy.minimum(x, y), cupy.exp(x)

    low, exponential = vectorize(both)(np.array([1.0, 2.0]), np.array([2, 1]))
    np.testing.assert_array_equal(low, [1, 1])
    np.testing.assert_allclose(exponential, np.exp([1, 2]))
    with pytest.raises(NotImplementedError, match="signature"):
        vectorize(both, signature="()->()")
    with pytest.raises(TypeError, match="does not support for the input types"):
        vectorize(lambda a, b: a % b)(np.array([1j]), np.array([1j]))
    with pytest.raises(ValueError, match="Multiple callables"):
        (vectorize(lambda a: a), vectorize(lambda a: -a))[0](np.ones(1))


def test_fuse_runs_the_function_and_keeps_arrays() -> None:
    @fuse(kernel_name="squared_diff")
    def squared_diff(x, y):
        return (x - y) * (x - y)

    x = np.arange(10)
    np.testing.assert_array_equal(squared_diff(x, x[::-1]), (x - x[::-1]) ** 2)
    assert repr(squared_diff) == "<Fusion 'squared_diff'>"
    assert isinstance(fuse(lambda a: a.sum())(x), np.ndarray)
    with pytest.raises(TypeError, match="Invalid argument type for 'squared_diff'"):
        squared_diff(x, "text")
