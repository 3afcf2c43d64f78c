"""Means, spreads and order statistics."""

from __future__ import annotations

import functools
import math
import warnings
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from gpu_backend.devices.cpu.arrays import Array, DType
from gpu_backend.devices.cpu.axes import as_axes, reduce_to
from gpu_backend.devices.cpu.conversion import asarray
from gpu_backend.devices.cpu.dtypes import cast_into
from gpu_backend.devices.cpu.reductions import sum as sum_
from gpu_backend.devices.cpu.table import define

#: As any ufunc: what is declared of `numpy.add` itself wants to know beforehand whether axes are kept.
_ADD: np.ufunc = np.add


def _wide(dtype: DType) -> DType:
    return np.dtype(np.float32) if dtype.char == "e" else dtype


def _mean_dtypes(a: Array, dtype: DTypeLike) -> tuple[DType, DType]:
    """Return in which dtype a mean is computed and given."""
    if dtype is None:
        chosen = np.dtype(np.float64) if a.dtype.kind in "iub" else a.dtype
    else:
        chosen = np.dtype(dtype)
        if chosen.kind in "iub":
            return np.dtype(np.float64), chosen
    return _wide(chosen), chosen


@define("cupy.mean", "cupy.ndarray.mean")
def mean(a: Array, axis: Any = None, dtype: Any = None, out: Array | None = None, keepdims: bool = False) -> Array:
    wide, chosen = _mean_dtypes(a, dtype)

    def compute(axes: Any, keep: bool) -> Any:
        total = _ADD.reduce(a, axes if a.ndim else (), dtype=wide, keepdims=keep)
        count = math.prod(a.shape[axis] for axis in axes or ())
        result = np.asarray(np.true_divide(total, np.asarray(count, wide)))
        given = np.empty(result.shape, chosen)
        cast_into(given, result)
        return given

    return reduce_to(a, axis, out, keepdims, compute, a.dtype.char in "efdFD" and bool(a.size))


def _spread(a: Array, axis: object, dtype: Any, ddof: object, keepdims: bool) -> Array:
    if dtype is None:
        chosen = np.dtype(np.float64) if a.dtype.kind in "biu" else np.dtype(a.dtype.char.lower())
    else:
        chosen = np.dtype(dtype) if np.dtype(dtype).char in "ef" else np.dtype(np.float64)
    axes = as_axes(axis, a.ndim)
    count = math.prod(a.shape[axis] for axis in axes)
    divisor = count - ddof if count > ddof else 0
    wide = a if a.dtype.kind in "fc" and a.dtype.char != "e" else a.astype(np.float32 if a.dtype.kind == "f" else float)
    centre = mean(wide, axes, None, None, True) if a.size else np.zeros((1,) * a.ndim)
    distance = wide - centre
    square = distance.real**2 + distance.imag**2 if distance.dtype.kind == "c" else distance * distance
    total = np.asarray(_ADD.reduce(square, axes if a.ndim else (), keepdims=keepdims))
    scale = 1.0 / divisor if divisor else math.nan
    return np.asarray(total * total.dtype.type(scale)).astype(chosen, copy=False)


def _as_number(axis: object) -> object:
    """Return the axis of a spread, which may be an array of one integer where those of other reductions may not."""
    return axis.item() if isinstance(axis, np.ndarray) and not axis.ndim else axis


@define("cupy.var", "cupy.ndarray.var")
def var(
    a: Array,
    axis: object = None,
    dtype: object = None,
    out: Array | None = None,
    ddof: object = 0,
    keepdims: bool = False,
) -> Array:
    return reduce_to(a, _as_number(axis), out, keepdims, lambda axes, keep: _spread(a, axes, dtype, ddof, keep))


@define("cupy.std", "cupy.ndarray.std")
def std(
    a: Array, axis: object = None, dtype: Any = None, out: Array | None = None, ddof: object = 0, keepdims: bool = False
) -> Array:
    def compute(axes: Any, keep: bool) -> Any:
        spread = _spread(a, axes, dtype, ddof, keep)
        chosen = spread.dtype if dtype is None else np.dtype(dtype)
        return np.sqrt(spread.astype(_wide(spread.dtype), copy=False)).astype(chosen, copy=False)

    return reduce_to(a, _as_number(axis), out, keepdims, compute)


