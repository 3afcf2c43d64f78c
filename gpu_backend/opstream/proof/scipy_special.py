"""Rules of ``cupyx.scipy.special`` and ``cupyx.scipy.stats``, beyond the ufuncs."""

from __future__ import annotations

from gpu_backend.opstream.proof.arguments import FLOAT16, FLOAT32, FLOAT64, as_axis
from gpu_backend.opstream.proof.outcome import CannotProve
from gpu_backend.opstream.proof.promotion import result_type
from gpu_backend.opstream.proof.reductions import amax, mean, std, sum_
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.shadow import Array, array, new, ufunc
from gpu_backend.opstream.proof.values import is_real
from gpu_backend.opstream.proof.windows import squeeze

_SPECIAL, _STATS = "cupyx.scipy.special.", "cupyx.scipy.stats."


def _numbers(x: object, kinds: str = "iuf") -> Array:
    given = array(x)
    if given.dtype.kind not in kinds or given.size == 0:
        raise CannotProve(f"{given.size} elements of {given.dtype}")
    return given


@rule(_SPECIAL + "softmax")
def softmax(x: object, axis: object = None) -> Array:
    """As CuPy."""
    given = _numbers(x)
    powers = ufunc("exp", ufunc("subtract", given, amax(given, axis, keepdims=True)))
    return ufunc("divide", powers, sum_(powers, axis, keepdims=True))


@rule(_SPECIAL + "log_softmax")
def log_softmax(x: object, axis: object = None) -> Array:
    """As CuPy."""
    given = _numbers(x)
    if given.ndim == 0:
        raise CannotProve("a single number")
    shifted = ufunc("subtract", given, amax(given, axis, keepdims=True))
    if shifted.dtype.kind in "iu":
        width = shifted.dtype.itemsize
        shifted = shifted.astype(FLOAT16 if width == 1 else FLOAT32 if width == 2 else FLOAT64)
    return ufunc("subtract", shifted, sum_(shifted, axis, keepdims=True))


@rule(_SPECIAL + "logsumexp")
def logsumexp(
    a: object, axis: object = None, b: object = None, keepdims: object = False, return_sign: object = False
) -> Array:
    """As CuPy."""
    given = _numbers(a, "biuf")
    if b is not None or return_sign or given.ndim == 0:
        raise CannotProve("weights, signs or a single number")
    if given.dtype.kind in "biu":
        given = given.astype(FLOAT64)
    highest = amax(given, axis, keepdims=True)
    powers = ufunc("exp", ufunc("subtract", given, highest))
    made = ufunc("log", sum_(powers, axis, keepdims=keepdims))
    if not keepdims:
        highest = highest.window(squeeze(highest.layout, axis))
    return ufunc("add", made, highest, out=made)


@rule(_SPECIAL + "polygamma")
def polygamma(n: object, x: object) -> Array:
    """As CuPy, of two real arrays."""
    order, given = _numbers(n), _numbers(x, "f")
    powers = ufunc("power", -1.0, ufunc("add", order, 1))
    gammas = ufunc(_SPECIAL + "gamma", ufunc("add", order, 1.0))
    zetas = ufunc(_SPECIAL + "zeta", ufunc("add", order, 1.0), given)
    product = ufunc("multiply", ufunc("multiply", powers, gammas), zetas)
    other = ufunc(_SPECIAL + "digamma", given)
    if product.dtype != other.dtype or not (order.layout.c_contiguous and given.layout.c_contiguous):
        raise CannotProve("several dtypes or memory orders")
    return new(product.shape, product.dtype)


@rule(_STATS + "zscore")
def zscore(a: object, axis: object = 0, ddof: object = 0, nan_policy: object = "propagate") -> Array:
    """As CuPy."""
    return zmap(a, a, axis, ddof, nan_policy)


@rule(_STATS + "zmap")
def zmap(
    scores: object, compare: object, axis: object = 0, ddof: object = 0, nan_policy: object = "propagate"
) -> Array:
    """As CuPy."""
    given, others = _numbers(scores), _numbers(compare)
    if nan_policy != "propagate" or axis is None:
        raise CannotProve("another policy for NaN, or all axes")
    as_axis(axis, others.ndim)
    centred = ufunc("subtract", given, mean(others, axis, keepdims=True))
    return ufunc("divide", centred, std(others, axis, ddof=ddof, keepdims=True))


@rule(_STATS + "entropy")
def entropy(pk: object, qk: object = None, base: object = None, axis: object = 0) -> Array:
    """As CuPy."""
    given = _numbers(pk)
    wanted = result_type(given.dtype, FLOAT32) if given.dtype.kind == "f" else FLOAT64
    if qk is not None and _numbers(qk).shape != given.shape:
        raise CannotProve("distributions of two shapes")
    if base is not None and (not is_real(base) or base <= 0 or base == 1):
        raise CannotProve("an unusual base")
    first = given.astype(wanted, copy=False)
    if qk is None:
        terms = ufunc(_SPECIAL + "entr", first)
    else:
        terms = ufunc(_SPECIAL + "rel_entr", first, array(qk).astype(wanted, copy=False))
    return sum_(terms, axis)
