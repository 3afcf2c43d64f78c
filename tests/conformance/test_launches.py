"""Launches of a user's kernels that come again are recorded at once; what was found for one is not taken for others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices import open_device
from gpu_backend.opstream.proof import kernels as proofs
from kernelproxy.namespace.names import make
from tests.conformance.in_process import InProcess, notebook_on


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Iterator[InProcess]:
    with notebook_on(open_device(request.param)) as executor:
        yield executor


@pytest.fixture
def scaled(device: InProcess) -> Any:
    """Return a kernel with a number of few bits and one of many."""
    return make("cupy.ElementwiseKernel")("float64 x, int8 k, float64 a", "float64 y", "y = x * k + a", "scaled")


def test_numbers_are_new_each_time(scaled: Any) -> None:
    host = np.arange(7.0)
    x = make("cupy.arange")(7.0)
    for k, a in ((1, 0.5), (2, -1.5), (-128, 1e300), (127, float("inf")), (3, 4), (np.int8(5), np.float32(2.5))):
        for _ in range(3):
            assert (scaled(x, k, a).get() == host * k + a).all()


def test_the_same_launch_is_proved_once(scaled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = make("cupy.arange")(7.0)
    for _ in range(2):
        scaled(x, 1, 0.5)

    def none_more(*args: object) -> None:
        raise AssertionError("proved again")

    monkeypatch.setattr(proofs, "result", none_more)
    assert scaled(x, 1, 7.5).get()[2] == 9.5
    with pytest.raises(AssertionError, match="proved again"):
        scaled(x[1:], 1, 7.5)


def test_a_number_that_does_not_fit_is_refused_after_others_that_do(scaled: Any) -> None:
    x = make("cupy.arange")(7.0)
    for _ in range(3):
        scaled(x, 100, 0.5)
    numbers: tuple[object, ...] = (128, -129, 300, 1 << 63, 2.5, 1j, np.int64(300), np.float64(1))
    outcomes = [_outcome(scaled, x, k) for k in numbers]
    first = make("cupy.ElementwiseKernel")("float64 x, int8 k, float64 a", "float64 y", "y = x * k + a", "scaled")
    assert outcomes == [_outcome(first, x, k) for k in numbers]
    assert sum(isinstance(one, type) for one in outcomes) >= 4
    assert scaled(x, 100, 0.5).get()[1] == 100.5


def _outcome(kernel: Any, x: Any, k: object) -> object:
    """Return what the kernel makes, or the class of the error."""
    try:
        return kernel(x, k, 0.5).get().tolist()
    except (OverflowError, TypeError, ValueError) as error:
        return type(error)


def test_other_arrays_are_other_launches(scaled: Any) -> None:
    x = make("cupy.arange")(12.0)
    table = x.reshape(3, 4)
    for _ in range(3):
        for one in (x, table, table.T, table[:, 1:], x[::2]):
            found = scaled(one, 2, 1.0)
            assert found.shape == one.shape
            assert (found.get() == one.get() * 2 + 1).all()
    with pytest.raises(TypeError):
        scaled(x.astype("f4"), 2, 1.0)


def test_a_kernel_that_writes_into_what_it_is_given(device: InProcess) -> None:
    into = make("cupy.ElementwiseKernel")("float64 x, float64 a", "float64 y", "y = x + a", "into")
    x, y = make("cupy.arange")(5.0), make("cupy.zeros")(5)
    for a in (1.0, 2.0, 3.0, 4.0):
        assert into(x, a, y) is y
        assert (y.get() == np.arange(5.0) + a).all()
