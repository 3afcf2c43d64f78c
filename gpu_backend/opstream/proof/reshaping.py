"""Reshape, ravel and flatten: a view where the strides allow it, else a copy. CuPy's own rules."""

from __future__ import annotations

from math import prod

from gpu_backend.opstream.layout import Layout, Shape, contiguous, strided
from gpu_backend.opstream.proof.arguments import MOST_AXES, as_index, as_order
from gpu_backend.opstream.proof.outcome import CannotProve, Window, refusal
from gpu_backend.opstream.proof.values import is_items


def reshape(layout: Layout, shape: object, order: object = "C", copy: object = None) -> Window | Layout:
    """Return the window that the reshaped array is, or the layout of the copy that it must be.

    Parameters
    ----------
    shape
        An int, or a sequence of ints of which one may be -1.
    """
    if isinstance(copy, str):
        raise refusal(ValueError, "strings are not allowed for 'copy' keyword. Use True/False/None instead.")
    if copy is not None and not isinstance(copy, (bool, int)):
        raise CannotProve(f"copy={copy!r}")
    wanted = tuple([as_index(extent) for extent in (shape if is_items(shape) else (shape,))])
    if len(wanted) > MOST_AXES:
        raise refusal(ValueError, f"maximum supported dimension for an ndarray is {MOST_AXES}, found {len(wanted)}")
    char = as_order(order, allow_k=False)
    if char == "A":
        char = "F" if layout.f_contiguous and not layout.c_contiguous else "C"
    if char == "C":
        return _reshape(layout, wanted, None if copy is None else bool(copy))
    made = _reshape(reversed_axes(layout), wanted[::-1], None if copy is None else bool(copy))
    if isinstance(made, Layout):
        return reversed_axes(made)
    return made[0], reversed_axes(made[1])


def ravel(layout: Layout, order: object = "C") -> Window | Layout:
    """Return the window or the copy that a method ``ravel`` gives: always C-contiguous."""
    made = _raveled(layout, order)
    if isinstance(made, Layout) or made[1].c_contiguous:
        return made
    return contiguous(made[1].shape, made[1].dtype)


def reversed_axes(layout: Layout) -> Layout:
    """Return the layout of ``x.T``."""
    return strided(layout.shape[::-1], layout.strides[::-1], layout.dtype)


def flattened(layout: Layout) -> Layout:
    """Return the layout of ``x.flatten()``, in any order."""
    return strided((layout.size,), (layout.itemsize,), layout.dtype)


def known_shape(shape: Shape, size: int) -> Shape:
    """Return ``shape`` with its -1 replaced by what makes ``size`` elements."""
    unknown = [place for place, extent in enumerate(shape) if extent < 0]
    given = prod(extent for extent in shape if extent >= 0)
    if not unknown and given == size:
        return shape
    if len(unknown) > 1:
        raise refusal(ValueError, "can only specify one unknown dimension")
    if not unknown or given == 0 or size % given:
        raise refusal(ValueError, f"cannot reshape array of size {size} into shape {shape}")
    return tuple([size // given if extent < 0 else extent for extent in shape])


def strides_without_copy(layout: Layout, shape: Shape) -> Shape | None:
    """Return the strides with which the same memory has ``shape``, or None if it cannot."""
    itemsize = layout.itemsize
    if layout.size == 1:
        return (itemsize,) * len(shape)
    if layout.size == 0:
        return _packed(shape, itemsize)
    extents, steps = _merged(layout)
    strides: list[int] = []
    place = 0
    last = extents[0] * steps[0]
    for extent in shape:
        if extent > 1:
            if place >= len(extents) or extents[place] % extent:
                return None
            extents[place] //= extent
            last = extents[place] * steps[place]
            if extents[place] == 1:
                place += 1
        strides.append(last)
    return tuple(strides)


def _reshape(layout: Layout, wanted: Shape, copy: bool | None) -> Window | Layout:
    shape = known_shape(wanted, layout.size)
    if shape == layout.shape:
        return contiguous(shape, layout.dtype) if copy else (0, layout)
    strides = strides_without_copy(layout, shape)
    if strides is not None:
        return contiguous(shape, layout.dtype) if copy else (0, strided(shape, strides, layout.dtype))
    if copy is False:
        raise refusal(ValueError, "Unable to avoid creating a copy while reshaping.")
    copied = contiguous(layout.shape, layout.dtype)
    made = strides_without_copy(copied, shape)
    assert made is not None
    return strided(shape, made, layout.dtype)


def _raveled(layout: Layout, order: object) -> Window | Layout:
    char = as_order(order)
    if char == "A":
        char = "F" if layout.f_contiguous and not layout.c_contiguous else "C"
    if char == "C":
        return _reshape(layout, (layout.size,), None)
    if char == "F":
        return _reshape(reversed_axes(layout), (layout.size,), None)
    axes = _order_in_memory(layout.strides)
    return _reshape(permuted(layout, axes), (layout.size,), None)


def permuted(layout: Layout, axes: Shape) -> Layout:
    """Return the layout with its axes in the given order."""
    return strided(
        tuple([layout.shape[axis] for axis in axes]), tuple([layout.strides[axis] for axis in axes]), layout.dtype
    )


def _order_in_memory(strides: Shape) -> Shape:
    """Return the axes from the largest stride to the smallest; axes of stride 0 stay where they are."""
    axes: list[int] = []
    for axis in reversed(range(len(strides))):
        stride = abs(strides[axis])
        before = 0
        if stride:
            for place, other in enumerate(axes):
                if not strides[other]:
                    continue
                if abs(strides[other]) <= stride:
                    break
                before = place + 1
        axes.insert(before, axis)
    return tuple(axes)


def _packed(shape: Shape, itemsize: int) -> Shape:
    """Return contiguous strides in which extents of zero count as one."""
    strides: list[int] = []
    step = itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def _merged(layout: Layout) -> tuple[list[int], list[int]]:
    """Return extents and strides with neighbouring axes merged that follow each other in memory."""
    extents: list[int] = []
    steps: list[int] = []
    previous = 0
    for extent, stride in zip(layout.shape, layout.strides, strict=True):
        if extent == 1:
            continue
        if not extents or previous != extent * stride:
            extents.append(extent)
            steps.append(stride)
        else:
            extents[-1] *= extent
            steps[-1] = stride
        previous = stride
    return extents, steps
