"""Rules of differences, integrals, quantiles, covariances and histograms."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_backend.opstream.proof import reductions, windows
from gpu_backend.opstream.proof.arguments import BOOL, COMPLEX128, FLOAT64, INT64, UINT8, as_axis, as_index
from gpu_backend.opstream.proof.joining import concatenate
from gpu_backend.opstream.proof.outcome import CannotProve, refusal
from gpu_backend.opstream.proof.promotion import promote, result_type
from gpu_backend.opstream.proof.reduction import reduced_shape
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.shadow import Shadow, array, like, new, ufunc


@rule("cupy.diff")
def diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = None, append: Any = None) -> Shadow:
    """As CuPy."""
    times = as_index(n)
    if times == 0:
        return array(a)
    if times < 0:
        raise refusal(ValueError, f"order must be non-negative but got {n!r}")
    given = array(a)
    place = as_axis(axis, given.ndim)
    parts = [_edge(one, given, place) if one is not a else given for one in (prepend, a, append) if one is not None]
    if len(parts) > 1:
        given = concatenate(parts, place)
    name = "not_equal" if given.dtype == BOOL else "subtract"
    for _ in range(times):
        later, earlier = _apart(given, place)
        given = ufunc(name, later, earlier)
    return given


def _edge(one: Any, given: Shadow, place: int) -> Shadow:
    edge = array(one)
    if edge.ndim:
        return edge
    shape = (*given.shape[:place], 1, *given.shape[place + 1 :])
    return edge.window(windows.broadcast_to(edge.layout, shape))


def _apart(a: Shadow, place: int) -> tuple[Shadow, Shadow]:
    lead = (slice(None),) * place
    return a[(*lead, slice(1, None))], a[(*lead, slice(None, -1))]


@rule("cupy.ediff1d")
def ediff1d(arr: Any, to_end: Any = None, to_begin: Any = None) -> Shadow:
    """As CuPy, without ends."""
    if to_end is not None or to_begin is not None:
        raise CannotProve("ends")
    return ufunc("subtract", *_apart(array(arr).ravel(), 0))


@rule("cupy.trapezoid")
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Shadow:
    """As CuPy."""
    given = array(y)
    place = as_index(axis)
    if not -given.ndim <= place < given.ndim:
        raise CannotProve("an axis that is not there")
    place %= given.ndim
    steps: Any = dx
    if x is not None:
        steps = diff(x, axis=-1 if array(x).ndim == 1 else axis)
        if array(x).ndim == 1:
            steps = steps.reshape((1,) * place + (steps.size,) + (1,) * (given.ndim - place - 1))
    elif type(dx) not in (int, float):
        raise CannotProve("steps of another kind")
    heights = ufunc("true_divide", ufunc("multiply", steps, ufunc("add", *_apart(given, place))), 2.0)
    return reductions.sum_(heights, axis)


@rule("cupy.gradient")
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Shadow | list[Shadow]:
    """As CuPy, for steps of equal length."""
    given = array(f)
    if not all(type(step) in (int, float) and step for step in varargs) or edge_order not in (1, 2):
        raise CannotProve("steps that are arrays")
    if given.dtype == BOOL or (given.dtype.kind == "c" and given.dtype.char != "D" and varargs):
        raise CannotProve("bools")
    places = list(range(given.ndim)) if axis is None else [as_axis(axis, given.ndim)] if type(axis) is int else None
    if places is None or len(varargs) not in (0, 1, len(places)):
        raise CannotProve("several axes")
    if any(given.shape[place] < edge_order + 1 for place in places):
        words = "Shape of array too small to calculate a numerical gradient, at least"
        raise refusal(ValueError, f"{words} (edge_order + 1) elements are required.")
    if given.dtype == BOOL or (given.dtype.kind == "c" and given.dtype.char != "D" and varargs):
        raise CannotProve("bools")
    wanted = given.dtype if given.dtype.kind in "fc" else FLOAT64
    source = given if given.dtype.kind in "fc" else given.astype(FLOAT64)
    made = [Shadow(like(source.layout, wanted, "K")) for _ in places]
    return made[0] if len(made) == 1 else made


@rule("cupy.interp")
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Shadow:
    """As CuPy, for contiguous points that are real."""
    if array(xp).ndim != 1 or array(fp).ndim != 1:
        raise refusal(ValueError, "xp and fp must be 1D arrays")
    if xp.size != fp.size:
        raise refusal(ValueError, "fp and xp are not of the same length")
    if xp.size == 0:
        raise refusal(ValueError, "array of sample points is empty")
    if not array(x).layout.c_contiguous:
        raise refusal(NotImplementedError, "Non-C-contiguous x is currently not supported")
    ends = (left, right)
    if x.dtype.kind == "c" or xp.dtype.kind == "c" or period is not None or BOOL in (x.dtype, xp.dtype, fp.dtype):
        raise CannotProve("complex points")
    if not all(one is None or (type(one) in (int, float) and fp.dtype.kind in "fc") for one in ends):
        raise CannotProve("ends of another kind")
    return new(x.shape, COMPLEX128 if fp.dtype.kind == "c" else FLOAT64)


@rule("cupy.cov")
def cov(
    a: Any, y: Any = None, rowvar: Any = True, bias: Any = False, ddof: Any = None, fweights: Any = None,
    aweights: Any = None, *, dtype: Any = None,
) -> Shadow:  # fmt: skip
    """As CuPy, without weights."""
    given = array(a)
    if fweights is not None or aweights is not None or ddof not in (None, 0, 1) or dtype is not None:
        raise CannotProve("weights, or degrees of freedom")
    if given.ndim > 2:
        raise refusal(ValueError, "Input must be <= 2-d")
    if given.size == 0 or given.ndim == 0:
        raise CannotProve("an empty array")
    others = [] if y is None else [array(y)]
    if any(one.ndim > 2 for one in others):
        raise refusal(ValueError, "y must be <= 2-d")
    rows = 0
    for one in [given, *others]:
        matrix = one if one.ndim == 2 else one.reshape(1, -1)
        turned = matrix.T if not rowvar and (one.ndim != 1 if one is given else matrix.shape[0] != 1) else matrix
        if others and turned.shape[1] != (given.size if given.ndim == 1 else given.shape[1 if rowvar else 0]):
            raise CannotProve("samples of two lengths")
        rows += turned.shape[0]
        samples = turned.shape[1]
    if samples - ((0 if bias else 1) if ddof is None else ddof) <= 0:
        raise CannotProve("a RuntimeWarning")
    made = promote(given.dtype, *[one.dtype for one in others], FLOAT64)
    return new(tuple([extent for extent in (rows, rows) if extent != 1]), made)


@rule("cupy.corrcoef")
def corrcoef(
    a: Any, y: Any = None, rowvar: Any = True, bias: Any = None, ddof: Any = None, *, dtype: Any = None
) -> Shadow:
    """As CuPy."""
    if bias is not None or ddof is not None:
        raise CannotProve("a DeprecationWarning")
    return cov(a, y, rowvar, dtype=dtype)


def _quantiles(q: Any, highest: int) -> tuple[int, ...]:
    """Return the shape of host quantiles that lie where they must."""
    if isinstance(q, Shadow) or not isinstance(q, (int, float, list, tuple, np.ndarray)):
        raise CannotProve("quantiles that are arrays")
    values = np.asarray(q)
    if values.dtype.kind not in "if" or values.ndim > 1 or not values.size:
        raise CannotProve("quantiles of another kind")
    if not ((values >= 0) & (values <= highest)).all():
        raise CannotProve("quantiles out of range")
    return values.shape


def _quantile_rule(a: Any, q: Any, axis: Any, out: Any, method: Any, keepdims: Any, highest: int) -> Shadow:
    given = array(a)
    shape = _quantiles(q, highest)
    if out is not None or given.dtype.kind not in "iuf" or given.size == 0 or given.ndim == 0:
        raise CannotProve("an output, or an array of another kind")
    if method not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise CannotProve(f"method {method!r}")
    axes = tuple(range(given.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    places = tuple(sorted(as_index(one) % given.ndim for one in axes))
    if shape == (1,) and keepdims:
        raise CannotProve("one quantile in a list, whose axis CuPy leaves out")
    if len(set(places)) != len(places) or not all(-given.ndim <= one < given.ndim for one in axes):
        raise CannotProve("axes that are not there")
    value = q if isinstance(q, (int, float)) else np.asarray(q)
    value = value / 100 if highest == 100 else value
    made = result_type(given.layout, value) if method in ("linear", "midpoint") else given.dtype
    return new((*shape, *reduced_shape(given.shape, places, bool(keepdims))), made)


@rule("cupy.percentile")
def percentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, method: Any = "linear",
    keepdims: Any = False,
) -> Shadow:  # fmt: skip
    """As CuPy, for host quantiles."""
    return _quantile_rule(a, q, axis, out, method, keepdims, 100)


@rule("cupy.quantile")
def quantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, method: Any = "linear",
    keepdims: Any = False,
) -> Shadow:  # fmt: skip
    """As CuPy, for host quantiles."""
    return _quantile_rule(a, q, axis, out, method, keepdims, 1)


@rule("cupy.histogram")
def histogram(
    x: Any, bins: Any = 10, range: Any = None, density: Any = False, weights: Any = None
) -> tuple[Shadow, Shadow]:
    """As CuPy, for a given number of bins in a given range."""
    given = array(x)
    if weights is not None or density or given.dtype.kind not in "iuf":
        raise CannotProve("weights or density")
    if isinstance(bins, Shadow) or not isinstance(bins, int) or bins < 1:
        raise CannotProve("bins that are looked at")
    if not isinstance(range, tuple) or len(range) != 2 or not all(type(one) in (int, float) for one in range):
        raise CannotProve("a range that is looked at")
    if not np.isfinite(range).all() or range[0] >= range[1]:
        raise CannotProve("a range that CuPy looks at")
    edges = result_type(*range, given.layout)
    if edges.kind in "iu":
        edges = result_type(edges, float)
    return new((bins,), INT64), new((bins + 1,), edges)


@rule("cupy.packbits")
def packbits(a: Any, axis: Any = None, bitorder: Any = "big") -> Shadow:
    """As CuPy."""
    if array(a).dtype.kind not in "biu":
        raise refusal(TypeError, "Expected an input array of integer or boolean data type")
    if axis is not None or bitorder not in ("big", "little"):
        raise CannotProve("an axis")
    return new(((a.size + 7) // 8,), UINT8)


@rule("cupy.unpackbits")
def unpackbits(a: Any, axis: Any = None, bitorder: Any = "big") -> Shadow:
    """As CuPy."""
    if array(a).dtype != UINT8:
        raise refusal(TypeError, "Expected an input array of unsigned byte data type")
    if axis is not None or bitorder not in ("big", "little"):
        raise CannotProve("an axis")
    return new((a.size * 8,), UINT8)


@rule("cupy.piecewise")
def piecewise(x: Any, condlist: Any, funclist: Any) -> Shadow:
    """As CuPy, for conditions of the array's shape and numbers."""
    given = array(x)
    if not isinstance(condlist, list) or not isinstance(funclist, list):
        raise CannotProve("conditions in other than lists")
    if len(funclist) not in (len(condlist), len(condlist) + 1) or given.dtype.kind != "f":
        raise CannotProve("numbers of another kind")
    if any(array(one).dtype != BOOL or one.shape != given.shape for one in condlist) or given.ndim == 0:
        raise CannotProve("conditions of another shape")
    if not all(type(one) is float and abs(one) < 1e4 for one in funclist):
        raise CannotProve("functions")
    return new(given.shape, given.dtype)


@rule("cupy.unwrap")
def unwrap(p: Any, discont: Any = None, axis: Any = -1, *, period: Any = 2 * np.pi) -> Shadow:
    """As CuPy, of floats."""
    given = array(p)
    if given.dtype.kind != "f" or type(period) is not float or not (discont is None or type(discont) is float):
        raise CannotProve("other than floats")
    as_axis(axis, given.ndim)
    if given.size == 0 or given.shape[as_axis(axis, given.ndim)] < 2:
        raise CannotProve("too few elements")
    return Shadow(like(given.layout, result_type(given.dtype, period), "K"))
