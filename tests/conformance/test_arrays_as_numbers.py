"""Arrays where Python wants a number, and powers of them: as NumPy does with the contents, or as CuPy does alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices import open_device
from tests.conformance.in_process import notebook_on
from tests.cupy_names import CuPy


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def cp(request: pytest.FixtureRequest) -> Iterator[CuPy]:
    with notebook_on(open_device(request.param)):
        yield CuPy()


def said(call: Callable[[Any], Any], value: Any) -> tuple[object, ...]:
    """Return what a call gives or raises, and of what it warns."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found: tuple[object, ...] = (call(value),)
        except (TypeError, ValueError) as error:
            found = (type(error), str(error))
    return (*found, {one.category for one in told})


@pytest.mark.parametrize("call", [int, float, complex, bool])
@pytest.mark.parametrize("value", [1.5, True, 2 + 1j, -0.0, [3], [[2.5]], [1j], [], [1, 2]], ids=str)
def test_a_number_of_an_array_is_that_of_numpys(cp: CuPy, call: Callable[[Any], Any], value: Any) -> None:
    if call is bool and value == []:
        return  # of which CuPy has words of its own
    assert said(call, cp.array(value)) == said(call, np.array(value))


@pytest.mark.parametrize("number", [0, 5])
@pytest.mark.parametrize("dtype", [[("a", "i4")], [("a", "i4"), ("b", "f8")]], ids=str)
@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_record_is_true_by_what_it_holds(cp: CuPy, number: int, dtype: Any, shape: tuple[int, ...]) -> None:
    host = np.full(shape, number, np.dtype(dtype))
    assert bool(cp.asarray(host)) is bool(host)
    assert cp.asarray(host).item() == host.item()


def test_the_only_item_has_no_index(cp: CuPy) -> None:
    assert cp.array([[7]]).item() == 7
    for index in [(0,), (None,), (0, 0), ((0, 0),)]:
        with pytest.raises(TypeError):
            cp.array([[7]]).item(*index)
    with pytest.raises(ValueError, match=r"^can only convert an array of size 1 to a Python scalar$"):
        cp.arange(2).item()


def test_a_power_knows_of_no_modulo(cp: CuPy) -> None:
    x = cp.arange(4)
    assert pow(x, 2, 5).get().tolist() == [0, 1, 4, 9]
    assert pow(x, x, 2).get().tolist() == [1, 1, 4, 27]
