"""Rules of the reductions and scans: sum, max, mean, var, cumsum, norms of many kinds, ..."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpu_backend.opstream.layout import DType
from gpu_backend.opstream.proof import reduction as kinds
from gpu_backend.opstream.proof.arguments import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT64,
    UINT64,
    as_axes,
    as_axis,
    as_dtype,
    as_index,
)
from gpu_backend.opstream.proof.outcome import CannotProve, refusal
from gpu_backend.opstream.proof.reduction import Reduction, reduce, reduced_shape
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.shadow import Array, array, into, new, ufunc
from gpu_backend.opstream.proof.values import is_items, is_tuple
from gpu_backend.opstream.proof.windows import rollaxis


@rule("cupy.sum", "cupy.ndarray.sum")
def sum_(
    a: Array, axis: object = None, dtype: object = None, out: Array | None = None, keepdims: object = False
) -> Array:
    """As CuPy."""
    return reduce(kinds.SUM if dtype is None else kinds.SUM_AS, a, axis, dtype, out, keepdims)


@rule("cupy.prod", "cupy.ndarray.prod")
def prod(
    a: Array, axis: object = None, dtype: object = None, out: Array | None = None, keepdims: object = False
) -> Array:
    """As CuPy."""
    return reduce(kinds.PROD if dtype is None else kinds.PROD_AS, a, axis, dtype, out, keepdims)


@rule("cupy.nansum")
def nansum(
    a: Array, axis: object = None, dtype: object = None, out: Array | None = None, keepdims: object = False
) -> Array:
    """As CuPy."""
    kind = kinds.NANSUM if dtype is None else kinds.NANSUM_AS
    return reduce(kinds.NANSUM_COMPLEX if a.dtype.kind == "c" else kind, a, axis, dtype, out, keepdims)


@rule("cupy.nanprod")
def nanprod(
    a: Array, axis: object = None, dtype: object = None, out: Array | None = None, keepdims: object = False
) -> Array:
    """As CuPy."""
    kind = kinds.NANPROD if dtype is None else kinds.NANPROD_AS
    return reduce(kinds.NANPROD_COMPLEX if a.dtype.kind == "c" else kind, a, axis, dtype, out, keepdims)


@rule("cupy.amax", "cupy.ndarray.max")
def amax(a: Array, axis: object = None, out: Array | None = None, keepdims: object = False) -> Array:
    """As CuPy."""
    return reduce(kinds.MAX, a, axis, None, out, keepdims)


@rule("cupy.amin", "cupy.ndarray.min")
def amin(a: Array, axis: object = None, out: Array | None = None, keepdims: object = False) -> Array:
    """As CuPy."""
    if out is not None:
        raise CannotProve("min into an array")
    return reduce(kinds.MIN, a, axis, None, None, keepdims)


def _without_nan(kind: Reduction) -> Callable[..., Array]:
    def extreme(a: Array, axis: object = None, out: Array | None = None, keepdims: object = False) -> Array:
        if a.dtype.kind not in "biu":
            raise CannotProve("a warning about slices of NaN")
        return reduce(kind, a, axis, None, out, keepdims)

    return extreme


rule("cupy.nanmax")(_without_nan(kinds.NANMAX))
rule("cupy.nanmin")(_without_nan(kinds.NANMIN))


@rule("cupy.ptp", "cupy.ndarray.ptp")
def ptp(a: Array, axis: object = None, out: Array | None = None, keepdims: object = False) -> Array:
    """As CuPy."""
    if out is not None:
        raise CannotProve("ptp into an array")
    highest = reduce(kinds.MAX, a, axis, None, None, keepdims)
    ufunc("subtract", highest, highest)
    return highest


def _without_bools(a: Array) -> Array:
    """Return what CuPy searches in place of bools in F order, for the largest."""
    return new(a.shape, INT8, "F") if a.dtype == BOOL and a.layout.f_contiguous else a


def _find(kind: Reduction, a: Array, axis: object, dtype: object, out: Array | None, keepdims: object) -> Array:
    searched = _without_bools(a) if kind is kinds.ARGMAX else a
    return reduce(kind, searched, axis, dtype, out, keepdims)


def _finder(kind: Reduction, nankind: Reduction) -> tuple[Callable[..., Array], Callable[..., Array]]:
    def find(
        a: Array, axis: object = None, dtype: object = None, out: Array | None = None, keepdims: object = False
    ) -> Array:
        return _find(kind, a, axis, dtype, out, keepdims)

    def nanfind(
        a: Array, axis: object = None, dtype: object = None, out: Array | None = None, keepdims: object = False
    ) -> Array:
        if a.dtype.kind in "biu":
            return find(a, axis, dtype, out, keepdims)
        return reduce(nankind, a, axis, dtype, out, keepdims)

    return find, nanfind


_argmax, _nanargmax = _finder(kinds.ARGMAX, kinds.NANARGMAX)
_argmin, _nanargmin = _finder(kinds.ARGMIN, kinds.NANARGMIN)
rule("cupy.argmax")(_argmax)
rule("cupy.argmin")(_argmin)
rule("cupy.nanargmax")(_nanargmax)
rule("cupy.nanargmin")(_nanargmin)


@rule("cupy.ndarray.argmax")
def argmax(
    a: Array, axis: object = None, out: Array | None = None, dtype: object = None, keepdims: object = False
) -> Array:
    """As CuPy: the method's parameters stand in another order than the function's."""
    return _find(kinds.ARGMAX, a, axis, dtype, out, keepdims)


@rule("cupy.ndarray.argmin")
def argmin(
    a: Array, axis: object = None, out: Array | None = None, dtype: object = None, keepdims: object = False
) -> Array:
    """As CuPy: the method's parameters stand in another order than the function's."""
    return _find(kinds.ARGMIN, a, axis, dtype, out, keepdims)


@rule("cupy.all", "cupy.ndarray.all")
def all_(a: Array, axis: object = None, out: Array | None = None, keepdims: object = False) -> Array:
    """As CuPy."""
    return reduce(kinds.ALL, a, axis, None, out, keepdims)


@rule("cupy.any", "cupy.ndarray.any")
def any_(a: Array, axis: object = None, out: Array | None = None, keepdims: object = False) -> Array:
    """As CuPy."""
    return reduce(kinds.ANY, a, axis, None, out, keepdims)


@rule("cupy.count_nonzero")
def count_nonzero(a: Array, axis: object = None) -> Array:
    """As CuPy."""
    return reduce(kinds.COUNT_NONZERO, a, axis)


@rule("cupy.mean", "cupy.ndarray.mean")
def mean(
    a: Array, axis: object = None, dtype: object = None, out: Array | None = None, keepdims: object = False
) -> Array:
    """As CuPy: halves are summed as singles, integers as doubles."""
    summed, wanted = _mean_dtypes(a.dtype, dtype)
    cub = summed in (None, a.dtype) and a.size != 0
    kind = kinds.MEAN._replace(cub="CUPY_CUB_SUM") if cub else kinds.MEAN
    if a.size == 0:
        kind = kinds.MEAN_EMPTY
    made = reduce(kind, a, axis, summed, out, keepdims)
    return made.astype(wanted) if wanted is not None and out is None else made


def _mean_dtypes(source: DType, dtype: object) -> tuple[DType | None, DType | None]:
    """Return the dtypes of the sum and of the result, None for what the table says."""
    if dtype is None:
        if source.kind in "iub":
            return FLOAT64, FLOAT64
        return (FLOAT32, source) if source.char == "e" else (None, None)
    wanted = as_dtype(dtype)
    return (FLOAT64 if wanted.kind in "iub" else wanted), wanted


@rule("cupy.average")
def average(
    a: Array, axis: object = None, weights: object = None, returned: object = False, *, keepdims: object = False
) -> Array | tuple[Array, ...]:
    """As CuPy, without weights; with them it looks whether they add up to zero."""
    if weights is not None or returned:
        raise CannotProve("weights are looked at")
    if a.size == 0:
        raise CannotProve("an average of nothing")
    return mean(a, axis=axis, keepdims=keepdims)


@rule("cupy.nanmean")
def nanmean(
    a: Array, axis: object = None, dtype: object = None, out: Array | None = None, keepdims: object = False
) -> Array:
    """As CuPy."""
    if a.dtype.kind in "biu":
        return mean(a, axis, dtype, out, keepdims)
    return reduce(kinds.NANMEAN, a, axis, dtype, out, keepdims)


@rule("cupy.var", "cupy.ndarray.var")
def var(
    a: Array,
    axis: object = None,
    dtype: object = None,
    out: Array | None = None,
    ddof: object = 0,
    keepdims: object = False,
) -> Array:
    """As CuPy: the result is of half, single or double precision whatever dtype is asked for."""
    axes = tuple(range(a.ndim)) if axis is None else axis if is_tuple(axis) else (axis,)
    if any(isinstance(one, int) and not -a.ndim <= one < a.ndim for one in axes):
        raise refusal(IndexError, "tuple index out of range")
    if not isinstance(ddof, (int, float)) or out is not None:
        raise CannotProve("var with an output or another ddof")
    places = as_axes(axes, a.ndim)
    wanted = _var_dtype(a.dtype, dtype)
    return new(reduced_shape(a.shape, places, bool(keepdims)), wanted)


def _var_dtype(source: DType, dtype: object) -> DType:
    if dtype is not None:
        wanted = as_dtype(dtype)
    elif source.kind in "biu":
        return FLOAT64
    else:
        wanted = np.dtype(source.char.lower()) if source.kind == "c" else source
    return wanted if wanted.char in "ef" else FLOAT64


@rule("cupy.std", "cupy.ndarray.std")
def std(
    a: Array,
    axis: object = None,
    dtype: object = None,
    out: Array | None = None,
    ddof: object = 0,
    keepdims: object = False,
) -> Array:
    """As CuPy."""
    made = var(a, axis, dtype, None, ddof, keepdims)
    return into(out, ufunc("sqrt", made, dtype=dtype), "same_kind")


@rule("cupy.nanvar")
def nanvar(
    a: Array,
    axis: object = None,
    dtype: object = None,
    out: Array | None = None,
    ddof: object = 0,
    keepdims: object = False,
) -> Array:
    """As CuPy."""
    if a.dtype.kind in "biu":
        return var(a, axis, dtype, out, ddof, keepdims)
    if dtype is not None or out is not None:
        raise CannotProve("nanvar with a dtype or an output")
    shape = reduced_shape(a.shape, as_axes(axis, a.ndim), bool(keepdims))
    return new(shape, np.dtype(a.dtype.char.lower()))


@rule("cupy.nanstd")
def nanstd(
    a: Array,
    axis: object = None,
    dtype: object = None,
    out: Array | None = None,
    ddof: object = 0,
    keepdims: object = False,
) -> Array:
    """As CuPy."""
    if a.dtype.kind in "biu":
        return std(a, axis, dtype, out, ddof, keepdims)
    return into(out, ufunc("sqrt", nanvar(a, axis, dtype, None, ddof, keepdims), dtype=dtype), "same_kind")


def _scan(a: object, axis: object, dtype: object, out: object) -> Array:
    """Scan along an axis. It is scanned as rows, so another than the last leaves its strides permuted."""
    source = array(a)
    if out is not None:
        raise CannotProve("a scan into an array")
    wanted = _scan_dtype(source.dtype) if dtype is None else as_dtype(dtype)
    result = source.astype(wanted, order="C")
    if axis is None:
        return Array(result.ravel().layout)
    place = as_axis(axis, source.ndim)
    if source.shape[place] == 0:
        return new(source.shape, wanted)
    rolled = result.window(rollaxis(result.layout, place, source.ndim))
    if source.size == 0:
        raise CannotProve("a scan of nothing")
    rows = rolled.reshape(-1, source.shape[place])
    back = rows.reshape(rolled.shape)
    return Array(rollaxis(back.layout, source.ndim - 1, place)[1])


def _scan_dtype(dtype: DType) -> DType:
    return {"b": INT64, "i": INT64, "u": UINT64}.get(dtype.kind, dtype)


@rule("cupy.cumsum", "cupy.ndarray.cumsum", "cupy.cumprod", "cupy.ndarray.cumprod")
def cumsum(a: object, axis: object = None, dtype: object = None, out: Array | None = None) -> Array:
    """As CuPy."""
    return _scan(a, axis, dtype, out)


@rule("cupy.nancumsum", "cupy.nancumprod")
def nancumsum(a: object, axis: object = None, dtype: object = None, out: Array | None = None) -> Array:
    """As CuPy."""
    return _scan(a, axis, dtype, out)


@rule("cupy.cumulative_sum", "cupy.cumulative_prod")
def cumulative_sum(
    x: Array, /, *, axis: object = None, dtype: object = None, out: Array | None = None, include_initial: object = False
) -> Array:
    """As CuPy."""
    x = x.reshape(1) if x.ndim == 0 else x
    if axis is None:
        if x.ndim >= 2:
            words = "For arrays which have more than one dimension ``axis`` argument is required."
            raise refusal(ValueError, words)
        axis = 0
    place = as_axis(axis, x.ndim)
    if not include_initial:
        return _scan(x, place, dtype, out)
    if out is not None:
        raise CannotProve("a scan into an array")
    shape = (*x.shape[:place], x.shape[place] + 1, *x.shape[place + 1 :])
    return new(shape, _scan_dtype(x.dtype) if dtype is None else as_dtype(dtype))


@rule("cupy.median")
def median(
    a: Array, axis: object = None, out: Array | None = None, overwrite_input: object = False, keepdims: object = False
) -> Array:
    """As CuPy, of the last axis, of one axis, or of all."""
    if out is not None or overwrite_input or is_items(axis) or a.size == 0 or a.ndim == 0:
        raise CannotProve("median with an output or over several axes")
    place = None if axis is None else as_index(axis)
    if place is not None and not -a.ndim <= place < a.ndim:
        raise CannotProve("an axis that is not there")
    axes = as_axes(place, a.ndim)
    shape = reduced_shape(a.shape, axes, bool(keepdims))
    return new(shape, FLOAT64 if a.dtype.kind in "biu" else a.dtype)


@rule("cupy.nanmedian")
def nanmedian(
    a: Array, axis: object = None, out: Array | None = None, overwrite_input: object = False, keepdims: object = False
) -> Array:
    """As CuPy."""
    if a.dtype.kind in "biu":
        return median(a, axis, out, overwrite_input, keepdims)
    if out is not None or keepdims or a.size == 0 or a.dtype.kind == "c":
        raise CannotProve("nanmedian with an output or kept axes")
    return new(reduced_shape(a.shape, as_axes(axis, a.ndim), False), a.dtype)