@define("cupy.average")
def average(
    a: object, axis: object = None, weights: object = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    a = asarray(a)
    if weights is None:
        result = mean(a, axis, keepdims=keepdims)
        scale = np.asarray(result.dtype.type(a.size / result.size))
    else:
        weights = asarray(weights)
        kinds = (a.dtype, weights.dtype) + ((np.dtype(float),) if a.dtype.kind in "biu" else ())
        dtype = functools.reduce(np.promote_types, kinds)
        weights = _fitted_weights(a, weights, axis)
        scale = sum_(weights, axis, dtype, None, keepdims)
        if (scale == 0.0).any():
            raise ZeroDivisionError("Weights sum to zero, can't be normalized")
        result = np.asarray(sum_(np.multiply(a, weights, dtype=dtype), axis, None, None, keepdims) / scale)
    if not returned:
        return result
    if scale.shape != result.shape:
        scale = np.broadcast_to(scale, result.shape).copy()
    return result, scale


def _fitted_weights(a: Array, weights: Array, axis: Any) -> Array:
    if a.shape == weights.shape:
        return weights
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    if weights.ndim != 1:
        raise TypeError("1D weights expected when shapes of a and weights differ.")
    if weights.shape[0] != a.shape[axis]:
        raise ValueError("Length of weights not compatible with specified axis.")
    return np.broadcast_to(weights, (1,) * (a.ndim - 1) + weights.shape).swapaxes(-1, axis)


@define("cupy.nanmean")
def nanmean(a: Array, axis: Any = None, dtype: Any = None, out: Array | None = None, keepdims: bool = False) -> Array:
    if a.dtype.kind in "biu":
        return mean(a, axis, dtype, out, keepdims)
    chosen = a.dtype if dtype is None else np.dtype(dtype)

    def compute(axes: Any, keep: bool) -> Any:
        valid = ~np.isnan(a)
        total = _ADD.reduce(np.where(valid, a, 0), axes if a.ndim else (), dtype=_wide(chosen), keepdims=keep)
        count = _ADD.reduce(valid, axes if a.ndim else (), dtype=_wide(chosen), keepdims=keep)
        return np.asarray(total / count).astype(chosen, copy=False)

    return reduce_to(a, axis, out, keepdims, compute)


def _nan_spread(a: Array, axes: Any, dtype: Any, ddof: Any, keep: bool) -> Array:
    axes = axes if a.ndim else ()
    chosen = np.dtype(a.dtype.char.lower()) if dtype is None else np.dtype(np.dtype(dtype).char.lower())
    valid = ~np.isnan(a)
    wide = a.astype(np.promote_types(_wide(a.dtype), _wide(chosen)), copy=False)
    count = _ADD.reduce(valid, axes, dtype=np.int64, keepdims=True)
    centre = _ADD.reduce(np.where(valid, wide, 0), axes, keepdims=True) / count.astype(wide.dtype)
    square = np.where(valid, np.abs(wide - centre) ** 2, 0)
    total = _ADD.reduce(square, axes, keepdims=keep)
    divisor = np.maximum(count - ddof, 0)
    divisor = divisor if keep else np.asarray(divisor).reshape(np.shape(total))
    return np.asarray(np.asarray(total) / divisor.astype(np.asarray(total).dtype)).astype(chosen, copy=False)


@define("cupy.nanvar")
def nanvar(
    a: Array,
    axis: object = None,
    dtype: object = None,
    out: Array | None = None,
    ddof: object = 0,
    keepdims: bool = False,
) -> Array:
    if a.dtype.kind in "biu":
        return var(a, axis, dtype, out, ddof, keepdims)
    return reduce_to(a, axis, out, keepdims, lambda axes, keep: _nan_spread(a, axes, dtype, ddof, keep))


@define("cupy.nanstd")
def nanstd(
    a: Array,
    axis: object = None,
    dtype: object = None,
    out: Array | None = None,
    ddof: object = 0,
    keepdims: bool = False,
) -> Array:
    if a.dtype.kind in "biu":
        return std(a, axis, dtype, out, ddof, keepdims)
    return reduce_to(a, axis, out, keepdims, lambda axes, keep: np.sqrt(_nan_spread(a, axes, dtype, ddof, keep)))


@define("cupy.median")
def median(
    a: Array, axis: object = None, out: Array | None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    return reduce_to(
        a, axis, out, keepdims, lambda axes, keep: np.median(a, axis=axes, overwrite_input=False, keepdims=keep)
    )


@define("cupy.nanmedian")
def nanmedian(
    a: Array, axis: Any = None, out: Array | None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    if a.dtype.kind not in "fc":
        return median(a, axis, out, overwrite_input, keepdims)

    def compute(axes: Any, keep: bool) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a GPU says nothing of slices without numbers
            return np.nanmedian(a, axis=axes, keepdims=keep)

    return reduce_to(a, axis, out, keepdims, compute)


#: The ways of interpolation that CuPy has.
Method: TypeAlias = Literal["lower", "higher", "midpoint", "nearest", "linear"]
_METHODS_MISSING = frozenset(
    {
        "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen",
        "weibull", "median_unbiased", "normal_unbiased",
    }
)  # fmt: skip


def _quantile(
    a: Array, q: ArrayLike, axis: Any, out: Array | None, overwrite_input: bool, method: Method, keepdims: bool
) -> Array:
    dtype = np.result_type(a, np.asarray(q) if isinstance(q, (list, tuple)) else q)
    q = np.asarray(q)
    if q.ndim > 1:
        raise ValueError(f"Expected q to have a dimension of 1.\nActual: {q.ndim} != 1")
    if method in _METHODS_MISSING:
        raise ValueError(f"'{method}' method is not yet supported. Please use any other method.")
    if method not in ("lower", "higher", "midpoint", "nearest", "linear"):
        raise ValueError(
            f"Unexpected interpolation method.\nActual: '{method}' not in ('linear', 'lower', 'higher', 'midpoint')"
        )
    result = np.quantile(a, q, axis=axis, overwrite_input=overwrite_input, method=method, keepdims=keepdims)
    result = np.asarray(result, a.dtype if method in ("lower", "higher", "nearest") else dtype, order="C")
    if out is None:
        return result
    if out.shape != result.shape:
        raise ValueError("Out shape is mismatched")
    cast_into(out, result)
    return out


def _renamed(method: Method, interpolation: Method | None, name: str) -> Method:
    if interpolation is None:
        return method
    warnings.warn(
        f"the `interpolation=` argument to {name} was renamed to `method=`, which has additional options.",
        DeprecationWarning,
        stacklevel=4,
    )
    if method != "linear":
        raise TypeError("You shall not pass both `method` and `interpolation`!")
    return interpolation


@define("cupy.quantile")
def quantile(
    a: Array,
    q: ArrayLike,
    axis: object = None,
    out: Array | None = None,
    overwrite_input: bool = False,
    method: Method = "linear",
    keepdims: bool = False,
    *,
    interpolation: Method | None = None,
) -> Array:
    method = _renamed(method, interpolation, "quantile")
    values = np.asarray(q)
    if not ((values >= 0).any() and (values <= 1).any()) or (values < 0).any() or (values > 1).any():
        raise ValueError("Quantiles must be in the range [0, 1]")
    return _quantile(a, q, axis, out, overwrite_input, method, keepdims)


@define("cupy.percentile")
def percentile(
    a: Array,
    q: Any,
    axis: object = None,
    out: Array | None = None,
    overwrite_input: bool = False,
    method: Method = "linear",
    keepdims: bool = False,
    *,
    interpolation: Method | None = None,
) -> Array:
    method = _renamed(method, interpolation, "percentile")
    q = np.asarray(q) if isinstance(q, (tuple, list)) else q
    fraction = q / 100
    if (np.asarray(fraction) < 0).any() or (np.asarray(fraction) > 1).any():
        raise ValueError("Percentiles must be in the range [0, 100]")
    return _quantile(a, fraction, axis, out, overwrite_input, method, keepdims)


@define("cupy.corrcoef")
def corrcoef(
    a: Array, y: Any = None, rowvar: bool = True, bias: object = None, ddof: object = None, *, dtype: Any = None
) -> Array:
    if bias is not None or ddof is not None:
        warnings.warn("bias and ddof have no effect and are deprecated", DeprecationWarning, stacklevel=2)
    made: Array = np.corrcoef(a, y, rowvar, dtype=dtype)
    return made
