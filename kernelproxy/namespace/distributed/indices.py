"""Which elements two chunks have in common: arithmetic on slices with positive steps."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import SupportsIndex, TypeAlias

#: For each axis a slice whose start, stop and step are numbers.
Index = tuple[slice, ...]
IndexMap = dict[int, list[Index]]
#: The same as users write it: for some of the first axes, and with numbers.
IndexLike: TypeAlias = "SupportsIndex | slice | tuple[SupportsIndex | slice, ...]"
IndexMapLike: TypeAlias = "Mapping[int, IndexLike | list[IndexLike]]"


def greatest_divisor(a: int, b: int) -> tuple[int, int]:
    """Return the greatest common divisor ``g`` of two positive numbers, and an ``x`` with ``a * x % b == g % b``.

    >>> greatest_divisor(4, 6)
    (2, 2)
    """
    divisor = math.gcd(a, b)
    return divisor, pow(a // divisor, -1, b // divisor)


def common(a: slice, b: slice, length: int) -> slice | None:
    """Return the slice of what is in ``a`` and in ``b``, of an axis of ``length``; None if nothing is.

    >>> common(slice(0, 12, 2), slice(3, None, 3), 20)
    slice(6, 12, 6)
    """
    (a_start, a_stop, a_step), (b_start, b_stop, b_step) = a.indices(length), b.indices(length)
    divisor, inverse = greatest_divisor(a_step, b_step)
    if (b_start - a_start) % divisor:
        return None
    step = a_step // divisor * b_step
    start = a_start + (b_start - a_start) // divisor * inverse * a_step  # is in both, but for where they begin
    first, stop = max(a_start, b_start), min(a_stop, b_stop)
    start = first + (start - first) % step
    return slice(start, stop, step) if start < stop else None


def within(a: slice, part: slice, length: int) -> slice:
    """Return the slice that selects ``part`` of an axis out of what ``a`` selects of it, which has all of ``part``.

    >>> within(slice(2, 12, 2), slice(6, 12, 4), 20)
    slice(2, 5, 2)
    """
    start, _, step = a.indices(length)
    part_start, part_stop, part_step = part.indices(length)
    return slice((part_start - start) // step, (part_stop - start - 1) // step + 1, part_step // step)


def intersection(a: Index, b: Index, shape: Sequence[int]) -> Index | None:
    """Return the index of what two indices both select; None if that is nothing."""
    found = []
    for one, other, length in zip(a, b, shape, strict=True):
        both = common(one, other, length)
        if both is None:
            return None
        found.append(both)
    return tuple(found)


def inside(a: Index, part: Index, shape: Sequence[int]) -> Index:
    """Return the index that selects ``part`` out of what ``a`` selects, which has all of it."""
    return tuple(within(one, other, length) for one, other, length in zip(a, part, shape, strict=True))


def extents(shape: Sequence[int], index: Index) -> tuple[int, ...]:
    """Return the shape of what ``index`` selects of an array of ``shape``."""
    return tuple(len(range(*one.indices(length))) for one, length in zip(index, shape, strict=True))


def normal(shape: Sequence[int], index: IndexLike) -> Index:
    """Return ``index``, of slices and numbers for some of the first axes, with a plain slice for each axis.

    Raises
    ------
    IndexError
        If there are more than axes, or one is out of bounds.
    ValueError
        If a slice goes backwards or selects nothing, or something is neither a slice nor a number.
    """
    given = index if isinstance(index, tuple) else (index,)
    if len(given) > len(shape):
        raise IndexError(
            f"too many indices for array: array is {len(shape)}-dimensional, but {len(given)} were indexed"
        )
    given += (slice(None),) * (len(shape) - len(given))
    return tuple(_of_axis(axis, one, length) for axis, (one, length) in enumerate(zip(given, shape, strict=True)))


def _of_axis(axis: int, one: SupportsIndex | slice, length: int) -> slice:
    if not isinstance(one, slice):
        try:
            number = operator.index(one)
        except TypeError:
            raise ValueError(f"Invalid index on axis {axis}") from None
        place = number + length if number < 0 else number
        if not 0 <= place < length:
            raise IndexError(f"Index {number} is out of bounds for axis {axis} with size {length}")
        return slice(place, place + 1, 1)
    start, stop, step = one.indices(length)
    if step <= 0:
        raise ValueError("Slice step must be positive.")
    if start >= stop:
        raise ValueError(f"The index is empty on axis {axis}")
    return slice(start, stop, step)


def normal_map(shape: Sequence[int], index_map: IndexMapLike) -> IndexMap:
    """Return for each device the indices that it is given, one or a list, in one order; raises as `normal` does."""
    found = {}
    for device, given in index_map.items():
        indices = [normal(shape, one) for one in (given if isinstance(given, list) else [given])]
        found[device] = sorted(indices, key=lambda index: [(one.start, one.stop, one.step) for one in index])
    return found
