"""Operators with arrays of other libraries: who is asked, as CuPy asks; on each device."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices import open_device
from tests.conformance.asked_of_views import REMOTE
from tests.conformance.in_process import InProcess, notebook_on

OPERATORS = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "power": operator.pow, "less": operator.lt,
    "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge, "left_shift": operator.lshift,
    "right_shift": operator.rshift, "bitwise_and": operator.and_, "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor, "matmul": operator.matmul, "divmod": divmod,
}  # fmt: skip


class Wrapper:
    """An array of another library around one of ours, as xarray, Dask and pint have them."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if "out" in kwargs:
            return function.__name__, "into", type(kwargs["out"][0]).__name__
        return function.__name__, [type(one).__name__ for one in inputs], getattr(inputs[0], "inner", inputs[0])


class WithEquality(Wrapper):
    """Compares for itself."""

    def __eq__(self, other: object) -> bool:
        raise AssertionError("NumPy's ufunc is asked first")

    __hash__ = None  # type: ignore[assignment]


class Deaf:
    """Wants to be asked by its own reflected operators, and never by a ufunc."""

    __array_ufunc__ = None

    def __radd__(self, other: Any) -> str:
        return "reflected"


class StandsFor:
    """Has an array of ours, and says so in CuPy's way."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __cupy_get_ndarray__(self) -> Any:
        return self.inner


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)], autouse=True)
def executor(request: pytest.FixtureRequest) -> Iterator[InProcess]:
    with notebook_on(open_device(request.param)) as one:
        yield one


@pytest.mark.parametrize("name", OPERATORS)
def test_numpys_ufunc_asks_the_other_library(name: str) -> None:
    array, other = REMOTE.arange(3), Wrapper(1)
    asked, kinds, first = OPERATORS[name](array, other)
    assert (asked, kinds) == (name, ["ndarray", "Wrapper"])
    assert first is array


def test_what_compares_for_itself_is_asked_by_its_ufunc() -> None:
    asked, kinds, _ = REMOTE.arange(3) == WithEquality(1)
    assert (asked, kinds) == ("equal", ["ndarray", "WithEquality"])
    asked, _, _ = REMOTE.arange(3) != WithEquality(1)
    assert asked == "not_equal"


def test_what_compares_as_every_object_does_equals_nothing() -> None:
    assert (REMOTE.arange(3) == Wrapper(1)).get().tolist() == [False] * 3
    assert (REMOTE.arange(3) != Wrapper(1)).get().tolist() == [True] * 3


def test_an_output_of_the_other_librarys_is_its_own_affair() -> None:
    made: Any = np.add(REMOTE.arange(3), REMOTE.arange(3), out=Wrapper(1))  # type: ignore[call-overload]
    assert made == ("add", "into", "Wrapper")


def test_who_wants_no_ufunc_is_asked_by_its_reflected_operator() -> None:
    assert REMOTE.arange(3) + Deaf() == "reflected"


@pytest.mark.parametrize("other", [Wrapper(1), Deaf(), [1, 2, 3], np.ones(3)])
def test_into_an_array_of_ours_nobody_else_computes(other: Any) -> None:
    array = REMOTE.arange(3)
    before = array
    with pytest.raises(TypeError, match="Unsupported type"):
        array += other
    assert array is before
    assert array.get().tolist() == [0, 1, 2]


def test_cupys_own_functions_take_nothing_of_other_libraries() -> None:
    with pytest.raises(TypeError, match="Unsupported type"):
        REMOTE.add(REMOTE.arange(3), Wrapper(1))
    with pytest.raises(TypeError, match="Unsupported type"):
        Wrapper(1) + REMOTE.arange(3)  # type: ignore[operator]


@pytest.mark.parametrize("name", ["add", "power", "less", "floor_divide"])
def test_what_stands_for_an_array_is_that_array(name: str) -> None:
    array = REMOTE.arange(1, 4)
    expected = OPERATORS[name](array, array).get().tolist()
    assert OPERATORS[name](array, StandsFor(array)).get().tolist() == expected
    assert getattr(np, name)(array, StandsFor(array)).get().tolist() == expected
    if name == "add":
        array += StandsFor(array)
        assert array.get().tolist() == expected
