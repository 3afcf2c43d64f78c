"""Rules of functions that make new arrays."""

from __future__ import annotations

import math

import numpy as np

from gpu_backend.opstream.layout import DType
from gpu_backend.opstream.proof.arguments import (
    BOOL,
    FLOAT64,
    INT64,
    as_count,
    as_dtype,
    as_index,
    as_items,
    as_order,
    as_shape,
    as_storable_dtype,
    native,
)
from gpu_backend.opstream.proof.outcome import CannotProve, refusal
from gpu_backend.opstream.proof.promotion import promote, result_type
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.scalars import check_cast_value, fills_quietly
from gpu_backend.opstream.proof.shadow import Array, like, new
from gpu_backend.opstream.proof.values import is_python_scalar, is_real


def _contiguous_order(order: object) -> str:
    """Return "C" or "F" for the order of a new array; "A" and "K" mean "C" there... and anything but C means F."""
    return "C" if order is None or as_order(order) == "C" else "F"


@rule("cupy.ones")
def ones(shape: object, dtype: object = float, order: object = "C") -> Array:
    """As CuPy."""
    return new(as_shape(shape), as_dtype(dtype), _contiguous_order(order))


@rule("cupy.empty", "cupy.zeros")
def empty(shape: object, dtype: object = float, order: object = "C") -> Array:
    """As CuPy."""
    return new(as_shape(shape), as_storable_dtype(dtype), _contiguous_order(order))


@rule("cupy.ndarray")
def ndarray(
    shape: object, dtype: object = float, memptr: object = None, strides: object = None, order: object = "C"
) -> Array:
    """As CuPy, for new memory."""
    if memptr is not None or strides is not None:
        raise CannotProve("given memory or strides")
    return empty(shape, dtype, order)


@rule("cupy.full")
def full(shape: object, fill_value: object, dtype: object = None, order: object = "C") -> Array:
    """As CuPy."""
    wanted = _fill_dtype(fill_value) if dtype is None else as_dtype(dtype)
    made = new(as_shape(shape), wanted, _contiguous_order(order))
    _check_filling(fill_value, made)
    return made


def _fill_dtype(value: object) -> DType:
    if isinstance(value, Array):
        return value.dtype
    if type(value) in (int, float, complex, bool) or isinstance(value, np.generic):
        return native(np.array(value).dtype)
    raise CannotProve(f"filling with {type(value).__name__}")


def _check_filling(value: object, made: Array) -> None:
    if isinstance(value, Array):
        if value.shape != () or (value.dtype.kind == "c" and made.dtype.kind not in "bc"):
            raise CannotProve("filling with an array")
    elif isinstance(value, np.generic):
        if not np.can_cast(value.dtype, made.dtype, "same_kind"):
            raise CannotProve("filling with a scalar of another kind")
    elif not is_python_scalar(value):
        raise CannotProve(f"filling with {type(value).__name__}")
    elif not fills_quietly(value, made.dtype):
        check_cast_value(value, made.dtype)


@rule("cupy.empty_like", "cupy.zeros_like", any_dtype=True)
def empty_like(
    prototype: Array, dtype: object = None, order: object = "K", subok: object = None, shape: object = None
) -> Array:
    """As CuPy."""
    if subok is not None:
        raise refusal(TypeError, "subok is not supported yet")
    wanted = as_storable_dtype(prototype.dtype if dtype is None else dtype)
    char = as_order(order)
    if order not in ("C", "F", "A", "K", "c", "f", "a", "k"):
        raise CannotProve(f"order {order!r}")
    extents = prototype.shape
    if shape is not None:
        extents = as_shape(shape)
        if not extents or not isinstance(shape, (int, tuple)) or shape == 0:
            raise CannotProve("an empty shape, which counts as none")
        if char == "K" and len(extents) != prototype.ndim:
            char = "C"
    return Array(like(prototype.layout, wanted, char, extents))


