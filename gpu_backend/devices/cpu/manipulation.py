"""Shapes and joins, where CuPy's rules are not NumPy's."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import ArrayLike

from gpu_backend.devices.cpu.arrays import Array, Casting, Order, in_c_order, owner_of
from gpu_backend.devices.cpu.conversion import asarray, concatenate, converted
from gpu_backend.devices.cpu.creation import as_shape, full, new_array
from gpu_backend.devices.cpu.memory import LEDGER
from gpu_backend.devices.cpu.table import define


def _reshaped(a: Array, shape: object, order: str, copy: object) -> Array:
    if isinstance(copy, str):
        raise ValueError("strings are not allowed for 'copy' keyword. Use True/False/None instead.")
    order = (order or "C").upper()
    if order not in ("C", "F", "A"):
        raise ValueError(f"order {order!r} is not permitted")
    if order == "A":
        order = "F" if a.flags.f_contiguous and not a.flags.c_contiguous else "C"
    wanted = as_shape_with_unknown(shape, a.size)
    view = a.T.reshape(wanted[::-1]).T if order == "F" else a.reshape(wanted)
    shared = not a.size or np.shares_memory(view, a)
    if copy is False and not shared:
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return converted(view, view.dtype, "C") if copy and shared else view


def as_shape_with_unknown(shape: Any, size: int) -> tuple[int, ...]:
    """Return ``shape`` as a tuple, its -1 replaced; CuPy cannot infer it when the other extents are 0."""
    if len(shape) == 1 and isinstance(shape[0], (tuple, list, np.ndarray)):
        shape = shape[0]
    extents = [operator.index(extent) if not isinstance(extent, np.ndarray) else int(extent) for extent in shape]
    if sum(extent < 0 for extent in extents) > 1:
        raise ValueError("can only specify one unknown dimension")
    known = math.prod(extent for extent in extents if extent >= 0)
    if any(extent < 0 for extent in extents):
        if known == 0 or size % known:
            raise ValueError(f"cannot reshape array of size {size} into shape {tuple(extents)}")
        extents = [size // known if extent < 0 else extent for extent in extents]
    elif known != size:
        raise ValueError(f"cannot reshape array of size {size} into shape {tuple(extents)}")
    return tuple(extents)


@define("cupy.ndarray.reshape")
def reshape_method(a: Array, *shape: object, order: str = "C", copy: object = None) -> Array:
    return _reshaped(a, shape, order, copy)


@define("cupy.reshape")
def reshape(a: Array, newshape: object, order: str = "C", *, copy: object = None) -> Array:
    return _reshaped(a, (newshape,), order, copy)


@define("cupy.ravel", "cupy.ndarray.ravel")
def ravel(a: Array, order: Order = "C") -> Array:
    return a.ravel(order or "C")


@define("cupy.broadcast_to")
def broadcast_to(array: Array, shape: object) -> Array:
    shape = as_shape(shape)
    view = np.broadcast_to(array, shape)
    return np.lib.stride_tricks.as_strided(array, view.shape, view.strides)  # NumPy's is read-only, CuPy's is not


@define("cupy.broadcast_arrays")
def broadcast_arrays(*args: Any) -> tuple[Array, ...]:
    shape = np.broadcast_shapes(*(np.shape(a) for a in args))
    return tuple(broadcast_to(a, shape) if isinstance(a, np.ndarray) else a for a in args)


@define("cupy.lib.stride_tricks.as_strided")
def as_strided(x: Array, shape: object = None, strides: Any = None) -> Array:
    shape = x.shape if shape is None else as_shape(shape)
    strides = x.strides if strides is None else tuple(strides)
    _require_inside(x, shape, strides)
    return np.lib.stride_tricks.as_strided(x, shape, strides)


def _require_inside(x: Array, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    """Refuse a view beyond the memory of ``x``: on a GPU that reads a neighbour, here it could end the process."""
    if not math.prod(shape):
        return
    owner = owner_of(x)
    first = x.ctypes.data - owner.ctypes.data
    low = first + sum(min(0, stride * (extent - 1)) for stride, extent in zip(strides, shape, strict=True))
    high = first + sum(max(0, stride * (extent - 1)) for stride, extent in zip(strides, shape, strict=True))
    if low < 0 or high + x.itemsize > owner.nbytes:
        raise ValueError(f"a view of shape {shape} and strides {strides} reaches beyond the array's memory")


@define("cupy.lib.stride_tricks.sliding_window_view")
def sliding_window_view(
    x: Array, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Array:
    view = np.lib.stride_tricks.sliding_window_view(x, window_shape, axis)
    return np.lib.stride_tricks.as_strided(x, view.shape, view.strides)


@define("cupy.append")
def append(arr: object, values: object, axis: int | None = None) -> Array:
    arr, values = asarray(arr), asarray(values)
    if axis is None:
        return concatenate((arr.ravel(), values.ravel()))
    return concatenate((arr, values), axis)


def _joiner(name: str, at_least: Callable[..., Any], axis: int) -> Callable[..., Any]:
    def join(tup: Any, *, dtype: object = None, casting: Casting = "same_kind") -> Array:
        arrays = [at_least(np.asarray(a)) for a in tup]
        place = 0 if axis == 1 and arrays and arrays[0].ndim == 1 else axis
        return concatenate(arrays, place, dtype=dtype, casting=casting)

    join.__name__ = name
    return join


vstack = _joiner("vstack", np.atleast_2d, 0)
define("cupy.vstack")(vstack)
define("cupy.hstack")(_joiner("hstack", np.atleast_1d, 1))


@define("cupy.row_stack")
def row_stack(tup: object, *, dtype: object = None, casting: Casting = "same_kind") -> Array:
    warnings.warn("`row_stack` alias is deprecated. Use `cp.vstack` directly.", DeprecationWarning, stacklevel=3)
    result: Array = vstack(tup, dtype=dtype, casting=casting)
    return result


@define("cupy.dstack")
def dstack(tup: Any) -> Array:
    return concatenate([np.atleast_3d(a) for a in tup], 2)


@define("cupy.column_stack")
def column_stack(tup: Any) -> Array:
    if any(not isinstance(a, np.ndarray) for a in tup):
        raise TypeError("Only cupy arrays can be column stacked")
    return concatenate([a[:, None] if a.ndim == 1 else a.reshape(a.size, 1) if a.ndim == 0 else a for a in tup], 1)


@define("cupy.stack")
def stack(
    tup: Any, axis: int = 0, out: Array | None = None, *, dtype: object = None, casting: Casting = "same_kind"
) -> Array:
    arrays = [np.asarray(a) for a in tup]
    if not arrays:
        raise ValueError("need at least one array to stack")
    if len({a.shape for a in arrays}) > 1:
        raise ValueError("all input arrays must have the same shape")
    axis = normalize_axis_index(axis, arrays[0].ndim + 1)
    return concatenate([np.expand_dims(a, axis) for a in arrays], axis, out, dtype=dtype, casting=casting)


@define("cupy.tile")
def tile(A: ArrayLike, reps: Any) -> Array:
    repeats = tuple(reps) if isinstance(reps, (tuple, list, np.ndarray)) else (reps,)
    LEDGER.require(np.asarray(A).nbytes * math.prod(int(r) for r in repeats))
    return in_c_order(np.tile(A, reps)) if np.ndim(A) or len(repeats) else np.asarray(A).copy()


@define("cupy.repeat", "cupy.ndarray.repeat")
def repeat(a: Array, repeats: object, axis: int | None = None) -> Array:
    counts = _repeats(repeats)
    if axis is None:
        a, axis = a.ravel(), 0
    axis = normalize_axis_index(axis, a.ndim)
    if (np.asarray(counts) < 0).any():
        raise ValueError(f"'repeats' should not be negative: {repeats}")
    if np.ndim(counts) and np.size(counts) != a.shape[axis]:
        raise ValueError(f"'repeats' and 'axis' of 'a' should be same length: {np.size(counts)} != {a.shape[axis]}")
    LEDGER.require(
        a.nbytes * int(np.max(counts, initial=0)) if not np.ndim(counts) else a.itemsize * int(np.sum(counts))
    )
    return np.asarray(np.repeat(a, counts, axis), order="C")


def _repeats(repeats: Any) -> Any:
    if isinstance(repeats, np.ndarray):
        if not np.can_cast(repeats.dtype, np.intp, casting="safe"):
            raise TypeError(
                f"Cannot cast array data from {repeats.dtype!r} to {np.dtype(np.intp)!r} according to the rule 'safe'"
            )
        counts = repeats
    else:
        try:
            return operator.index(repeats)
        except TypeError:
            if not isinstance(repeats, (list, tuple)):
                raise ValueError(f"'repeats' should be int or sequence: {repeats}") from None
            counts = np.asarray(repeats, dtype=np.intp)
    if counts.ndim > 1:
        raise ValueError("object too deep for desired array")
    return int(counts.reshape(-1)[0]) if counts.size == 1 else counts


@define("cupy.resize")
def resize(a: object, new_shape: object) -> Array:
    if np.isscalar(a):
        return full(new_shape, a)
    a = asarray(a)
    shape = as_shape(new_shape)
    if a.size == 0:
        return np.zeros(shape, a.dtype)
    out = new_array(shape, a.dtype)
    out[...] = np.resize(a, shape)
    return out


@define("cupy.delete")
def delete(arr: Array, indices: object, axis: int | None = None) -> Array:
    if not isinstance(arr, np.ndarray):
        raise ValueError("delete(): arr must be a cupy.ndarray")
    if axis is None:
        arr, axis = arr.ravel(), 0
    axis = normalize_axis_index(axis, arr.ndim)
    if not isinstance(indices, slice) and not (
        isinstance(indices, (int, np.integer)) and not isinstance(indices, bool)
    ):
        indices = np.asarray(indices)
        if indices.dtype.kind == "b" and (indices.ndim != 1 or indices.shape[0] != arr.shape[axis]):
            raise ValueError(
                "boolean array argument indices to delete must be one dimensional and match the axis length of "
                f"{arr.shape[axis]}"
            )
        if not indices.size:
            indices = indices.astype(np.intp)
    return in_c_order(np.delete(arr, indices, axis))


@define("cupy.trim_zeros")
def trim_zeros(filt: Array, trim: str = "fb") -> Array:
    if filt.ndim == 0:
        return filt
    if filt.ndim > 1:
        raise NotImplementedError("Multi-dimensional trim is not supported")
    kept = np.flatnonzero(filt)
    trim = trim.upper()
    if not kept.size:
        return filt[filt.size :] if "F" in trim or "B" in trim else filt
    start = int(kept[0]) if "F" in trim else 0
    return filt[start : int(kept[-1]) + 1 if "B" in trim else filt.size]


@define("cupy.ndarray.transpose")
def transpose_method(a: Array, *axes: Any) -> Array:
    return a.transpose(*axes)


@define("cupy.ndarray.squeeze", "cupy.squeeze")
def squeeze(a: Array, axis: Any = None) -> Array:
    if axis is None:
        return a.squeeze()
    axes = axis if isinstance(axis, tuple) else (axis,)
    if len(axes) != len({normalize_axis_index(x, a.ndim) if a.ndim else x for x in axes}):
        raise ValueError("duplicate value in 'axis'")
    if any(a.ndim and a.shape[x] != 1 for x in axes):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return a.squeeze(axis)


@define("cupy.ndarray.swapaxes", "cupy.swapaxes")
def swapaxes(a: Array, axis1: int, axis2: int) -> Array:
    return np.swapaxes(a, axis1, axis2)


@define("cupy.matrix_transpose", "cupy.linalg.matrix_transpose")
def matrix_transpose(x: Array, /) -> Array:
    if x.ndim < 2:
        raise ValueError("matrix transpose with ndim < 2 is undefined")
    return np.swapaxes(x, -1, -2)


@define("cupy.roll")
def roll(a: Array, shift: Any, axis: Any = None) -> Array:
    return in_c_order(np.roll(a, shift, axis)).reshape(a.shape)


@define("cupy.pad")
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Array:
    return in_c_order(np.pad(np.asarray(array), pad_width, mode, **kwargs))


@define("cupy.ndarray.reduced_view")
def reduced_view(a: Array, dtype: object = None) -> Array:
    return a.reshape(-1) if a.flags.c_contiguous else a


def _at_least(ndim: int) -> Callable[..., Any]:
    function = getattr(np, f"atleast_{ndim}d")

    def atleast(*arys: object) -> Any:
        made = function(*arys)
        return list(made) if isinstance(made, tuple) else made

    return atleast


for _ndim in (1, 2, 3):
    define(f"cupy.atleast_{_ndim}d")(_at_least(_ndim))
