"""Views against NumPy's own, on arrays that are laid out in every way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.exceptions import AxisError

from gpu_backend.opstream.layout import Layout, contiguous, strided
from gpu_backend.opstream.proof import Unproved, View, prove, views

BASE = np.arange(4 * 5 * 6, dtype=np.int16).reshape(4, 5, 6)
#: The same memory, looked at in many ways.
ARRAYS = [
    BASE, BASE.T, BASE[::2, 1:4, ::-1], BASE[1], BASE[:, 2:3], BASE[..., 0], BASE.swapaxes(0, 1)[::3],
    np.broadcast_to(BASE[0], (3, 5, 6)), BASE[0, 0, :1], BASE.reshape(20, 6)[3:, ::2],
]  # fmt: skip
arrays = st.sampled_from(ARRAYS)
bounds = st.none() | st.integers(-7, 7)
slices = st.builds(slice, bounds, bounds, st.none() | st.sampled_from([1, 2, -1, -2, 3]))
parts = st.integers(-6, 6) | slices | st.none() | st.just(Ellipsis)


def layout_of(array: np.ndarray[Any, Any]) -> Layout:
    return strided(array.shape, array.strides, array.dtype)


def offset_of(view: np.ndarray[Any, Any], array: np.ndarray[Any, Any]) -> int:
    return int(view.__array_interface__["data"][0] - array.__array_interface__["data"][0])


def check(made: Any, expected: np.ndarray[Any, Any], array: np.ndarray[Any, Any]) -> None:
    offset, layout = made
    assert layout.shape == expected.shape
    assert layout.dtype == expected.dtype
    if expected.size:
        assert offset == offset_of(expected, array)
        steps = zip(expected.strides, layout.strides, layout.shape, strict=True)
        assert all(step == mine or extent == 1 for step, mine, extent in steps)


@given(arrays, st.lists(parts, max_size=4).map(tuple))
def test_basic_indices(array: np.ndarray[Any, Any], key: tuple[Any, ...]) -> None:
    try:
        expected = array[(*key, ...)] if ... not in [part for part in key if part is ...] else array[key]
    except IndexError:
        with pytest.raises(IndexError):
            views.getitem(layout_of(array), key)
        return
    check(views.getitem(layout_of(array), key), expected, array)


@pytest.mark.parametrize(
    ("key", "words"),
    [(9, "Index 9 is out of bounds for axis 0 with size 4"),
     ((0, -6), "Index -6 is out of bounds for axis 1 with size 5"),
     ((0, 0, 0, 0), "too many indices for array: array is 3-dimensional, but 4 were indexed"),
     ((..., ...), "an index can only have a single ellipsis")],
)  # fmt: skip
def test_index_errors_have_cupys_words(key: Any, words: str) -> None:
    with pytest.raises(IndexError, match=words):
        views.getitem(layout_of(BASE), key)
    with pytest.raises(ValueError, match=r"Slice step must be nonzero\."):
        views.getitem(layout_of(BASE), slice(None, None, 0))


def test_what_is_no_basic_index_is_unproved() -> None:
    layout = layout_of(BASE)
    assert isinstance(views.getitem(layout, True), Unproved)
    assert isinstance(views.getitem(layout, [0, 1]), Unproved)
    assert isinstance(views.getitem(layout, slice(layout, None)), Unproved)
    assert views.getitem(layout, np.int64(1)) == views.getitem(layout, 1)


@given(arrays, st.lists(st.sampled_from([-1, 1, 2, 3, 4, 5, 6, 10, 12, 20, 30]), max_size=4), st.sampled_from("CFA"))
def test_reshape(array: np.ndarray[Any, Any], shape: list[int], order: Any) -> None:
    try:
        expected = array.reshape(shape, order=order)
    except ValueError:
        with pytest.raises(ValueError, match=r"cannot reshape|only specify one"):
            views.reshape(layout_of(array), shape, order)
        return
    made = views.reshape(layout_of(array), shape, order)
    if np.shares_memory(array, expected):
        check(made, expected, array)
    elif order == "C":
        assert isinstance(made, Unproved)


@given(arrays, st.permutations([0, 1, 2]))
def test_transpose(array: np.ndarray[Any, Any], axes: list[int]) -> None:
    order = [axis for axis in axes if axis < array.ndim]
    check(views.transpose(layout_of(array), tuple(order)), array.transpose(order), array)
    check(views.transpose(layout_of(array)), array.T, array)


@given(arrays, st.integers(-4, 3), st.integers(-4, 3))
def test_axes_are_moved(array: np.ndarray[Any, Any], one: int, other: int) -> None:
    inside = all(-array.ndim <= axis < array.ndim for axis in (one, other))
    if not inside:
        with pytest.raises(ValueError, match="Axis out of range"):
            views.swapaxes(layout_of(array), one, other)
        with pytest.raises(AxisError):
            views.moveaxis(layout_of(array), one, other)
        return
    check(views.swapaxes(layout_of(array), one, other), array.swapaxes(one, other), array)
    check(views.moveaxis(layout_of(array), one, other), np.moveaxis(array, one, other), array)
    check(views.rollaxis(layout_of(array), one, other), np.rollaxis(array, one, other), array)


@given(arrays, st.integers(-3, 3))
def test_the_rest(array: np.ndarray[Any, Any], number: int) -> None:
    layout = layout_of(array)
    check(views.squeeze(layout), array.squeeze(), array)
    check(views.flip(layout), np.flip(array), array)
    check(views.expand_dims(layout, 0), np.expand_dims(array, 0), array)
    check(views.broadcast_to(layout, (2, *array.shape)), np.broadcast_to(array, (2, *array.shape)), array)
    if array.ndim >= 2:
        check(views.rot90(layout, number), np.rot90(array, number), array)
        expected = array.diagonal(number)
        made = views.diagonal(layout, number)
        assert isinstance(made, Unproved) if not expected.size else made is not None
        if expected.size:
            check(made, expected, array)
    pieces = views.array_split(layout, 3)
    for piece, expected in zip(pieces, np.array_split(array, 3), strict=True):
        check(piece, expected, array)


def test_complex_parts_and_other_dtypes() -> None:
    numbers = np.zeros((3, 4), complex)
    check(views.imag(layout_of(numbers)), numbers.imag, numbers)
    check(views.real(layout_of(numbers)), numbers.real, numbers)
    check(views.view(layout_of(numbers), "f4"), numbers.view("f4"), numbers)
    with pytest.raises(ValueError, match="the last axis must be contiguous"):
        views.view(layout_of(BASE.T), np.int8)
    assert isinstance(views.imag(layout_of(BASE)), Unproved)


def test_views_of_structures() -> None:
    records = contiguous((4,), np.dtype([("x", "f4"), ("y", "i4")]))
    assert views.getitem(records, slice(1, 3)) == (8, contiguous((2,), records.dtype))
    assert prove("cupy.ndarray.reshape", (records, 2, 2)) == View(0, contiguous((2, 2), records.dtype), 0)
    assert isinstance(prove("cupy.sum", (records,)), Unproved)
    field = strided((4,), (8,), np.dtype("i4"))
    assert prove("cupy.ndarray.__getitem__", (records, "y")) == View(4, field, 0)
    assert isinstance(prove("cupy.ndarray.__getitem__", (records, "z")), Unproved)
