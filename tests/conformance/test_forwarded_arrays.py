"""Objects that say of their memory what an array of ours says of its own, or that it lies within one's."""

from __future__ import annotations

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


class ByProperty:
    """Forwards the one attribute."""

    def __init__(self, array: Any) -> None:
        self._array = array

    @property
    def __cuda_array_interface__(self) -> Any:
        return self._array.__cuda_array_interface__


class ByName:
    """Forwards whatever is asked of it."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getattr__(self, name: str) -> Any:
        return getattr(self._array, name)


class Said:
    """Says what it was told to say."""

    def __init__(self, **said: Any) -> None:
        self.__cuda_array_interface__ = {"typestr": "<f8", "version": 3} | said


@pytest.mark.parametrize("forwards", [ByProperty, ByName, lambda x: Said(**dict(x.__cuda_array_interface__))])
def test_what_forwards_an_array_is_that_array(cp: CuPy, forwards: Callable[[Any], Any]) -> None:
    x = cp.arange(6.0)
    cp.asarray(forwards(x))[0] = 9
    cp.asarray(forwards(x[::-2]))[0] = 7
    assert x.get().tolist() == [9, 1, 2, 3, 4, 7]
    assert (cp.ones(6) + forwards(x)).get().tolist() == [10, 2, 3, 4, 5, 8]
    assert cp.where(x > 3, forwards(x), 0.0).get().tolist() == [9, 0, 0, 0, 4, 7]
    assert cp.sin(forwards(x)).shape == cp.array(forwards(x)).shape == (6,)
    assert cp.asarray(forwards(cp.zeros((0, 3)))).shape == (0, 3)
    assert cp.asarray(forwards(x)) is not x
    x[:] = forwards(x[:1])
    assert x.get().tolist() == [9] * 6


def test_an_address_within_an_array_is_a_window_on_it(cp: CuPy) -> None:
    x = cp.arange(6.0)
    start = x.data.ptr
    window = cp.asarray(Said(shape=(2,), data=(start + 8, False), strides=(16,)))
    window[0] = 99
    assert x.get().tolist() == [0, 99, 2, 3, 4, 5]
    assert window.get().tolist() == [99, 3]
    assert cp.asarray(Said(shape=(6,), data=(start + 40, False), strides=(-8,))).get().tolist() == [5, 4, 3, 2, 99, 0]
    assert (cp.ones(2) + Said(shape=(2,), data=(start + 32, False))).get().tolist() == [5, 6]


def test_an_address_that_was_told_of_a_view_is_one_of_its_array(cp: CuPy) -> None:
    x = cp.arange(6.0).reshape(2, 3)
    assert cp.asarray(Said(shape=(2,), data=(x[1, 1:].data.ptr, False))).get().tolist() == [4, 5]


def test_what_lies_nowhere_or_reaches_beyond_is_refused(cp: CuPy) -> None:
    x = cp.arange(6.0)
    start = x.data.ptr
    with pytest.raises(TypeError, match="No array of this session lies at 0x1000, where this Said says that it does"):
        cp.asarray(Said(shape=(3,), data=(0x1000, False)))
    for said in (
        {"shape": (6,), "data": (start + 8, False)},
        {"shape": (3,), "data": (start + 8, False), "strides": (-8,)},
        {**dict(x.__cuda_array_interface__), "shape": (7,)},
    ):
        with pytest.raises(ValueError, match="reaches beyond"):
            cp.asarray(Said(**said))
    with pytest.raises(BufferError, match="no CUDA pointer"):
        _ = x.__cuda_array_interface__["data"]


def test_numpys_integers_say_the_same_and_stay_nowhere(cp: CuPy) -> None:
    x = cp.arange(6.0)
    said = {"shape": (np.int64(3),), "strides": (np.int64(16),), "data": (np.uint64(x.data.ptr), False)}
    assert cp.asarray(Said(**said)).get().tolist() == [0, 2, 4]
    assert cp.ones(3)[::1].nbytes.bit_length() == 5, "of this very layout, too"


def test_fields_without_a_name_lie_between_others(cp: CuPy) -> None:
    padded = np.dtype([("a", "i1"), ("b", "f8")], align=True)
    x = cp.array(np.array([(1, 2.5), (3, 4.5)], padded))
    again = cp.asarray(ByProperty(x))
    assert again.dtype == padded
    assert again.get().tolist() == [(1, 2.5), (3, 4.5)]


@pytest.mark.parametrize("typestr", ["<M8[ns]", "<f16", "|O"])
def test_what_no_device_holds_is_refused_at_its_line(cp: CuPy, typestr: str) -> None:
    x = cp.zeros(8)
    with pytest.raises(ValueError, match="Unsupported dtype"):
        cp.asarray(Said(shape=(1,), data=(x.data.ptr, False), typestr=typestr))
