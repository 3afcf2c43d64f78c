"""What kernels say of their parameters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from gpu_backend.devices import open_device
from tests.conformance.in_process import notebook_on
from tests.cupy_names import CuPy


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def cp(request: pytest.FixtureRequest) -> Iterator[CuPy]:
    with notebook_on(open_device(request.param)):
        yield CuPy()


def told(parameters: tuple[object, ...]) -> list[tuple[object, ...]]:
    return [tuple(getattr(one, name) for name in ("name", "dtype", "ctype", "raw", "is_const")) for one in parameters]


def test_a_kernel_of_elements_tells_of_each(cp: CuPy) -> None:
    kernel = cp.ElementwiseKernel("T x, raw float32 y", "T z", "z = x", "copied")
    inputs = [("x", None, "T", False, True), ("y", np.dtype("f4"), "float", True, True)]
    output = ("z", None, "T", False, False)
    assert told(kernel.in_params) == inputs
    assert told(kernel.out_params) == [output]
    assert told(kernel.params) == [*inputs, output, ("_ind", None, None, False, False)]
    assert repr(kernel.out_params[0]) == "<ParameterInfo(name='z' dtype=None ctype='T' raw=False is_const=False)>"
    assert type(kernel.in_params[0]).__name__ == "ParameterInfo"


def test_so_does_a_reduction(cp: CuPy) -> None:
    kernel = cp.ReductionKernel("T x", "float64 y", "x", "a + b", "y = a", "0", "summed")
    assert told(kernel.in_params) == [("x", None, "T", False, True)]
    assert told(kernel.out_params) == [("y", np.dtype("f8"), "double", False, False)]
    assert kernel.params is None
