"""Rules of differences, integrals, quantiles, covariances and histograms."""

from __future__ import annotations

import numpy as np

from gpu_backend.opstream.proof import reductions, windows
from gpu_backend.opstream.proof.arguments import BOOL, COMPLEX128, FLOAT64, INT64, UINT8, as_axis, as_index
from gpu_backend.opstream.proof.joining import concatenate
from gpu_backend.opstream.proof.outcome import CannotProve, refusal
from gpu_backend.opstream.proof.promotion import promote, result_type
from gpu_backend.opstream.proof.reduction import reduced_shape
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.shadow import Array, array, like, new, ufunc
from gpu_backend.opstream.proof.values import is_real, is_tuple

#: More bins than this may be more than there is memory for, which CuPy says at once.
_MOST_BINS = 1 << 24


@rule("cupy.diff")
def diff(a: object, n: object = 1, axis: object = -1, prepend: object = None, append: object = None) -> Array:
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


def _edge(one: object, given: Array, place: int) -> Array:
    edge = array(one)
    if edge.ndim:
        return edge
    shape = (*given.shape[:place], 1, *given.shape[place + 1 :])
    return edge.window(windows.broadcast_to(edge.layout, shape))


def _apart(a: Array, place: int) -> tuple[Array, Array]:
    lead = (slice(None),) * place
    return a[(*lead, slice(1, None))], a[(*lead, slice(None, -1))]


@rule("cupy.ediff1d")
def ediff1d(arr: Array, to_end: object = None, to_begin: object = None) -> Array:
    """As CuPy, without ends."""
    if to_end is not None or to_begin is not None:
        raise CannotProve("ends")
    return ufunc("subtract", *_apart(arr.ravel(), 0))


@rule("cupy.trapezoid")
def trapezoid(y: Array, x: object = None, dx: object = 1.0, axis: object = -1) -> Array:
    """As CuPy."""
    place = as_index(axis)
    if not -y.ndim <= place < y.ndim:
        raise CannotProve("an axis that is not there")
    place %= y.ndim
    steps: object = dx
    if x is not None:
        steps = diff(x, axis=-1 if array(x).ndim == 1 else axis)
        if array(x).ndim == 1:
            steps = steps.reshape((1,) * place + (steps.size,) + (1,) * (y.ndim - place - 1))
    elif type(dx) not in (int, float):
        raise CannotProve("steps of another kind")
    heights = ufunc("true_divide", ufunc("multiply", steps, ufunc("add", *_apart(y, place))), 2.0)
    return reductions.sum_(heights, axis)


@rule("cupy.gradient")
def gradient(f: Array, *varargs: object, axis: object = None, edge_order: object = 1) -> Array | list[Array]:
    """As CuPy, for steps of equal length."""
    if not all(type(step) in (int, float) and step for step in varargs) or edge_order not in (1, 2):
        raise CannotProve("steps that are arrays")
    if f.dtype == BOOL or (f.dtype.kind == "c" and f.dtype.char != "D" and varargs):
        raise CannotProve("bools")
    places = list(range(f.ndim)) if axis is None else [as_axis(axis, f.ndim)] if type(axis) is int else None
    if places is None or len(varargs) not in (0, 1, len(places)):
        raise CannotProve("several axes")
    if any(f.shape[place] < edge_order + 1 for place in places):
        words = "Shape of array too small to calculate a numerical gradient, at least"
        raise refusal(ValueError, f"{words} (edge_order + 1) elements are required.")
    if f.dtype == BOOL or (f.dtype.kind == "c" and f.dtype.char != "D" and varargs):
        raise CannotProve("bools")
    wanted = f.dtype if f.dtype.kind in "fc" else FLOAT64
    source = f if f.dtype.kind in "fc" else f.astype(FLOAT64)
    made = [Array(like(source.layout, wanted, "K")) for _ in places]
    return made[0] if len(made) == 1 else made