def _ones_like(
    a: Array, dtype: object = None, order: object = "K", subok: object = None, shape: object = None
) -> Array:
    return empty_like(a, dtype, order, subok, shape)


rule("cupy.ones_like")(_ones_like)


@rule("cupy.full_like")
def full_like(
    a: Array, fill_value: object, dtype: object = None, order: object = "K", subok: object = None, shape: object = None
) -> Array:
    """As CuPy."""
    made = empty_like(a, dtype, order, subok, shape)
    _check_filling(fill_value, made)
    return made


@rule("cupy.eye")
def eye(N: object, M: object = None, k: object = 0, dtype: object = float, order: object = "C") -> Array:  # noqa: N803
    """As CuPy."""
    as_index(k)
    return empty((N, N if M is None else M), dtype, order)


@rule("cupy.identity")
def identity(n: object, dtype: object = float) -> Array:
    """As CuPy."""
    return eye(n, dtype=dtype)


@rule("cupy.tri")
def tri(N: object, M: object = None, k: object = 0, dtype: object = float) -> Array:  # noqa: N803
    """As CuPy."""
    as_index(k)
    return empty((N, N if M is None else M), dtype)


@rule("cupy.tril", "cupy.triu")
def tril(m: Array, k: object = 0) -> Array:
    """As CuPy, with at least two axes."""
    as_index(k)
    if m.ndim < 2:
        raise CannotProve("fewer than two axes")
    return new(m.shape, m.dtype)


@rule("cupy.diag")
def diag(v: Array, k: object = 0) -> Array:
    """As CuPy, for arrays."""
    shift = as_index(k)
    if v.ndim == 1:
        side = v.size + abs(shift)
        return new((side, side), v.dtype)
    if v.ndim != 2:
        raise refusal(ValueError, "Input must be 1- or 2-d.")
    length = max(0, min(v.shape[0] + min(shift, 0), v.shape[1] - max(shift, 0)))
    return new((length,), v.dtype)


@rule("cupy.diagflat")
def diagflat(v: Array, k: object = 0) -> Array:
    """As CuPy, for arrays."""
    return diag(v.ravel(), k)


@rule("cupy.vander")
def vander(x: Array, N: object = None, increasing: object = False) -> Array:  # noqa: N803
    """As CuPy, for vectors of floats and integers."""
    if x.ndim != 1:
        raise refusal(ValueError, "x must be a one-dimensional array or sequence.")
    return new((x.size, x.size if N is None else as_index(N)), promote(x.dtype, INT64))


@rule("cupy.arange")
def arange(start: object, stop: object = None, step: object = 1, dtype: object = None) -> Array:
    """As CuPy, for Python and NumPy numbers."""
    first, last, stride = _limit(start), None if stop is None else _limit(stop), None if step is None else _limit(step)
    if stride == 0:
        raise CannotProve("a step of zero")
    floating = any(np.dtype(type(value)).kind == "f" for value in (start, stop, step))
    wanted = as_dtype(dtype) if dtype is not None else FLOAT64 if floating else INT64
    low, high = (0, first) if last is None else (first, last)
    length = int(np.ceil((high - low) / (1 if stride is None else stride)))
    if length <= 0:
        return new((0,), wanted)
    if wanted == BOOL or wanted.kind == "c":
        raise CannotProve("a range of bools or complex numbers")
    if wanted.kind in "iu" and not all(_fits(value, wanted) for value in (low, stride, stride or 1)):
        raise CannotProve("limits beyond the range of the dtype")
    return new((length,), wanted)


def _limit(value: object) -> float | np.integer | np.floating:
    """Return a limit or a step of a range: a finite number of Python or NumPy."""
    if not (is_real(value) or isinstance(value, (np.integer, np.floating))):
        raise CannotProve("limits that are no real numbers")
    if not math.isfinite(value) or not -(1 << 53) < value < 1 << 53:
        raise CannotProve("limits that are not finite")
    return value


