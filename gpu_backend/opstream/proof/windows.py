"""Views as metadata: which window of an array's memory each of CuPy's views is.

A window is ``(offset, layout)``, the offset in bytes from the array's own start. These are rules, for other rules; the
same functions for callers stand in `views`.
"""

from __future__ import annotations

import numpy as np
from numpy.exceptions import AxisError

from gpu_backend.opstream.layout import Layout, contiguous, strided
from gpu_backend.opstream.proof.arguments import as_axes, as_axis, as_dtype, as_extent, as_index, as_items
from gpu_backend.opstream.proof.indexing import window
from gpu_backend.opstream.proof.outcome import CannotProve, Window, refusal
from gpu_backend.opstream.proof.reshaping import permuted, reversed_axes, strides_without_copy
from gpu_backend.opstream.proof.values import is_integer, is_items, is_tuple


def transpose(layout: Layout, axes: object = None) -> Window:
    """Return the window of ``x.transpose(axes)``: a permutation, or None to reverse all axes."""
    if axes is None or (is_items(axes) and not axes):
        return 0, reversed_axes(layout)
    given = [as_index(axis) for axis in (axes if is_items(axes) else (axes,))]
    if len(given) != layout.ndim:
        raise refusal(ValueError, "axes don't match array")
    order: list[int] = []
    for axis in given:
        if not -layout.ndim <= axis < layout.ndim:
            raise refusal(AxisError, axis, layout.ndim)
        if axis % layout.ndim in order:
            raise refusal(ValueError, "repeated axis in transpose")
        order.append(axis % layout.ndim)
    return 0, permuted(layout, tuple(order))


def swapaxes(layout: Layout, axis1: object, axis2: object) -> Window:
    """Return the window of ``x.swapaxes(axis1, axis2)``."""
    first, second = as_index(axis1), as_index(axis2)
    if not (-layout.ndim <= first < layout.ndim and -layout.ndim <= second < layout.ndim):
        raise refusal(ValueError, "Axis out of range")
    order = list(range(layout.ndim))
    order[first % layout.ndim], order[second % layout.ndim] = second % layout.ndim, first % layout.ndim
    return 0, permuted(layout, tuple(order))


def moveaxis(layout: Layout, source: object, destination: object) -> Window:
    """Return the window of ``cupy.moveaxis(x, source, destination)``."""
    if not is_items(source) and not is_items(destination):
        start, end = as_axis(source, layout.ndim), as_axis(destination, layout.ndim)
        order = [axis for axis in range(layout.ndim) if axis != start]
        order.insert(end, start)
        return 0, permuted(layout, tuple(order))
    starts = _distinct_axes(source, layout.ndim)
    ends = _distinct_axes(destination, layout.ndim)
    if len(starts) != len(ends):
        raise refusal(ValueError, "`source` and `destination` arguments must have the same number of elements")
    order = [axis for axis in range(layout.ndim) if axis not in starts]
    for end, start in sorted(zip(ends, starts, strict=True)):
        order.insert(end, start)
    return 0, permuted(layout, tuple(order))


def rollaxis(layout: Layout, axis: object, start: object = 0) -> Window:
    """Return the window of ``cupy.rollaxis(x, axis, start)``."""
    moved, before, ndim = as_index(axis), as_index(start), layout.ndim
    moved = moved + ndim if moved < 0 else moved
    before = before + ndim if before < 0 else before
    if not (0 <= moved < ndim and 0 <= before <= ndim):
        raise refusal(ValueError, "Axis out of range")
    if moved < before:
        before -= 1
    order = list(range(ndim))
    order.remove(moved)
    order.insert(before, moved)
    return 0, permuted(layout, tuple(order))


