"""Reductions: sums, products, extremes, truth, and the cumulative ones."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from gpu_backend.devices.cpu.arrays import Array, DType
from gpu_backend.devices.cpu.axes import reduce_to
from gpu_backend.devices.cpu.conversion import converted
from gpu_backend.devices.cpu.dtypes import cast_into
from gpu_backend.devices.cpu.table import define
from gpu_backend.opstream.layout import NUMBERS

#: What CuPy's fast path (CUB) sums without promotion, and what else it reduces.
_SEGMENTED_SUM = frozenset("lLqQefdFD")
_SEGMENTED = frozenset("bBhHiIlLqQefdFD")


def _sum_dtype(dtype: DType) -> DType:
    if dtype.kind in "bi":
        return np.dtype(np.int64)
    return np.dtype(np.uint64) if dtype.kind == "u" else dtype


def _summed(a: Array, ufunc: Any, axis: object, dtype: Any, out: Array | None, keepdims: Any) -> Array:
    chosen = _sum_dtype(a.dtype) if dtype is None else np.dtype(dtype)
    if chosen.char not in NUMBERS:
        name = "sum" if ufunc is np.add else "prod"
        raise TypeError(f"Wrong type ({chosen.type}) of arguments for cupy_{name}_with_dtype")
    segmented = a.dtype.char in _SEGMENTED_SUM and chosen == a.dtype
    wide = np.dtype(np.float32) if chosen.char == "e" else chosen
    source = _as_dtype(a, wide)

    def compute(axes: Any, keep: bool) -> Any:
        total = np.asarray(ufunc.reduce(source, axes if source.ndim else (), dtype=wide, keepdims=keep))
        return total.astype(chosen, copy=False)

    return reduce_to(a, axis, out, bool(keepdims), compute, segmented)


def _as_dtype(a: Array, dtype: DType) -> Array:
    """Return ``a`` as ``dtype`` where NumPy's own cast inside a reduction would be another than a GPU's."""
    if a.dtype.kind == "f" and dtype.kind in "iu":
        return converted(a, dtype)
    if a.dtype.kind == "c" and dtype.kind != "c":
        return np.asarray(a.real)
    return a


@define("cupy.sum", "cupy.ndarray.sum")
def sum(a: Array, axis: object = None, dtype: object = None, out: Array | None = None, keepdims: bool = False) -> Array:
    return _summed(a, np.add, axis, dtype, out, keepdims)


@define("cupy.prod", "cupy.ndarray.prod")
def prod(
    a: Array, axis: object = None, dtype: object = None, out: Array | None = None, keepdims: object = False
) -> Array:
    return _summed(a, np.multiply, axis, dtype, out, keepdims)


def _without_nan(a: Array, value: int) -> Array:
    if a.dtype.kind == "f":
        return np.where(np.isnan(a), a.dtype.type(value), a)
    if a.dtype.kind == "c":
        result = a.copy()
        result.real[np.isnan(a.real)] = value
        result.imag[np.isnan(a.imag)] = value
        return result
    return a


@define("cupy.nansum")
def nansum(
    a: Array, axis: object = None, dtype: object = None, out: Array | None = None, keepdims: bool = False
) -> Array:
    return reduce_to(a, axis, out, keepdims, lambda axes, keep: sum(_without_nan(a, 0), axes, dtype, None, keep))


@define("cupy.nanprod")
def nanprod(
    a: Array, axis: object = None, dtype: object = None, out: Array | None = None, keepdims: bool = False
) -> Array:
    return reduce_to(a, axis, out, keepdims, lambda axes, keep: prod(_without_nan(a, 1), axes, dtype, None, keep))


def _of_nothing(a: Array, name: str, axes: Any, keep: bool) -> Array | None:
    """Return the extremes of an array without elements, of which there are none either; None if it has some.

    Raises
    ------
    ValueError
        If there was one to find.
    """
    if a.size:
        return None
    kept = [extent for axis, extent in enumerate(a.shape) if axis not in axes]
    if math.prod(kept):
        raise ValueError(f"zero-size array to reduction operation cupy_{name} which has no identity")
    return np.empty([1 if axis in axes else extent for axis, extent in enumerate(a.shape)] if keep else kept, a.dtype)


def _extreme(a: Array, name: str, axis: Any, out: Array | None, keepdims: bool) -> Array:
    ufunc: np.ufunc = np.maximum if name == "max" else np.minimum

    def compute(axes: Any, keep: bool) -> Any:
        nothing = _of_nothing(a, name, axes, keep)
        return ufunc.reduce(a, axes if a.ndim else (), keepdims=keep) if nothing is None else nothing

    return reduce_to(a, axis, out, keepdims, compute, a.dtype.char in _SEGMENTED)


@define("cupy.max", "cupy.amax", "cupy.ndarray.max")
def max(a: Array, axis: object = None, out: Array | None = None, keepdims: bool = False) -> Array:
    return _extreme(a, "max", axis, out, keepdims)


@define("cupy.min", "cupy.amin", "cupy.ndarray.min")
def min(a: Array, axis: object = None, out: Array | None = None, keepdims: bool = False) -> Array:
    return _extreme(a, "min", axis, out, keepdims)


@define("cupy.ptp", "cupy.ndarray.ptp")
def ptp(a: Array, axis: object = None, out: Array | None = None, keepdims: bool = False) -> Array:
    if a.dtype.kind == "b":
        raise TypeError(
            "cupy boolean subtract, the `-` operator, is deprecated, use the bitwise_xor, the `^` operator, or the "
            "logical_xor function instead."
        )
    return reduce_to(
        a, axis, out, keepdims, lambda axes, keep: max(a, axes, None, keep) - min(a, axes, None, keep),
        a.dtype.char in _SEGMENTED,
    )  # fmt: skip


def _nan_extreme(a: Array, ufunc: Any, name: str, axis: Any, out: Array | None, keepdims: bool) -> Array:
    def compute(axes: Any, keep: bool) -> Any:
        nothing = _of_nothing(a, name, axes, keep)
        return ufunc.reduce(a, axes if a.ndim else (), keepdims=keep) if nothing is None else nothing

    result = reduce_to(a, axis, out, keepdims, compute)
    if result.dtype.kind in "fc" and np.isnan(result).any():
        warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=3)
    return result


@define("cupy.nanmax")
def nanmax(a: Array, axis: object = None, out: Array | None = None, keepdims: bool = False) -> Array:
    return _nan_extreme(a, np.fmax, "nanmax", axis, out, keepdims)


@define("cupy.nanmin")
def nanmin(a: Array, axis: object = None, out: Array | None = None, keepdims: bool = False) -> Array:
    return _nan_extreme(a, np.fmin, "nanmin", axis, out, keepdims)


def _position(a: Array, name: str, axis: Any, dtype: Any, out: Array | None, keepdims: bool, skip_nan: bool) -> Array:
    """Return where an extreme lies; over several axes as an index into them, flattened."""
    find = np.argmax if name.endswith("max") else np.argmin
    fill = -np.inf if name.endswith("max") else np.inf

    def compute(axes: Any, keep: bool) -> Any:
        if (nothing := _of_nothing(a, name, axes, keep)) is not None:
            return nothing.astype(np.int64 if dtype is None else dtype)
        kept = [axis for axis in range(a.ndim) if axis not in (axes or ())]
        flat = a.transpose(kept + list(axes or ())).reshape(
            [*(a.shape[axis] for axis in kept), math.prod(a.shape[axis] for axis in axes or ())]
        )
        missing = np.isnan(flat) if skip_nan and a.dtype.kind in "fc" else None
        if missing is not None:
            flat = np.where(missing, flat.dtype.type(fill), flat)
        found = np.asarray(find(flat, axis=-1))
        if missing is not None:
            found = _first_number(flat, missing, found, fill)
        if keep:
            found = found.reshape([1 if axis in (axes or ()) else a.shape[axis] for axis in range(a.ndim)])
        return found.astype(np.int64 if dtype is None else dtype, copy=False)

    return reduce_to(a, axis, out, keepdims, compute)


def _first_number(flat: Array, missing: Array, found: Array, fill: float) -> Array:
    """Correct positions where the extreme is as far out as what stands for NaN; -1 where all is NaN."""
    at_fill = np.take_along_axis(missing, found[..., None], -1)[..., 0]
    first = np.argmin(missing, axis=-1)
    return np.where(missing.all(axis=-1), -1, np.where(at_fill, first, found))


def _define_positions(name: str, skip_nan: bool) -> None:
    def position(
        a: Array, axis: object = None, dtype: object = None, out: Array | None = None, keepdims: bool = False
    ) -> Array:
        return _position(a, name, axis, dtype, out, keepdims, skip_nan)

    def method(
        a: Array, axis: object = None, out: Array | None = None, dtype: object = None, keepdims: bool = False
    ) -> Array:
        return _position(a, name, axis, dtype, out, keepdims, skip_nan)

    define(f"cupy.{name}")(position)
    if not skip_nan:
        define(f"cupy.ndarray.{name}")(method)


for _name in ("argmax", "argmin"):
    _define_positions(_name, False)
    _define_positions(f"nan{_name}", True)


@define("cupy.all", "cupy.ndarray.all", "cupy.alltrue")
def all(a: Array, axis: object = None, out: Array | None = None, keepdims: bool = False) -> Array:
    return reduce_to(a, axis, out, keepdims, lambda axes, keep: np.all(a, axis=axes, keepdims=keep))


@define("cupy.any", "cupy.ndarray.any", "cupy.sometrue")
def any(a: Array, axis: object = None, out: Array | None = None, keepdims: bool = False) -> Array:
    return reduce_to(a, axis, out, keepdims, lambda axes, keep: np.any(a, axis=axes, keepdims=keep))


@define("cupy.count_nonzero")
def count_nonzero(a: Array, axis: object = None) -> Array:
    return reduce_to(a, axis, None, False, lambda axes, keep: np.asarray(np.count_nonzero(a, axis=axes)))


def _scanned(a: Array, ufunc: Any, axis: int | None, dtype: Any, out: Array | None) -> Array:
    if not isinstance(a, np.ndarray):
        raise TypeError(f"Argument 'a' has incorrect type (expected cupy.ndarray, got {type(a).__name__})")
    chosen = out.dtype if out is not None else _sum_dtype(a.dtype) if dtype is None else np.dtype(dtype)
    if axis is None:
        source, place = a.ravel(), 0
    else:
        source, place = a, normalize_axis_index(axis, a.ndim)
    source = _as_dtype(source, chosen)
    wide = np.dtype(np.float32) if chosen.char == "e" else chosen
    result = np.asarray(ufunc.accumulate(source, place, dtype=wide)).astype(chosen, order="C", copy=False)
    if out is None:
        return result
    if out.size != result.size:
        raise ValueError("Provided out is the wrong size")
    cast_into(out, result.reshape(out.shape))
    return out


@define("cupy.cumsum", "cupy.ndarray.cumsum")
def cumsum(a: Array, axis: int | None = None, dtype: object = None, out: Array | None = None) -> Array:
    return _scanned(a, np.add, axis, dtype, out)


@define("cupy.cumprod", "cupy.ndarray.cumprod")
def cumprod(a: Array, axis: int | None = None, dtype: object = None, out: Array | None = None) -> Array:
    return _scanned(a, np.multiply, axis, dtype, out)


@define("cupy.nancumsum")
def nancumsum(a: Array, axis: int | None = None, dtype: object = None, out: Array | None = None) -> Array:
    return _scanned(_all_numbers(a, 0), np.add, axis, dtype, out)


@define("cupy.nancumprod")
def nancumprod(a: Array, axis: int | None = None, dtype: object = None, out: Array | None = None) -> Array:
    return _scanned(_all_numbers(a, 1), np.multiply, axis, dtype, out)


def _all_numbers(a: Array, value: int) -> Array:
    """Scans replace a complex number as a whole, sums and products each of its parts."""
    return np.where(a == a, a, a.dtype.type(value))


def _cumulative(x: Array, ufunc: Any, axis: Any, dtype: Any, out: Array | None, include_initial: bool) -> Array:
    if not isinstance(x, np.ndarray):
        raise TypeError("`x` should be of type cupy.ndarray")
    x = np.atleast_1d(x)
    if axis is None:
        if x.ndim >= 2:
            raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
        axis = 0
    axis = normalize_axis_index(axis, x.ndim)
    shape = list(x.shape)
    shape[axis] += bool(include_initial)
    if out is not None and out.shape != tuple(shape):
        raise ValueError(f"out.shape {out.shape} does not match expected shape {tuple(shape)}")
    if not include_initial:
        return _scanned(x, ufunc, axis, dtype, out)
    chosen = _sum_dtype(x.dtype) if dtype is None else np.dtype(dtype)
    result = np.empty(shape, chosen) if out is None else out
    first, rest = [slice(None)] * x.ndim, [slice(None)] * x.ndim
    first[axis], rest[axis] = slice(0, 1), slice(1, None)
    result[tuple(first)] = ufunc.identity
    _scanned(x, ufunc, axis, dtype, result[tuple(rest)])
    return result


@define("cupy.cumulative_sum")
def cumulative_sum(
    x: Array, /, *, axis: object = None, dtype: object = None, out: Array | None = None, include_initial: bool = False
) -> Array:
    return _cumulative(x, np.add, axis, dtype, out, include_initial)


@define("cupy.cumulative_prod")
def cumulative_prod(
    x: Array, /, *, axis: object = None, dtype: object = None, out: Array | None = None, include_initial: bool = False
) -> Array:
    return _cumulative(x, np.multiply, axis, dtype, out, include_initial)


@define("cupy.trace", "cupy.ndarray.trace")
def trace(
    a: Array, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: object = None, out: Array | None = None
) -> Array:
    return sum(np.diagonal(a, offset, axis1, axis2), -1, dtype, out)
