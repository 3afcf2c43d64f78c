"""Kernels of the user's that are launched again and again: what they write, and what they give."""

from __future__ import annotations

import numpy as np
import pytest

from kernelproxy.client import current
from tests.conformance.in_process import InProcess
from tests.cupy_names import CuPy

REMOTE = CuPy()
_TURNS = 6


def forms() -> int:
    """Return how many kinds of ops are known."""
    return len(current().pipeline.forms)


def test_what_is_written_into_is_given_back_each_time(executor: InProcess) -> None:
    add = REMOTE.ElementwiseKernel("float64 x, float64 y", "float64 z", "z = x + y", "sum_of_two")
    x, y, z = REMOTE.arange(5.0), REMOTE.ones(5), REMOTE.zeros(5)
    known = []
    for turn in range(_TURNS):
        into = z if turn % 2 else x
        assert add(into, y, into) is into
        assert add(x, y) is not x
        known.append(forms())
    assert known[1] == known[-1], "it is found again"
    assert x.get().tolist() == (np.arange(5.0) + 3).tolist()
    assert z.get().tolist() == [3.0] * 5


def test_an_output_that_does_not_fit_is_refused_each_time(executor: InProcess) -> None:
    add = REMOTE.ElementwiseKernel("float64 x", "float64 z", "z = x + 1", "one_more")
    x, z, small = REMOTE.arange(5.0), REMOTE.zeros(5), REMOTE.zeros(4)
    for _ in range(3):
        assert add(x, z) is z
        with pytest.raises(ValueError, match="shape"):
            add(x, small)
    assert small.get().tolist() == [0.0] * 4


def test_a_grid_is_taken_as_it_is_given_each_time(executor: InProcess) -> None:
    source = 'extern "C" __global__ void more(double* x) { x[blockIdx.x * blockDim.x + threadIdx.x] += 1; }'
    more, x = REMOTE.RawKernel(source, "more"), REMOTE.zeros(4)
    whole, half = ((2,), (2,)), ((1,), (2,))
    for grid, block in (whole, whole, half, whole, ((*[2],), (*[2],)), half, half, ((1, 1, 1), (4,))):
        more(grid, block, (x,))
    assert x.get().tolist() == [8.0, 8.0, 5.0, 5.0]
