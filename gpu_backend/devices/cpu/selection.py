"""Functions that pick or place elements by index: take, put, choose, select and their kin."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import ArrayLike

from gpu_backend.devices.cpu.arrays import Array, in_c_order
from gpu_backend.devices.cpu.conversion import asarray
from gpu_backend.devices.cpu.dtypes import cast_into
from gpu_backend.devices.cpu.index import wrapped
from gpu_backend.devices.cpu.table import define

#: Declared for two memory orders; of another it says itself what is wrong.
_unravel: Callable[..., Any] = np.unravel_index


@define("cupy.take", "cupy.ndarray.take")
def take(a: Array, indices: object, axis: int | None = None, out: Array | None = None) -> Array:
    if not isinstance(indices, np.ndarray):
        indices = np.asarray(indices, dtype=int)
    if axis is None:
        a, axis = a.reshape(-1), 0
    elif a.ndim == 0:
        normalize_axis_index(axis, 1)
        a, axis = a.reshape(1), 0
    axis = normalize_axis_index(axis, a.ndim)
    shape = a.shape[:axis] + indices.shape + a.shape[axis + 1 :]
    if out is not None:
        if out.dtype != a.dtype:
            raise TypeError("Output dtype mismatch")
        if out.shape != shape:
            raise ValueError("Output shape mismatch")
    if a.size == 0 and math.prod(shape):
        raise IndexError("cannot do a non-empty take from an empty axes.")
    result = np.asarray(np.take(a, wrapped(indices, a.shape[axis]), axis), order="C")
    if out is None:
        return result
    out[...] = result
    return out


@define("cupy.take_along_axis")
def take_along_axis(a: Array, indices: Array, axis: int | None) -> Array:
    if indices.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if axis is None:
        a, axis = a.ravel(), 0
    axis = normalize_axis_index(axis, a.ndim)
    if a.ndim != indices.ndim:
        raise ValueError("`indices` and `a` must have the same number of dimensions")
    return in_c_order(np.take_along_axis(a, wrapped(indices, a.shape[axis]), axis))


@define("cupy.put_along_axis")
def put_along_axis(arr: Array, indices: Array, values: ArrayLike, axis: int | None) -> None:
    if indices.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if axis is None:
        if indices.ndim != 1:
            raise NotImplementedError("Tuple setitem isn't supported for flatiter.")
        arr.flat[wrapped(indices, arr.size)] = values
        return
    axis = normalize_axis_index(axis, arr.ndim)
    if arr.ndim != indices.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    np.put_along_axis(arr, wrapped(indices, arr.shape[axis]), values, axis)


@define("cupy.put", "cupy.ndarray.put")
def put(a: Array, ind: object, v: object, mode: str = "wrap") -> None:
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError("clipmode not understood")
    ind = np.asarray(ind).ravel()
    values = v if isinstance(v, np.ndarray) else np.asarray(v, dtype=a.dtype)
    if values.size == 0:
        return
    cast = np.empty(values.size, a.dtype)
    cast_into(cast, values.reshape(-1))
    if mode == "raise" and ind.size and not ((-a.size <= ind) & (ind < a.size)).all():
        raise IndexError("invalid entry in indices array")
    if a.size:  # NumPy would go round and round
        ind = np.clip(ind, 0, a.size - 1) if mode == "clip" else ind % a.size
    np.put(a, ind.astype(np.intp), cast)


@define("cupy.choose", "cupy.ndarray.choose")
def choose(a: Array, choices: Any, out: Array | None = None, mode: str = "raise") -> Array:
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError("clipmode not understood")
    if mode == "raise" and not ((a < len(choices)).all() and (a >= 0).all()):
        raise ValueError("invalid entry in choice array")
    # NumPy takes no uint64 for an index, and goes round and round where it wraps.
    places = (a % len(choices) if mode == "wrap" else np.clip(a, 0, len(choices) - 1)).astype(np.intp)
    result = in_c_order(np.choose(places, choices))
    if out is None:
        return result
    out[...] = result
    return out


def _condition(condition: object) -> Array:
    if np.isscalar(condition):
        raise ValueError("condition must be a 1-d array")
    condition = np.asarray(condition)
    if condition.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    return condition


@define("cupy.compress")
def compress(condition: object, a: Array, axis: int | None = None, out: Array | None = None) -> Array:
    return take(a, np.flatnonzero(_condition(condition)), axis, out)


@define("cupy.ndarray.compress")
def compress_method(a: Array, condition: object, axis: int | None = None, out: Array | None = None) -> Array:
    return compress(condition, a, axis, out)


@define("cupy.extract")
def extract(condition: object, a: object) -> Array:
    a, condition = asarray(a), asarray(condition)
    return take(a.ravel(), np.flatnonzero(condition.ravel()))


@define("cupy.diagonal", "cupy.ndarray.diagonal")
def diagonal(a: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    ndim = a.ndim
    if not (-ndim <= axis1 < ndim and -ndim <= axis2 < ndim):
        raise np.exceptions.AxisError(f"axis1(={axis1}) and axis2(={axis2}) must be within range (ndim={ndim})")
    view = np.diagonal(a, offset, axis1, axis2)
    if not view.size:
        return np.empty(view.shape, a.dtype)
    # NumPy's is read-only; CuPy's can be written
    return np.lib.stride_tricks.as_strided(_first(a, offset, axis1, axis2), view.shape, view.strides, writeable=True)


def _first(a: Array, offset: int, axis1: int, axis2: int) -> Array:
    start = [slice(None)] * a.ndim
    start[axis2 if offset >= 0 else axis1] = slice(abs(offset), None)
    return a[tuple(start)]


@define("cupy.diag")
def diag(v: object, k: int = 0) -> Array:
    v = asarray(v) if not isinstance(v, np.ndarray) else v
    if v.ndim == 1:
        return np.diag(v, k)
    if v.ndim == 2:
        return np.array(diagonal(v, k))
    raise ValueError("Input must be 1- or 2-d.")


@define("cupy.diagflat")
def diagflat(v: object, k: int = 0) -> Array:
    return diag(np.asarray(v).ravel(), k)


@define("cupy.place")
def place(arr: Array, mask: object, vals: Any) -> None:
    mask = np.asarray(mask)
    if np.size(vals) == 0:
        if mask.any():
            raise ValueError("Cannot insert from an empty array.")
        return
    if arr.size != mask.size:
        raise ValueError("Mask and data must be the same size.")
    np.place(arr, mask, np.asarray(vals).astype(arr.dtype))


@define("cupy.putmask")
def putmask(a: Array, mask: Array, values: Any) -> None:
    if not isinstance(a, np.ndarray):
        raise TypeError("`a` should be of type cupy.ndarray")
    if mask.dtype.kind != "b":
        mask = mask != 0
    if not isinstance(values, np.ndarray) and np.isscalar(values):
        values = np.asarray(values, a.dtype) if isinstance(values, (bool, int, float, complex)) else np.asarray(values)
    if values.dtype.kind == "c" and a.dtype.kind not in "c":
        raise TypeError(f"Cannot cast from {values.dtype!r} to {a.dtype!r} according to the rule 'same_kind'")
    if not np.can_cast(values.dtype, a.dtype, "same_kind"):
        raise TypeError(f"Cannot cast from {values.dtype!r} to {a.dtype!r} according to the rule 'same_kind'")
    if a.size != mask.size:
        raise ValueError("mask and data must be the same size")
    np.putmask(a, mask, values)


@define("cupy.fill_diagonal")
def fill_diagonal(a: Array, val: object, wrap: bool = False) -> None:
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim > 2 and len(set(a.shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    np.fill_diagonal(a, asarray(val, a.dtype), wrap)


@define("cupy.select")
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Array:
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if not len(condlist):
        raise ValueError("select with an empty condition list is not possible")
    if not np.isscalar(default):
        raise TypeError("default only accepts scalar values")
    for choice in choicelist:
        if not isinstance(choice, np.ndarray):
            raise TypeError("choicelist only accepts lists of cupy ndarrays")
    for place, condition in enumerate(condlist):
        if condition.dtype.kind != "b":
            raise ValueError(f"invalid entry {place} in condlist: should be boolean ndarray")
    return in_c_order(np.select(condlist, choicelist, default))


@define("cupy.where")
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    missing = (x is None, y is None).count(True)
    if missing == 1:
        raise ValueError("Must provide both 'x' and 'y' or neither.")
    if missing == 2:
        return nonzero(condition)
    if not isinstance(condition, np.ndarray):
        condition = np.asarray(condition)
    if condition.dtype.kind != "b":
        condition = condition != 0
    if condition.ndim == 0 and isinstance(x, (bool, int, float, complex)) and not isinstance(y, np.ndarray):
        return np.asarray(np.where(condition, x, y))
    return np.asarray(np.where(condition, x, y), order="C")


@define("cupy.nonzero", "cupy.ndarray.nonzero")
def nonzero(a: Array) -> tuple[Array, ...]:
    if a.ndim == 0:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use cp.atleast_1d(scalar).nonzero() instead.")
    places = argwhere(a)
    return tuple(places[:, axis] for axis in range(a.ndim))


@define("cupy.argwhere")
def argwhere(a: Array) -> Array:
    return in_c_order(np.argwhere(a))


@define("cupy.flatnonzero")
def flatnonzero(a: Array) -> Array:
    return nonzero(a.ravel())[0]


@define("cupy.ix_")
def ix_(*args: object) -> tuple[Array, ...]:
    arrays = [np.asarray(a) for a in args]
    for a in arrays:
        if a.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
    flat = [a.astype(np.int64) if a.size == 0 else a for a in arrays]
    return tuple(np.ix_(*flat))


@define("cupy.ravel_multi_index")
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "wrap", order: Literal["C", "F"] = "C") -> Array:
    return np.asarray(np.ravel_multi_index(tuple(multi_index), dims, mode, order))


@define("cupy.unravel_index")
def unravel_index(indices: Array, dims: Any, order: str = "C") -> tuple[Array, ...]:
    order = order or "C"
    if order not in ("C", "F", "c", "f"):
        raise ValueError("order not understood")
    if indices.dtype.kind not in "iu":
        raise TypeError(
            f"Iterator operand 0 dtype could not be cast from {indices.dtype!r} to dtype('int64') according to the "
            "rule 'same_kind'"
        )
    if ((indices < 0) | (indices >= math.prod(dims))).any():
        raise ValueError("invalid entry in index array")
    return tuple(np.asarray(a).copy() for a in _unravel(indices, dims, order.upper()))
