"""Rules of sorting, searching and counting."""

from __future__ import annotations

import numpy as np
from numpy.exceptions import AxisError

from gpu_backend.opstream.proof import windows
from gpu_backend.opstream.proof.arguments import BOOL, INT64, as_axis, as_index
from gpu_backend.opstream.proof.outcome import CannotProve, refusal
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.shadow import Array, array, new
from gpu_backend.opstream.proof.values import is_items

_NO_AXES = "Sorting arrays with the rank of zero is not supported"


def _check_kind(kind: object) -> None:
    if kind is not None and kind != "stable":
        raise refusal(ValueError, "kind can only be None or 'stable'")


@rule("cupy.sort")
def sort(a: Array, axis: object = -1, kind: object = None) -> Array:
    """As CuPy."""
    made = a.flatten() if axis is None else a.copy()
    _check_kind(kind)
    if made.ndim == 0:
        raise refusal(AxisError, _NO_AXES)
    as_axis(-1 if axis is None else axis, made.ndim)
    return made


@rule("cupy.ndarray.sort")
def sort_in_place(a: Array, axis: object = -1, kind: object = None) -> None:
    """As CuPy."""
    _check_kind(kind)
    if a.ndim == 0:
        raise refusal(AxisError, _NO_AXES)
    if not a.layout.c_contiguous:
        raise refusal(NotImplementedError, "Sorting non-contiguous array is not supported.")
    as_axis(axis, a.ndim)


@rule("cupy.argsort", "cupy.ndarray.argsort")
def argsort(a: Array, axis: object = -1, kind: object = None) -> Array:
    """As CuPy: along another axis than the last, the strides of the result are permuted."""
    _check_kind(kind)
    given = a.reshape(1) if a.ndim == 0 else a
    if axis is None:
        return new((given.size,), INT64)
    place = as_axis(axis, given.ndim)
    if place == given.ndim - 1:
        return new(given.shape, INT64)
    rolled = windows.rollaxis(given.layout, place, given.ndim)[1]
    return Array(windows.rollaxis(new(rolled.shape, INT64).layout, -1, place)[1])


@rule("cupy.partition")
def partition(a: Array, kth: object, axis: object = -1) -> Array:
    """As CuPy."""
    made = a.flatten() if axis is None else a.copy()
    if made.ndim == 0:
        raise refusal(AxisError, _NO_AXES)
    place = as_axis(-1 if axis is None else axis, made.ndim)
    _check_kth(kth, made.shape[place])
    return made


def _check_kth(kth: object, length: int) -> None:
    places = [as_index(one) for one in kth] if is_items(kth) else [as_index(kth)]
    if not all(-length <= one < length for one in places):
        raise CannotProve("an element that is not there")


@rule("cupy.argpartition", "cupy.ndarray.argpartition")
def argpartition(a: Array, kth: object, axis: object = -1) -> Array:
    """As CuPy, along the last axis or of all elements."""
    given = a.ravel() if axis is None else a
    place = as_axis(-1 if axis is None else axis, given.ndim)
    if place != given.ndim - 1 or given.shape[place] == 0:
        raise CannotProve("another axis than the last")
    _check_kth(kth, given.shape[place])
    return new(given.shape, INT64)


@rule("cupy.lexsort")
def lexsort(keys: Array) -> Array:
    """As CuPy, of a matrix."""
    if keys.ndim != 2:
        raise CannotProve("other than a matrix")
    return new(keys.shape[1:], INT64)


@rule("cupy.sort_complex")
def sort_complex(a: Array) -> Array:
    """As CuPy, of contiguous arrays."""
    made = a.astype("F" if a.dtype.char in "bhBHF" else "D")
    if made.ndim == 0:
        raise refusal(AxisError, _NO_AXES)
    if not made.layout.c_contiguous:
        raise refusal(NotImplementedError, "Sorting non-contiguous array is not supported.")
    return made


@rule("cupy.searchsorted", "cupy.ndarray.searchsorted")
def searchsorted(a: Array, v: object, side: object = "left", sorter: object = None) -> Array:
    """As CuPy, without a sorter."""
    if sorter is not None:
        raise CannotProve("a sorter")
    values = v if isinstance(v, Array) else None
    if values is None and type(v) not in (int, float):
        raise CannotProve("values of another kind")
    if a.ndim > 1:
        raise refusal(ValueError, "object too deep for desired array")
    if a.ndim < 1:
        raise refusal(ValueError, "object of too small depth for desired array")
    return new(() if values is None else values.shape, INT64)


@rule("cupy.digitize")
def digitize(x: Array, bins: Array, right: object = False) -> Array:
    """As CuPy."""
    if x.dtype.kind == "c":
        raise refusal(TypeError, "x may not be complex")
    if bins.ndim > 1:
        raise refusal(ValueError, "object too deep for desired array")
    if bins.ndim < 1:
        raise refusal(ValueError, "object of too small depth for desired array")
    return new(x.shape, INT64)


@rule("cupy.in1d")
def in1d(ar1: object, ar2: object, assume_unique: object = False, invert: object = False) -> Array:
    """As CuPy, which looks at nothing where one of them is empty."""
    if not isinstance(ar1, (Array, np.ndarray)) or not isinstance(ar2, (Array, np.ndarray)):
        raise CannotProve("other than two arrays")
    if isinstance(ar1, np.ndarray) or isinstance(ar2, np.ndarray):
        if ar1.size and ar2.size:
            raise refusal(TypeError, f"Unsupported type {np.ndarray}")
        raise CannotProve("an array of NumPy")
    if "c" in (ar1.dtype.kind, ar2.dtype.kind) and ar1.dtype != ar2.dtype:
        raise CannotProve("a comparison of a complex number with another type, which may not compile")
    return new((ar1.size,), BOOL)


@rule("cupy.isin")
def isin(element: object, test_elements: object, assume_unique: object = False, invert: object = False) -> Array:
    """As CuPy."""
    made = in1d(element, test_elements, assume_unique, invert)
    return made.reshape(array(element).shape)
