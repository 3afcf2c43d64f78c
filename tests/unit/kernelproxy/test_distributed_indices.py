"""Indices of chunks: what two have in common is what NumPy says that both select."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelproxy.namespace.distributed import indices
from kernelproxy.namespace.distributed.products import make_2d_index_map

_LENGTH = 40


@st.composite
def slices(draw: st.DrawFn, length: int = _LENGTH) -> slice:
    start = draw(st.integers(0, length - 1))
    return slice(start, draw(st.integers(start + 1, length)), draw(st.integers(1, length)))


def places(*several: slice) -> list[int]:
    found = list(range(_LENGTH))
    for one in several:
        found = found[one]
    return found


@given(slices(), slices())
def test_what_two_slices_have_in_common(a: slice, b: slice) -> None:
    both = indices.common(a, b, _LENGTH)
    expected = sorted(set(places(a)) & set(places(b)))
    assert (places(both) if both else []) == expected
    if both:
        assert places(a, indices.within(a, both, _LENGTH)) == expected
        assert places(b, indices.within(b, both, _LENGTH)) == expected


@given(st.lists(st.tuples(slices(6), slices(6)), min_size=1, max_size=3))
def test_indices_of_several_axes(axes: list[tuple[slice, slice]]) -> None:
    shape = (6,) * len(axes)
    a, b = (indices.normal(shape, tuple(pair[side] for pair in axes)) for side in (0, 1))
    whole = np.arange(6 ** len(axes)).reshape(shape)
    assert indices.extents(shape, a) == whole[a].shape
    both = indices.intersection(a, b, shape)
    common = set(whole[a].ravel().tolist()) & set(whole[b].ravel().tolist())
    if both is None:
        assert not common
        return
    np.testing.assert_array_equal(whole[a][indices.inside(a, both, shape)], whole[both])
    assert set(whole[both].ravel().tolist()) == common


@given(st.integers(1, 200), st.integers(1, 200))
def test_the_greatest_divisor(a: int, b: int) -> None:
    divisor, x = indices.greatest_divisor(a, b)
    assert a % divisor == b % divisor == 0
    assert (a * x - divisor) % b == 0


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (slice(None), (slice(0, 4, 1), slice(0, 5, 1))),
        (2, (slice(2, 3, 1), slice(0, 5, 1))),
        ((-1, slice(None, -1, 2)), (slice(3, 4, 1), slice(0, 4, 2))),
        ((), (slice(0, 4, 1), slice(0, 5, 1))),
    ],
)
def test_an_index_has_a_plain_slice_for_each_axis(index: Any, expected: indices.Index) -> None:
    assert indices.normal((4, 5), index) == expected


@pytest.mark.parametrize(
    ("index", "kind", "told"),
    [
        ((0, 0, 0), IndexError, "too many indices for array: array is 2-dimensional, but 3 were indexed"),
        (4, IndexError, "Index 4 is out of bounds for axis 0 with size 4"),
        (-5, IndexError, "Index -5 is out of bounds for axis 0 with size 4"),
        ((0, slice(None, None, -1)), ValueError, "Slice step must be positive."),
        ((0, slice(3, 3)), ValueError, "The index is empty on axis 1"),
        ((0, slice(4, 2)), ValueError, "The index is empty on axis 1"),
        ((0, [1, 2]), ValueError, "Invalid index on axis 1"),
    ],
)
def test_an_index_that_is_none(index: Any, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind) as raised:
        indices.normal((4, 5), index)
    assert str(raised.value) == told


def test_the_chunks_of_a_device_are_in_one_order() -> None:
    given = {1: [slice(2, 4), slice(None, None, 2), slice(0, 2)], 0: 3}
    whole = slice(0, 5, 1)
    assert indices.normal_map((4, 5), given) == {
        1: [(slice(0, 2, 1), whole), (slice(0, 4, 2), whole), (slice(2, 4, 1), whole)],
        0: [(slice(3, 4, 1), whole)],
    }


def test_a_matrix_is_cut_into_blocks() -> None:
    assert make_2d_index_map([0, 2, 4], [0, 3, 5], [[{0}, {1}], [{2}, {0, 1}]]) == {
        0: [(slice(0, 2), slice(0, 3)), (slice(2, 4), slice(3, 5))],
        1: [(slice(0, 2), slice(3, 5)), (slice(2, 4), slice(3, 5))],
        2: [(slice(2, 4), slice(0, 3))],
    }


@pytest.mark.parametrize(
    ("rows", "columns", "devices"),
    [
        ([1, 2], [0, 2], [[{0}]]),
        ([0, 2, 2], [0, 2], [[{0}], [{0}]]),
        ([0, 2], [0, 3, 2], [[{0}, {0}]]),
        ([0, 2], [0, 2], [[{0}, {1}]]),
        ([0, 2], [0, 2], []),
    ],
)
def test_cuts_that_are_none(rows: list[int], columns: list[int], devices: list[list[set[int]]]) -> None:
    with pytest.raises(ValueError, match=r"partition begins at 0|one set for each block"):
        make_2d_index_map(rows, columns, devices)
