"""Rules of functions that join arrays: concatenate, stack and their kin."""

from __future__ import annotations

from functools import reduce
from itertools import permutations

import numpy as np

from gpu_backend.opstream.layout import DType, Shape
from gpu_backend.opstream.proof import windows
from gpu_backend.opstream.proof.arguments import as_axis, as_dtype, native
from gpu_backend.opstream.proof.manipulation import at_least
from gpu_backend.opstream.proof.outcome import CannotProve, refusal
from gpu_backend.opstream.proof.promotion import check_cast, promote
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.shadow import Array, array, arrays, new
from gpu_backend.opstream.proof.values import is_items


@rule("cupy.concatenate")
def concatenate(
    tup: object, axis: object = 0, out: Array | None = None, *, dtype: object = None, casting: object = "same_kind"
) -> Array:
    """As CuPy."""
    joined = arrays(tup)
    if axis is None:
        joined, axis = [one.ravel() for one in joined], 0
    if not joined:
        raise refusal(ValueError, "Cannot concatenate from empty tuple")
    shape = _joined_shape(joined, axis)
    wanted = _joined_dtype(joined, out, dtype)
    for one in joined:
        check_cast(one.dtype, wanted, casting)
    if out is None:
        return new(shape, wanted)
    if out.ndim != len(shape):
        raise refusal(ValueError, "Output array has wrong dimensionality")
    if out.shape != shape:
        raise refusal(ValueError, "Output array is the wrong shape")
    return out


def _joined_shape(joined: list[Array], axis: object) -> Shape:
    if any(one.ndim == 0 for one in joined):
        raise refusal(TypeError, "zero-dimensional arrays cannot be concatenated")
    first = joined[0]
    if any(one.ndim != first.ndim for one in joined):
        raise refusal(ValueError, "All arrays to concatenate must have the same ndim")
    place = as_axis(axis, first.ndim)
    for one in joined:
        if one.shape[:place] != first.shape[:place] or one.shape[place + 1 :] != first.shape[place + 1 :]:
            raise refusal(ValueError, "All arrays must have same shape except the axis to concatenate")
    return (*first.shape[:place], sum(one.shape[place] for one in joined), *first.shape[place + 1 :])


def _joined_dtype(joined: list[Array], out: object, dtype: object) -> DType:
    if out is None:
        return _common_dtype({one.dtype for one in joined}) if dtype is None else as_dtype(dtype)
    if dtype is not None:
        words = "concatenate() only takes `out` or `dtype` as an argument, but both were provided."
        raise refusal(TypeError, words)
    return array(out).dtype


def _common_dtype(dtypes: set[DType]) -> DType:
    """Return what all ``dtypes`` promote to. CuPy takes them in the order of a set, which may matter."""
    if len(dtypes) > 4:
        raise CannotProve("many dtypes")
    results = {promote(*order) for order in permutations(dtypes)}
    if len(results) > 1:
        raise CannotProve("dtypes whose promotion depends on their order")
    return results.pop()


@rule("cupy.stack")
def stack(
    tup: object, axis: object = 0, out: Array | None = None, *, dtype: object = None, casting: object = "same_kind"
) -> Array:
    """As CuPy."""
    if axis is None:
        raise CannotProve("an axis of None")
    expanded = [one.window(windows.expand_dims(one.layout, axis)) for one in arrays(tup)]
    return concatenate(expanded, axis, out, dtype=dtype, casting=casting)


@rule("cupy.hstack")
def hstack(tup: object, *, dtype: object = None, casting: object = "same_kind") -> Array:
    """As CuPy."""
    joined = [at_least(1, one) for one in arrays(tup)]
    if not joined:
        raise CannotProve("nothing to join")
    return concatenate(joined, 0 if joined[0].ndim == 1 else 1, dtype=dtype, casting=casting)


@rule("cupy.vstack")
def vstack(tup: object, *, dtype: object = None, casting: object = "same_kind") -> Array:
    """As CuPy."""
    return concatenate([at_least(2, one) for one in arrays(tup)], 0, dtype=dtype, casting=casting)


@rule("cupy.dstack")
def dstack(tup: object) -> Array:
    """As CuPy."""
    return concatenate([at_least(3, one) for one in arrays(tup)], 2)


@rule("cupy.column_stack")
def column_stack(tup: object) -> Array:
    """As CuPy."""
    joined = []
    for one in arrays(tup):
        if one.ndim not in (1, 2):
            raise refusal(ValueError, "Only 1 or 2 dimensional arrays can be column stacked")
        joined.append(one[:, None] if one.ndim == 1 else one)
    return concatenate(joined, 1)


@rule("cupy.append")
def append(arr: Array, values: object, axis: object = None) -> Array:
    """As CuPy, for arrays and numbers."""
    if isinstance(values, (bool, int, float, complex)):
        values = new((), np.asarray(values).dtype)
    values = array(values)
    if axis is None:
        return concatenate([arr.ravel(), values.ravel()], 0)
    return concatenate([arr, values], axis)


def from_nest(nest: object, dtype: object, order: object, ndmin: int) -> Array:
    """As ``cupy.array``: arrays of one shape are joined in C order, cast, and laid out in F order if that is wanted."""
    shape, common, parts = _flat(nest)
    joined = concatenate([one.reshape(1) if one.ndim == 0 else one for one in parts], 0)
    made = joined.reshape((1,) * (ndmin - len(shape)) + shape)
    wanted = common if dtype is None else dtype
    return made.astype(wanted, "F" if isinstance(order, str) and order[:1] in ("F", "f") else "C", copy=False)


def _flat(nest: object) -> tuple[Shape, DType, list[Array]]:
    """Return the shape of a nest of arrays of one shape, what their dtypes promote to in NumPy, and the arrays."""
    if isinstance(nest, Array):
        return nest.shape, nest.dtype, [nest]
    if not is_items(nest) or not nest:
        raise CannotProve("a nest of other things than arrays")
    shapes, dtypes, parts = zip(*map(_flat, nest), strict=True)
    if len(set(shapes)) > 1:
        raise CannotProve("a nest of arrays of several shapes")
    return (len(nest), *shapes[0]), native(reduce(np.promote_types, dtypes)), [one for part in parts for one in part]
