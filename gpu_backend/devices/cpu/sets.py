"""Sorting, searching and set operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from gpu_backend.devices.cpu.arrays import Array, in_c_order
from gpu_backend.devices.cpu.conversion import asarray
from gpu_backend.devices.cpu.table import define

#: How many arrays these return is declared for each of their options by itself, and a caller says which ones.
_unique: Callable[..., Any] = np.unique
_intersect1d: Callable[..., Any] = np.intersect1d


def _check_kind(kind: object) -> None:
    if kind is not None and kind != "stable":
        raise ValueError("kind can only be None or 'stable'")


def _check_sortable(a: Array) -> None:
    if a.ndim == 0:
        raise np.exceptions.AxisError("Sorting arrays with the rank of zero is not supported")


@define("cupy.ndarray.sort")
def sort_method(a: Array, axis: int = -1, kind: object = None) -> None:
    _check_kind(kind)
    _check_sortable(a)
    if not a.flags.c_contiguous:
        raise NotImplementedError("Sorting non-contiguous array is not supported.")
    a.sort(axis=normalize_axis_index(axis, a.ndim), kind="stable")


@define("cupy.sort")
def sort(a: Array, axis: int | None = -1, kind: object = None) -> Array:
    result = np.array(a, order="C")
    if axis is None:
        result, axis = result.reshape(-1), -1
    sort_method(result, axis, kind)
    return result


@define("cupy.argsort", "cupy.ndarray.argsort")
def argsort(a: Array, axis: int | None = -1, kind: object = None) -> Array:
    _check_kind(kind)
    return in_c_order(np.argsort(a, axis, kind="stable"))


def _check_kth(kth: Any, extent: int) -> None:
    for k in (kth,) if isinstance(kth, int) else kth:
        if not -extent <= k < extent:
            raise ValueError(f"kth(={k + extent if k < 0 else k}) out of bounds {extent}")


@define("cupy.ndarray.partition")
def partition_method(a: Array, kth: object, axis: int = -1) -> None:
    _check_sortable(a)
    if not a.flags.c_contiguous:
        raise NotImplementedError("Sorting non-contiguous array is not supported.")
    axis = normalize_axis_index(axis, a.ndim)
    _check_kth(kth, a.shape[axis])
    a.sort(axis=axis, kind="stable")


@define("cupy.partition")
def partition(a: Array, kth: object, axis: int | None = -1) -> Array:
    result = np.array(a, order="C")
    if axis is None:
        result, axis = result.reshape(-1), -1
    partition_method(result, kth, axis)
    return result


@define("cupy.argpartition", "cupy.ndarray.argpartition")
def argpartition(a: Array, kth: object, axis: int | None = -1) -> Array:
    _check_sortable(a) if axis is not None else None
    if axis is None:
        a, axis = a.ravel(), -1
    axis = normalize_axis_index(axis, a.ndim)
    if not a.shape[axis]:
        return np.empty((0,), np.int64)
    _check_kth(kth, a.shape[axis])
    return in_c_order(np.argsort(a, axis, kind="stable"))


@define("cupy.lexsort")
def lexsort(keys: object) -> Array:
    keys = keys if isinstance(keys, np.ndarray) else np.asarray(keys)
    if keys.ndim == 0:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if keys.ndim == 1:
        return np.array(0, dtype=np.intp)
    if keys.ndim > 2:
        raise NotImplementedError("Keys with the rank of three or more is not supported in lexsort")
    return np.lexsort(keys)


@define("cupy.msort")
def msort(a: Array) -> Array:
    return sort(a, 0)


@define("cupy.sort_complex")
def sort_complex(a: Array) -> Array:
    result = a.astype("F" if a.dtype.char in "bhBHF" else "D", order="C")
    result.sort(kind="stable")
    return result


def _searched(a: Any, v: Any, side: str, sorter: Any) -> Array:
    if not isinstance(a, np.ndarray):
        raise NotImplementedError("Only int or ndarray are supported for a")
    if not isinstance(v, np.ndarray):
        if not isinstance(v, (int, float, complex)):
            raise NotImplementedError("Only python scalars or ndarrays are supported for v")
        v = np.asarray(v)
    if a.ndim != 1:
        raise ValueError(
            "object too deep for desired array" if a.ndim > 1 else "object of too small depth for desired array"
        )
    if not a.size:
        return np.zeros(v.shape, np.int64)
    if sorter is not None:
        if sorter.dtype.kind not in "iu":
            raise TypeError("sorter must be of integer type")
        if sorter.size != a.size:
            raise ValueError("sorter.size must equal a.size")
        a = a.take(sorter)
    return np.asarray(np.searchsorted(a, v, "right" if side == "right" else "left"))


@define("cupy.searchsorted", "cupy.ndarray.searchsorted")
def searchsorted(a: object, v: object, side: str = "left", sorter: object = None) -> Array:
    return _searched(a, v, side, sorter)


@define("cupy.digitize")
def digitize(x: Array, bins: Any, right: bool = False) -> Array:
    if not isinstance(x, np.ndarray):
        raise TypeError("`x` must be a cupy.ndarray")
    if x.dtype.kind == "c":
        raise TypeError("x may not be complex")
    if bins.ndim > 1:
        raise ValueError("object of too small depth for desired array")
    if bins.ndim < 1:
        raise ValueError("object of too small depth for desired array")
    if not bins.size:
        return np.zeros(x.shape, np.int64)
    try:
        return np.asarray(np.digitize(x, bins, right))
    except (ValueError, TypeError):  # bins that are complex or not monotonic, which CuPy does not look at
        return _searched(bins, x, "left" if right else "right", None)


class UniqueAllResult(NamedTuple):
    """What ``unique_all`` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """What ``unique_counts`` returns."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """What ``unique_inverse`` returns."""

    values: Array
    inverse_indices: Array


@define("cupy.unique")
def unique(
    ar: object,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
) -> Any:
    ar = asarray(ar)
    found = _unique(ar, return_index, return_inverse, return_counts, axis, equal_nan=equal_nan)
    if not isinstance(found, tuple):
        return in_c_order(found)
    results = [in_c_order(part) for part in found]
    if return_inverse:
        place = 1 + bool(return_index)
        results[place] = results[place].reshape(ar.shape if axis is None else -1)
    return tuple(results)


@define("cupy.unique_all")
def unique_all(x: Array) -> UniqueAllResult:
    return UniqueAllResult(*unique(x, True, True, True, equal_nan=False))


@define("cupy.unique_counts")
def unique_counts(x: Array) -> UniqueCountsResult:
    return UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False))


@define("cupy.unique_inverse")
def unique_inverse(x: Array) -> UniqueInverseResult:
    return UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False))


@define("cupy.unique_values")
def unique_values(x: Array) -> Array:
    result: Array = unique(x, equal_nan=False)
    return result


@define("cupy.isin")
def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False) -> Array:
    return np.asarray(np.isin(element, test_elements, assume_unique=assume_unique, invert=invert))


@define("cupy.in1d")
def in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False) -> Array:
    return isin(np.ravel(ar1), np.ravel(ar2), assume_unique, invert)


@define("cupy.intersect1d")
def intersect1d(arr1: Array, arr2: Array, assume_unique: bool = False, return_indices: bool = False) -> Any:
    return _intersect1d(arr1, arr2, assume_unique, return_indices)


@define("cupy.setdiff1d")
def setdiff1d(ar1: Array, ar2: Array, assume_unique: bool = False) -> Array:
    return np.setdiff1d(ar1, ar2, assume_unique)


@define("cupy.setxor1d")
def setxor1d(ar1: Array, ar2: Array, assume_unique: bool = False) -> Array:
    return np.setxor1d(ar1, ar2, assume_unique)


@define("cupy.union1d")
def union1d(arr1: Array, arr2: Array) -> Array:
    return np.union1d(arr1, arr2)
