"""An op gives the same however often it comes: what is found out about it once is true of all that come in that way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.conformance.in_process import InProcess
from tests.cupy_names import CuPy

REMOTE = CuPy()
#: So often an op comes: what is captured, compiled or learnt is by then.
_TURNS = 60


@pytest.mark.parametrize("head", [(5, 5), (0, 0), (1, 1), (4, 2)])
def test_a_struct_comes_whole(executor: InProcess, head: tuple[int, int]) -> None:
    """Some look like what CuPy tells its own kernels of a shape, of which those read the first half alone."""
    source = (
        "struct Grid { long long nx, ny, nz; };\n"
        'extern "C" __global__ void told(Grid grid, long long* y) { y[0] = grid.nx; y[1] = grid.ny; y[2] = grid.nz; }'
    )
    told, y = REMOTE.RawKernel(source, "told"), REMOTE.zeros(3, "i8")
    grid = np.array((*head, 7), dtype=[("nx", "i8"), ("ny", "i8"), ("nz", "i8")])[()]
    for _ in range(_TURNS):
        y.fill(-1)
        told((1,), (1,), (grid, y))
        assert y.get().tolist() == [*head, 7]


@pytest.mark.parametrize("name", ["dot", "matmul"])
def test_an_operand_may_be_the_output(executor: InProcess, name: str) -> None:
    host = np.random.default_rng(3).integers(0, 2, (300, 300))
    first, other, into = REMOTE.asarray(host), REMOTE.asarray(host.T.copy()), REMOTE.zeros((300, 300), int)
    product, expected = getattr(REMOTE, name), host @ host.T
    for turn in range(_TURNS):
        given = first.copy()
        out = given if turn % 3 == 2 else into
        product(given, other, out=out)
        assert (out.get() == expected).all(), turn


def test_numbers_side_by_side_are_told_apart(executor: InProcess) -> None:
    line = REMOTE.ElementwiseKernel("complex128 x, complex128 a, complex128 b", "complex128 y", "y = a * x + b", "line")
    x = REMOTE.ones(4, complex)
    for _ in range(_TURNS):
        line(x, 1j, 0.0)
    for a, b in ((0.0, 1 + 0j), (1j, 0.0), (1 + 2j, 3.0), (1.0, 2 + 3j), (0.0, 1 + 0j)):
        assert line(x, a, b).get().tolist() == [a + b] * 4


@pytest.mark.filterwarnings("ignore:.* encountered in cast")
@pytest.mark.parametrize("dtype", ["u1", "u4", "u8", "i2", "i8", "f2", "f4", "f8", "c16", "?"])
@pytest.mark.parametrize("value", [-0.0, -1e-60, -5.0, 300.7, 1e30])
def test_an_array_is_filled_by_a_number_of_another_type(executor: InProcess, dtype: str, value: float) -> None:
    x, window = REMOTE.zeros(6, dtype), REMOTE.zeros((4, 6), dtype)[:, 1:3]
    found = []
    for _ in range(_TURNS):
        x[...] = 1
        x[...] = np.float64(value)
        window[...] = 1
        window[...] = np.float64(value)
        found.append(x.get().tobytes() + window.get().tobytes())
    assert set(found) == {found[0]}


def test_what_is_given_twice_to_a_kernel_of_the_users_is_one_array(executor: InProcess) -> None:
    twice = REMOTE.ElementwiseKernel("int64 x, int64 y", "int64 z", "z = x + 2 * y", "twice")
    x, y = REMOTE.arange(5), REMOTE.ones(5, int)
    for _ in range(_TURNS):
        y.fill(1)
        into = REMOTE.zeros(5, int)
        twice(x, y, into)
        twice(y, y, y)
        assert into.get().tolist() == [2, 3, 4, 5, 6]
        assert y.get().tolist() == [3] * 5


def test_a_byte_that_is_neither_true_nor_false_counts_as_one(executor: InProcess) -> None:
    mask, ones = REMOTE.asarray(np.array([2, 3, 0, 1], "u1")).view("?"), REMOTE.ones(4)
    for _ in range(_TURNS):
        assert (mask * ones).get().tolist() == (mask + ones * 0).get().tolist() == [1.0, 1.0, 0.0, 1.0]


@pytest.mark.parametrize("store", [lambda x, v: x.fill(v), lambda x, v: x.__setitem__(..., v)])
def test_a_number_that_does_not_fit_is_warned_of_each_time(
    executor: InProcess, store: Callable[[Any, np.float64], None]
) -> None:
    x = REMOTE.ones(3, "u4")
    for _ in range(_TURNS):
        # A device that a test drives by itself silences NumPy in the notebook too, which has its own process else.
        with np.errstate(invalid="warn"), pytest.warns(RuntimeWarning, match="invalid value encountered in cast"):
            store(x, np.float64(1e30))
