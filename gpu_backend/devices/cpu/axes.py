"""Axes of reductions, and how a reduction's result lies in memory."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.dtypes import cast_into

Axes = tuple[int, ...]


def as_axes(axis: Any, ndim: int) -> Axes:
    """Return ``axis`` (None, an int or a tuple) as a sorted tuple of axes.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    TypeError
        If it is no integer, as an array is none.
    """
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, np.ndarray):
        axis = tuple(axis)
    if isinstance(axis, Sequence):
        return tuple(sorted(normalize_axis_tuple(axis, ndim)))
    return (normalize_axis_index(operator.index(axis), ndim),)


def result_order(a: Array, axes: Axes, segmented: bool) -> Literal["C", "F"]:
    """Return "F" where CuPy's segmented reduction keeps Fortran order, else "C".

    Parameters
    ----------
    segmented
        Whether the library routine behind CuPy's fast path takes this operation and dtype.
    """
    flags = a.flags
    if not segmented or flags.c_contiguous or not flags.f_contiguous or not a.size:
        return "C"
    return "F" if axes == tuple(range(len(axes))) and len(axes) < a.ndim else "C"


def reduce_to(
    a: Array,
    axis: object,
    out: Array | None,
    keepdims: bool,
    compute: Callable[[Axes | None, bool], Any],
    segmented: bool = False,
) -> Array:
    """Return ``compute(axes, keepdims)`` in CuPy's memory order, or written into ``out``.

    Raises
    ------
    ValueError
        If ``out`` has another shape.
    """
    axes = as_axes(axis, a.ndim)
    result = np.asarray(compute(axes if a.ndim else None, bool(keepdims)))
    if out is None:
        made: Array = np.asarray(result, order=result_order(a, axes, segmented))
        return made
    if out.ndim != result.ndim:
        raise ValueError("output parameter for reduction operation has the wrong number of dimensions")
    if out.shape != result.shape:
        raise ValueError("output parameter for reduction operation has the wrong shape")
    cast_into(out, result)
    return out