@rule("cupy.interp")
def interp(x: Array, xp: Array, fp: Array, left: object = None, right: object = None, period: object = None) -> Array:
    """As CuPy, for contiguous points that are real."""
    if xp.ndim != 1 or fp.ndim != 1:
        raise refusal(ValueError, "xp and fp must be 1D arrays")
    if xp.size != fp.size:
        raise refusal(ValueError, "fp and xp are not of the same length")
    if xp.size == 0:
        raise refusal(ValueError, "array of sample points is empty")
    if not x.layout.c_contiguous:
        raise refusal(NotImplementedError, "Non-C-contiguous x is currently not supported")
    ends = (left, right)
    if x.dtype.kind == "c" or xp.dtype.kind == "c" or period is not None or BOOL in (x.dtype, xp.dtype, fp.dtype):
        raise CannotProve("complex points")
    if not all(one is None or (type(one) in (int, float) and fp.dtype.kind in "fc") for one in ends):
        raise CannotProve("ends of another kind")
    return new(x.shape, COMPLEX128 if fp.dtype.kind == "c" else FLOAT64)


@rule("cupy.cov")
def cov(
    a: Array, y: object = None, rowvar: object = True, bias: object = False, ddof: object = None,
    fweights: object = None, aweights: object = None, *, dtype: object = None,
) -> Array:  # fmt: skip
    """As CuPy, without weights."""
    if fweights is not None or aweights is not None or ddof not in (None, 0, 1) or dtype is not None:
        raise CannotProve("weights, or degrees of freedom")
    if a.ndim > 2:
        raise refusal(ValueError, "Input must be <= 2-d")
    if a.size == 0 or a.ndim == 0:
        raise CannotProve("an empty array")
    others = [] if y is None else [array(y)]
    if any(one.ndim > 2 for one in others):
        raise refusal(ValueError, "y must be <= 2-d")
    rows = 0
    for one in [a, *others]:
        matrix = one if one.ndim == 2 else one.reshape(1, -1)
        turned = matrix.T if not rowvar and (one.ndim != 1 if one is a else matrix.shape[0] != 1) else matrix
        if others and turned.shape[1] != (a.size if a.ndim == 1 else a.shape[1 if rowvar else 0]):
            raise CannotProve("samples of two lengths")
        rows += turned.shape[0]
        samples = turned.shape[1]
    if samples - ((0 if bias else 1) if ddof is None else ddof) <= 0:
        raise CannotProve("a RuntimeWarning")
    made = promote(a.dtype, *[one.dtype for one in others], FLOAT64)
    return new(tuple([extent for extent in (rows, rows) if extent != 1]), made)


@rule("cupy.corrcoef")
def corrcoef(
    a: Array, y: object = None, rowvar: object = True, bias: object = None, ddof: object = None, *, dtype: object = None
) -> Array:
    """As CuPy."""
    if bias is not None or ddof is not None:
        raise CannotProve("a DeprecationWarning")
    return cov(a, y, rowvar, dtype=dtype)


def _quantiles(q: object, highest: int) -> tuple[int, ...]:
    """Return the shape of host quantiles that lie where they must."""
    if isinstance(q, Array) or not isinstance(q, (int, float, list, tuple, np.ndarray)):
        raise CannotProve("quantiles that are arrays")
    values = np.asarray(q)
    if values.dtype.kind not in "if" or values.ndim > 1 or not values.size:
        raise CannotProve("quantiles of another kind")
    if not ((values >= 0) & (values <= highest)).all():
        raise CannotProve("quantiles out of range")
    return values.shape


def _quantile_rule(
    a: object, q: object, axis: object, out: object, method: object, keepdims: object, highest: int
) -> Array:
    given = array(a)
    shape = _quantiles(q, highest)
    if out is not None or given.dtype.kind not in "iuf" or given.size == 0 or given.ndim == 0:
        raise CannotProve("an output, or an array of another kind")
    if method not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise CannotProve(f"method {method!r}")
    named = tuple(range(given.ndim)) if axis is None else axis if is_tuple(axis) else (axis,)
    axes = [as_index(one) for one in named]
    places = tuple(sorted(one % given.ndim for one in axes))
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
    a: object, q: object, axis: object = None, out: Array | None = None, overwrite_input: object = False,
    method: object = "linear", keepdims: object = False,
) -> Array:  # fmt: skip
    """As CuPy, for host quantiles."""
    return _quantile_rule(a, q, axis, out, method, keepdims, 100)