def squeeze(layout: Layout, axis: object = None) -> Window:
    """Return the window of ``x.squeeze(axis)``."""
    if axis is None:
        dropped = {place for place, extent in enumerate(layout.shape) if extent == 1}
    elif layout.ndim == 0 and axis in (0, -1) and not is_tuple(axis):
        dropped = set()
    else:
        found = [as_axis(one, layout.ndim) for one in (axis if is_tuple(axis) else (axis,))]
        if len(set(found)) != len(found):
            raise refusal(ValueError, "duplicate value in 'axis'")
        dropped = set(found)
    if any(layout.shape[place] != 1 for place in dropped):
        raise refusal(ValueError, "cannot select an axis to squeeze out which has size not equal to one")
    kept = tuple([place for place in range(layout.ndim) if place not in dropped])
    return 0, permuted(layout, kept)


def expand_dims(layout: Layout, axis: object) -> Window:
    """Return the window of ``cupy.expand_dims(x, axis)``."""
    axes = axis if is_items(axis) else (axis,)
    places = _distinct_axes(tuple(axes), layout.ndim + len(axes))
    extents = iter(layout.shape)
    shape = tuple([1 if place in places else next(extents) for place in range(layout.ndim + len(axes))])
    strides = strides_without_copy(layout, shape) if shape != layout.shape else layout.strides
    assert strides is not None
    return 0, strided(shape, strides, layout.dtype)


def broadcast_to(layout: Layout, shape: object) -> Window:
    """Return the window of ``cupy.broadcast_to(x, shape)``."""
    wanted = tuple([as_extent(extent) for extent in (shape if is_items(shape) else (shape,))])
    lead = len(wanted) - layout.ndim
    if lead < 0:
        raise refusal(ValueError, "input operand has more dimensions than allowed by the axis remapping")
    strides = [0] * len(wanted)
    for place, (extent, stride) in enumerate(zip(layout.shape, layout.strides, strict=True), lead):
        if extent == wanted[place]:
            strides[place] = stride
        elif extent != 1:
            raise refusal(
                ValueError,
                f"operands could not be broadcast together with shape {layout.shape} and requested shape {wanted}",
            )
    if any(extent < 0 for extent in wanted):
        raise CannotProve("a negative extent")
    return 0, strided(wanted, tuple(strides), layout.dtype)


def diagonal(layout: Layout, offset: object = 0, axis1: object = 0, axis2: object = 1) -> Window | Layout:
    """Return the window of ``x.diagonal(...)``, or the layout of the new empty array that it can be."""
    shift, first, second, ndim = as_index(offset), as_index(axis1), as_index(axis2), layout.ndim
    if not (-ndim <= first < ndim and -ndim <= second < ndim):
        raise refusal(AxisError, f"axis1(={first}) and axis2(={second}) must be within range (ndim={ndim})")
    first, second = first % ndim, second % ndim
    rest = [axis for axis in range(ndim) if axis not in (first, second)]
    if first == second:
        raise CannotProve("a diagonal of one axis")
    moved = permuted(layout, (*rest, first, second) if shift >= 0 else (*rest, second, first))
    shift = abs(shift)
    length = max(0, min(moved.shape[-2], moved.shape[-1] - shift))
    shape = (*moved.shape[:-2], length)
    if length == 0:
        return contiguous(shape, layout.dtype)
    start = shift * moved.strides[-1] if layout.size else 0
    return start, strided(shape, (*moved.strides[:-2], moved.strides[-1] + moved.strides[-2]), layout.dtype)


def part(layout: Layout, *, imaginary: bool) -> Window:
    """Return the window of ``x.real`` or ``x.imag`` of a complex array."""
    half = np.dtype(f"f{layout.itemsize // 2}")
    return (half.itemsize if imaginary else 0), strided(layout.shape, layout.strides, half)


