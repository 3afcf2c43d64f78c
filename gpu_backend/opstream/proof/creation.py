"""Rules of functions that make new arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpu_backend.opstream.layout import DType
from gpu_backend.opstream.proof.arguments import (
    BOOL,
    FLOAT64,
    INT64,
    as_count,
    as_dtype,
    as_index,
    as_order,
    as_shape,
    as_storable_dtype,
    native,
)
from gpu_backend.opstream.proof.joining import from_nest
from gpu_backend.opstream.proof.outcome import CannotProve, refusal
from gpu_backend.opstream.proof.promotion import promote, result_type
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.scalars import check_cast_value, fills_quietly
from gpu_backend.opstream.proof.shadow import Shadow, array, like, new


def _contiguous_order(order: Any) -> str:
    """Return "C" or "F" for the order of a new array; "A" and "K" mean "C" there... and anything but C means F."""
    return "C" if order is None or as_order(order) == "C" else "F"


@rule("cupy.ones")
def ones(shape: Any, dtype: Any = float, order: Any = "C") -> Shadow:
    """As CuPy."""
    return new(as_shape(shape), as_dtype(dtype), _contiguous_order(order))


@rule("cupy.empty", "cupy.zeros")
def empty(shape: Any, dtype: Any = float, order: Any = "C") -> Shadow:
    """As CuPy."""
    return new(as_shape(shape), as_storable_dtype(dtype), _contiguous_order(order))


@rule("cupy.ndarray")
def ndarray(shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None, order: Any = "C") -> Shadow:
    """As CuPy, for new memory."""
    if memptr is not None or strides is not None:
        raise CannotProve("given memory or strides")
    return empty(shape, dtype, order)


@rule("cupy.full")
def full(shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C") -> Shadow:
    """As CuPy."""
    wanted = _fill_dtype(fill_value) if dtype is None else as_dtype(dtype)
    made = new(as_shape(shape), wanted, _contiguous_order(order))
    _check_filling(fill_value, made)
    return made


def _fill_dtype(value: Any) -> DType:
    if isinstance(value, Shadow):
        return value.dtype
    if type(value) in (int, float, complex, bool) or isinstance(value, np.generic):
        return native(np.array(value).dtype)
    raise CannotProve(f"filling with {type(value).__name__}")


def _check_filling(value: Any, made: Shadow) -> None:
    if isinstance(value, Shadow):
        if value.shape != () or (value.dtype.kind == "c" and made.dtype.kind not in "bc"):
            raise CannotProve("filling with an array")
    elif isinstance(value, np.generic):
        if not np.can_cast(value.dtype, made.dtype, "same_kind"):
            raise CannotProve("filling with a scalar of another kind")
    elif type(value) not in (bool, int, float, complex):
        raise CannotProve(f"filling with {type(value).__name__}")
    elif not fills_quietly(type(value), value, made.dtype):
        check_cast_value(value, made.dtype)


@rule("cupy.empty_like", "cupy.zeros_like", any_dtype=True)
def empty_like(prototype: Any, dtype: Any = None, order: Any = "K", subok: Any = None, shape: Any = None) -> Shadow:
    """As CuPy."""
    if subok is not None:
        raise refusal(TypeError, "subok is not supported yet")
    source = array(prototype)
    wanted = as_storable_dtype(source.dtype if dtype is None else dtype)
    char = as_order(order)
    if order not in ("C", "F", "A", "K", "c", "f", "a", "k"):
        raise CannotProve(f"order {order!r}")
    extents = source.shape
    if shape is not None:
        extents = as_shape(shape)
        if not extents or not isinstance(shape, (int, tuple)) or shape == 0:
            raise CannotProve("an empty shape, which counts as none")
        if char == "K" and len(extents) != source.ndim:
            char = "C"
    return Shadow(like(source.layout, wanted, char, extents))


def _ones_like(a: Any, dtype: Any = None, order: Any = "K", subok: Any = None, shape: Any = None) -> Shadow:
    return empty_like(a, dtype, order, subok, shape)


rule("cupy.ones_like")(_ones_like)


@rule("cupy.full_like")
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: Any = None, shape: Any = None
) -> Shadow:
    """As CuPy."""
    made = empty_like(a, dtype, order, subok, shape)
    _check_filling(fill_value, made)
    return made


@rule("cupy.eye")
def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = float, order: Any = "C") -> Shadow:  # noqa: N803
    """As CuPy."""
    as_index(k)
    return empty((as_index(N), as_index(N if M is None else M)), dtype, order)


@rule("cupy.identity")
def identity(n: Any, dtype: Any = float) -> Shadow:
    """As CuPy."""
    return eye(n, dtype=dtype)


@rule("cupy.tri")
def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = float) -> Shadow:  # noqa: N803
    """As CuPy."""
    as_index(k)
    return empty((as_index(N), as_index(N if M is None else M)), dtype)


@rule("cupy.tril", "cupy.triu")
def tril(m: Any, k: Any = 0) -> Shadow:
    """As CuPy, with at least two axes."""
    as_index(k)
    if array(m).ndim < 2:
        raise CannotProve("fewer than two axes")
    return new(m.shape, m.dtype)


@rule("cupy.diag")
def diag(v: Any, k: Any = 0) -> Shadow:
    """As CuPy, for arrays."""
    source, shift = array(v), as_index(k)
    if source.ndim == 1:
        side = source.size + abs(shift)
        return new((side, side), source.dtype)
    if source.ndim != 2:
        raise refusal(ValueError, "Input must be 1- or 2-d.")
    length = max(0, min(source.shape[0] + min(shift, 0), source.shape[1] - max(shift, 0)))
    return new((length,), source.dtype)


@rule("cupy.diagflat")
def diagflat(v: Any, k: Any = 0) -> Shadow:
    """As CuPy, for arrays."""
    return diag(array(v).ravel(), k)


@rule("cupy.vander")
def vander(x: Any, N: Any = None, increasing: Any = False) -> Shadow:  # noqa: N803
    """As CuPy, for vectors of floats and integers."""
    source = array(x)
    if source.ndim != 1:
        raise refusal(ValueError, "x must be a one-dimensional array or sequence.")
    return new((source.size, source.size if N is None else as_index(N)), promote(source.dtype, INT64))


@rule("cupy.arange")
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Shadow:
    """As CuPy, for Python and NumPy numbers."""
    given = [value for value in (start, stop, step) if value is not None]
    if not all(type(value) in (int, float) or isinstance(value, (np.integer, np.floating)) for value in given):
        raise CannotProve("limits that are no real numbers")
    if not all(math.isfinite(value) and abs(value) < 1 << 53 for value in given) or step == 0:
        raise CannotProve("limits that are not finite, or a step of zero")
    floating = any(np.dtype(type(value)).kind == "f" for value in (start, stop, step))
    wanted = as_dtype(dtype) if dtype is not None else FLOAT64 if floating else INT64
    low, high = (0, start) if stop is None else (start, stop)
    length = int(np.ceil((high - low) / (1 if step is None else step)))
    if length <= 0:
        return new((0,), wanted)
    if wanted == BOOL or wanted.kind == "c":
        raise CannotProve("a range of bools or complex numbers")
    if wanted.kind in "iu" and not all(_fits(value, wanted) for value in (low, step, step or 1)):
        raise CannotProve("limits beyond the range of the dtype")
    return new((length,), wanted)


def _fits(value: Any, dtype: DType) -> bool:
    info = np.iinfo(dtype)
    return value is None or bool(info.min <= value <= info.max)


@rule("cupy.linspace")
def linspace(
    start: Any, stop: Any, num: Any = 50, endpoint: Any = True, retstep: Any = False, dtype: Any = None, axis: Any = 0
) -> Shadow:
    """As CuPy, between host numbers."""
    if retstep:
        raise CannotProve("the step is a host number")
    if not all(type(value) in (int, float) or isinstance(value, np.floating) for value in (start, stop)):
        raise CannotProve("limits that are arrays")
    count = as_count(num)
    if count < 0:
        raise refusal(ValueError, "linspace with num<0 is not supported")
    if not all(abs(float(value)) < 1e300 for value in (start, stop)):
        raise CannotProve("limits that are not finite")
    made = result_type(start, stop, float(count))
    if made.char == "e":
        raise CannotProve("half precision")
    wanted = made if dtype is None else as_dtype(dtype)
    return new((count,), wanted)


@rule("cupy.logspace")
def logspace(
    start: Any, stop: Any, num: Any = 50, endpoint: Any = True, base: Any = 10.0, dtype: Any = None, axis: Any = 0
) -> Shadow:
    """As CuPy, between host numbers."""
    if type(base) not in (int, float):
        raise CannotProve("a base that is an array")
    made = linspace(start, stop, num, endpoint)
    return made if dtype is None else new(made.shape, as_dtype(dtype))


@rule("cupy.meshgrid")
def meshgrid(*xi: Any, indexing: Any = "xy", copy: Any = True, sparse: Any = False) -> tuple[Shadow, ...]:
    """As CuPy, with copies."""
    if indexing not in ("xy", "ij"):
        raise refusal(ValueError, "Valid values for `indexing` are 'xy' and 'ij'.")
    if any(array(x).ndim != 1 for x in xi):
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
def indices(dimensions: Any, dtype: Any = int) -> Shadow:
    """As CuPy."""
    extents, made = as_shape(tuple(dimensions)), as_dtype(dtype)
    if made.kind == "b":
        raise CannotProve("booleans, of which there are two")
    return new((len(extents), *extents), made)


def _window_function(length: Any) -> Shadow:
    return new((max(as_count(length), 0),), FLOAT64)


@rule("cupy.bartlett", "cupy.blackman", "cupy.hamming", "cupy.hanning")
def hanning(M: Any) -> Shadow:  # noqa: N803
    """As CuPy."""
    return _window_function(M)


@rule("cupy.kaiser")
def kaiser(M: Any, beta: Any) -> Shadow:  # noqa: N803
    """As CuPy."""
    if type(beta) not in (int, float):
        raise CannotProve("beta as an array")
    return _window_function(M)


@rule("cupy.ndarray.astype")
def astype(a: Any, dtype: Any, order: Any = "K", casting: Any = None, subok: Any = None, copy: Any = True) -> Shadow:
    """As CuPy."""
    if casting is not None:
        raise refusal(TypeError, "casting is not supported yet")
    if subok is not None:
        raise refusal(TypeError, "subok is not supported yet")
    return array(a).astype(dtype, "K" if order is None else order, copy=bool(copy))


@rule("cupy.astype")
def astype_function(x: Any, dtype: Any, /, *, copy: Any = True) -> Shadow:
    """As CuPy."""
    return array(x).astype(dtype, copy=bool(copy))


@rule("cupy.ndarray.copy")
def copy_method(a: Any, order: Any = "C") -> Shadow:
    """As CuPy."""
    return array(a).copy(order)


@rule("cupy.copy")
def copy_function(a: Any, order: Any = "K") -> Shadow:
    """As CuPy."""
    return array(a).copy(order)


@rule("cupy.ndarray.__copy__")
def copy_protocol(a: Any) -> Shadow:
    """As CuPy."""
    return array(a).copy()


@rule("cupy.array")
def array_function(
    obj: Any, dtype: Any = None, copy: Any = True, order: Any = "K", subok: Any = False, ndmin: Any = 0, *,
    blocking: Any = False,
) -> Shadow:  # fmt: skip
    """As CuPy, of an array or a nest of arrays."""
    if subok or copy not in (True, False, None):
        raise CannotProve("subok")
    if isinstance(obj, (list, tuple)):
        return from_nest(obj, dtype, order, as_index(ndmin))
    return _from_array(array(obj), dtype, copy, order, as_index(ndmin))


@rule("cupy.asarray", "cupy.asanyarray")
def asarray(a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, blocking: Any = False) -> Shadow:
    """As CuPy, of an array."""
    if copy not in (True, False, None):
        raise CannotProve("copy of another kind")
    return _from_array(array(a), dtype, copy, order, 0)


def _from_array(source: Shadow, dtype: Any, copy: Any, order: Any, ndmin: int) -> Shadow:
    wanted = source.dtype if dtype is None else dtype
    made = source.astype(wanted, "K" if order is None else order, copy=bool(copy))
    if copy is False and made is not source:
        raise refusal(ValueError, "Unable to avoid copy while creating an array as requested.")
    if ndmin > made.ndim:
        made = made.reshape((1,) * (ndmin - made.ndim) + made.shape)
    return made


@rule("cupy.ascontiguousarray")
def ascontiguousarray(a: Any, dtype: Any = None) -> Shadow:
    """As CuPy: at least one axis."""
    source = array(a)
    return _contiguous(source, dtype, "C", source.layout.c_contiguous)


@rule("cupy.asfortranarray")
def asfortranarray(a: Any, dtype: Any = None) -> Shadow:
    """As CuPy: at least one axis."""
    source = array(a)
    return _contiguous(source, dtype, "F", source.layout.f_contiguous)


def _contiguous(source: Shadow, dtype: Any, order: str, is_already: bool) -> Shadow:
    wanted = source.dtype if dtype is None else as_dtype(dtype)
    if wanted == source.dtype and is_already:
        return source.reshape(1) if source.ndim == 0 else source
    if source.dtype.kind == "c" and wanted.kind not in "bc":
        raise CannotProve("a ComplexWarning")
    return new(source.shape or (1,), wanted, order)


@rule("cupy.asfarray")
def asfarray(a: Any, dtype: Any = np.float64) -> Shadow:
    """As CuPy, of an array."""
    wanted = as_dtype(dtype)
    return array(a).astype(wanted if wanted.kind in "fc" else FLOAT64, copy=False)