@rule("cupy.quantile")
def quantile(
    a: object, q: object, axis: object = None, out: Array | None = None, overwrite_input: object = False,
    method: object = "linear", keepdims: object = False,
) -> Array:  # fmt: skip
    """As CuPy, for host quantiles."""
    return _quantile_rule(a, q, axis, out, method, keepdims, 1)


@rule("cupy.histogram")
def histogram(
    x: Array, bins: object = 10, range: object = None, density: object = False, weights: object = None
) -> tuple[Array, Array]:
    """As CuPy, for a given number of bins in a given range."""
    if weights is not None or density or x.dtype.kind not in "iuf":
        raise CannotProve("weights or density")
    if isinstance(bins, Array) or not isinstance(bins, int) or bins < 1:
        raise CannotProve("bins that are looked at")
    ends = [one for one in range if is_real(one)] if is_tuple(range) else []
    if not is_tuple(range) or len(range) != 2 or len(ends) != 2:
        raise CannotProve("a range that is looked at")
    if not np.isfinite(ends).all() or ends[0] >= ends[1]:
        raise CannotProve("a range that CuPy looks at")
    edges = result_type(*ends, x.layout)
    if edges.kind in "iu":
        edges = result_type(edges, FLOAT64)
    return new((bins,), INT64), new((bins + 1,), edges)


@rule("cupy.bincount")
def bincount(x: Array, weights: object = None, minlength: object = None) -> Array:
    """As CuPy, where more bins are asked for than any value of the type needs, as for the grey values of a picture."""
    if x.ndim != 1 or x.dtype.kind != "u":
        raise CannotProve("whether it fails depends on values")
    if type(minlength) is not int or not np.iinfo(x.dtype).max < minlength <= _MOST_BINS:
        raise CannotProve("how many bins there are depends on values")
    if weights is not None and (
        not isinstance(weights, Array) or weights.shape != x.shape or weights.dtype.kind not in "biuf"
    ):
        raise CannotProve("weights of another kind")
    return new((minlength,), INT64 if weights is None or not x.size else FLOAT64)


@rule("cupy.packbits")
def packbits(a: Array, axis: object = None, bitorder: object = "big") -> Array:
    """As CuPy."""
    if a.dtype.kind not in "biu":
        raise refusal(TypeError, "Expected an input array of integer or boolean data type")
    if axis is not None or bitorder not in ("big", "little"):
        raise CannotProve("an axis")
    return new(((a.size + 7) // 8,), UINT8)


@rule("cupy.unpackbits")
def unpackbits(a: Array, axis: object = None, bitorder: object = "big") -> Array:
    """As CuPy."""
    if a.dtype != UINT8:
        raise refusal(TypeError, "Expected an input array of unsigned byte data type")
    if axis is not None or bitorder not in ("big", "little"):
        raise CannotProve("an axis")
    return new((a.size * 8,), UINT8)


@rule("cupy.piecewise")
def piecewise(x: Array, condlist: object, funclist: object) -> Array:
    """As CuPy, for conditions of the array's shape and numbers."""
    if not isinstance(condlist, list) or not isinstance(funclist, list):
        raise CannotProve("conditions in other than lists")
    if len(funclist) not in (len(condlist), len(condlist) + 1) or x.dtype.kind != "f":
        raise CannotProve("numbers of another kind")
    if any(array(one).dtype != BOOL or one.shape != x.shape for one in condlist) or x.ndim == 0:
        raise CannotProve("conditions of another shape")
    if not all(type(one) is float and abs(one) < 1e4 for one in funclist):
        raise CannotProve("functions")
    return new(x.shape, x.dtype)


@rule("cupy.unwrap")
def unwrap(p: Array, discont: object = None, axis: object = -1, *, period: object = 2 * np.pi) -> Array:
    """As CuPy, of floats."""
    if p.dtype.kind != "f" or type(period) is not float or not (discont is None or type(discont) is float):
        raise CannotProve("other than floats")
    as_axis(axis, p.ndim)
    if p.size == 0 or p.shape[as_axis(axis, p.ndim)] < 2:
        raise CannotProve("too few elements")
    return Array(like(p.layout, result_type(p.dtype, period), "K"))