def view(layout: Layout, dtype: object) -> Window:
    """Return the window of ``x.view(dtype)``."""
    if dtype is None:
        return 0, layout
    wanted = as_dtype(dtype)
    before, after = layout.itemsize, wanted.itemsize
    if before == after:
        return 0, strided(layout.shape, layout.strides, wanted)
    if layout.ndim == 0:
        raise refusal(ValueError, "Changing the dtype of a 0d array is only supported if the itemsize is unchanged")
    last = layout.shape[-1]
    if last != 1 and layout.size and layout.strides[-1] != before:
        raise refusal(ValueError, "To change to a dtype of a different size, the last axis must be contiguous")
    if last * before % after:
        raise refusal(
            ValueError,
            "When changing to a larger dtype, its size must be a divisor of the total size in bytes of the last axis "
            "of the array.",
        )
    return 0, strided((*layout.shape[:-1], last * before // after), (*layout.strides[:-1], after), wanted)


def flip(layout: Layout, axis: object = None) -> Window:
    """Return the window of ``cupy.flip(x, axis)``."""
    axes = as_axes(axis, layout.ndim)
    return window(layout, tuple([slice(None, None, -1) if a in axes else slice(None) for a in range(layout.ndim)]))


def rot90(layout: Layout, k: object = 1, axes: object = (0, 1)) -> Window:
    """Return the window of ``cupy.rot90(x, k, axes)``."""
    if layout.ndim < 2:
        raise refusal(ValueError, "Input must be >= 2-d")
    plane = tuple([as_index(axis) for axis in as_items(axes)])
    if len(plane) != 2:
        raise refusal(ValueError, "len(axes) must be 2")
    if plane[0] == plane[1] or abs(plane[0] - plane[1]) == layout.ndim:
        raise refusal(ValueError, "axes must be different")
    if not all(-layout.ndim <= axis < layout.ndim for axis in plane):
        raise refusal(ValueError, f"axes must be >= {-layout.ndim} and < {layout.ndim}")
    turns = as_index(k) % 4
    if turns == 0:
        return window(layout, (slice(None),))
    if turns == 2:
        return flip(layout, plane)
    offset = 0
    if turns == 1:
        offset, layout = flip(layout, (plane[1],))
    _, turned = swapaxes(layout, *plane)
    if turns == 1:
        return offset, turned
    return flip(turned, (plane[1],))


def array_split(layout: Layout, indices: object, axis: object = 0) -> list[Window]:
    """Return the windows of ``cupy.array_split(x, indices, axis)``; one window on all of it means the array itself."""
    place = as_index(axis)
    if not -layout.ndim <= place < layout.ndim:
        raise refusal(IndexError, "Axis exceeds ndim")
    place %= layout.ndim
    extent, stride = layout.shape[place], layout.strides[place] if layout.size else 0
    if isinstance(indices, (int, np.integer)):
        count = int(indices)
        if count <= 0:
            raise CannotProve("no sections")
        length, larger = (extent - 1) // count, (extent - 1) % count + 1
        cuts = [index * length + min(index, larger) for index in range(1, count)]
    elif is_items(indices):
        cuts = [index if index >= 0 else extent + index for index in map(as_index, indices)]
    else:
        raise CannotProve(f"sections of {type(indices).__name__}")
    windows: list[Window] = []
    before = 0
    for cut in [*[min(cut, extent) for cut in cuts], extent]:
        length = max(cut - before, 0) if len(windows) < len(cuts) else extent - before
        if length < 0 or before < 0:
            raise CannotProve("sections out of order")
        shape = (*layout.shape[:place], length, *layout.shape[place + 1 :])
        windows.append((before * stride, strided(shape, layout.strides, layout.dtype)))
        before = cut
    return windows


def split(layout: Layout, indices: object, axis: object = 0) -> list[Window]:
    """Return the windows of ``cupy.split(x, indices, axis)``."""
    place = as_index(axis)
    if layout.ndim <= place:
        raise refusal(IndexError, "Axis exceeds ndim")
    if place < -layout.ndim:
        raise refusal(IndexError, "tuple index out of range")
    if is_integer(indices) and indices > 0 and layout.shape[place] % int(indices):
        raise refusal(
            ValueError,
            "indices_or_sections must divide the size along the axes.\nIf you want to split the array into "
            "non-equally-sized arrays, use array_split instead.",
        )
    return array_split(layout, indices, axis)


def _distinct_axes(axes: object, ndim: int) -> list[int]:
    found: list[int] = []
    for axis in axes if is_items(axes) else (axes,):
        place = as_axis(axis, ndim)
        if place in found:
            raise refusal(ValueError, "repeated axis")
        found.append(place)
    return found