def _fits(value: float | np.integer | np.floating | None, dtype: DType) -> bool:
    info = np.iinfo(dtype)
    return value is None or bool(info.min <= value <= info.max)


@rule("cupy.linspace")
def linspace(
    start: object,
    stop: object,
    num: object = 50,
    endpoint: object = True,
    retstep: object = False,
    dtype: object = None,
    axis: object = 0,
) -> Array:
    """As CuPy, between host numbers."""
    if retstep:
        raise CannotProve("the step is a host number")
    limits = [value for value in (start, stop) if is_real(value) or isinstance(value, np.floating)]
    if len(limits) < 2:
        raise CannotProve("limits that are arrays")
    count = as_count(num)
    if count < 0:
        raise refusal(ValueError, "linspace with num<0 is not supported")
    if not (_is_spanned(*limits) and all(abs(float(value)) < 1e300 for value in limits)):
        raise CannotProve("limits that are not finite, or not to be subtracted")
    made = result_type(*limits, float(count))
    if made.char == "e":
        raise CannotProve("half precision")
    wanted = made if dtype is None else as_dtype(dtype)
    return new((count,), wanted)


def _is_spanned(start: float | np.floating, stop: float | np.floating) -> bool:
    """Tell whether a kernel gets ``start``, and ``stop - start`` is a number: CuPy subtracts them as they are."""
    if any(type(one) is int and not -(1 << 63) <= one < 1 << 64 for one in (start, stop)):
        return False
    try:
        with np.errstate(all="raise"):
            float(stop - start)
    except (ArithmeticError, TypeError):
        return False
    return True


@rule("cupy.logspace")
def logspace(
    start: object,
    stop: object,
    num: object = 50,
    endpoint: object = True,
    base: object = 10.0,
    dtype: object = None,
    axis: object = 0,
) -> Array:
    """As CuPy, between host numbers."""
    if type(base) not in (int, float):
        raise CannotProve("a base that is an array")
    made = linspace(start, stop, num, endpoint)
    return made if dtype is None else new(made.shape, as_dtype(dtype))


@rule("cupy.meshgrid")
def meshgrid(*xi: Array, indexing: object = "xy", copy: object = True, sparse: object = False) -> tuple[Array, ...]:
    """As CuPy, with copies."""
    if indexing not in ("xy", "ij"):
        raise refusal(ValueError, "Valid values for `indexing` are 'xy' and 'ij'.")
    if any(x.ndim != 1 for x in xi):
        raise refusal(ValueError, "input has to be 1d")
    if len(xi) <= 1:
        return xi
    if not copy:
        raise CannotProve("views")
    order = list(range(len(xi)))
    if indexing == "xy":
        order[:2] = [1, 0]
    full_shape = tuple([xi[place].size for place in order])
    made = []
    for place, x in enumerate(xi):
        axis = order.index(place)
        sparse_shape = tuple([x.size if one == axis else 1 for one in range(len(xi))])
        made.append(new(sparse_shape if sparse else full_shape, x.dtype))
    return tuple(made)


@rule("cupy.indices")
def indices(dimensions: object, dtype: object = int) -> Array:
    """As CuPy."""
    extents, made = as_shape(as_items(dimensions)), as_dtype(dtype)
    if made.kind == "b":
        raise CannotProve("booleans, of which there are two")
    return new((len(extents), *extents), made)


def _window_function(length: object) -> Array:
    return new((max(as_count(length), 0),), FLOAT64)


@rule("cupy.bartlett", "cupy.blackman", "cupy.hamming", "cupy.hanning")
def hanning(M: object) -> Array:  # noqa: N803
    """As CuPy."""
    return _window_function(M)


@rule("cupy.kaiser")
def kaiser(M: object, beta: object) -> Array:  # noqa: N803
    """As CuPy."""
    if type(beta) not in (int, float):
        raise CannotProve("beta as an array")
    return _window_function(M)
