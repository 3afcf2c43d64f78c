"""New arrays from shapes and fill values, with memory asked for before it is touched."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from gpu_backend.devices.cpu.arrays import Array, DType, as_order
from gpu_backend.devices.cpu.conversion import copyto
from gpu_backend.devices.cpu.dtypes import as_dtype, cast_into, clear_zeros, fill_value, require_64_bits
from gpu_backend.devices.cpu.memory import LEDGER
from gpu_backend.devices.cpu.table import define

Shape = tuple[int, ...]

#: What C has no signed size for.
_PAST_SSIZE = 1 << 63


def as_shape(shape: object) -> Shape:
    """Return ``shape`` (an int or a sequence of ints, 0-d arrays among them) as a tuple."""
    if isinstance(shape, Sequence):
        return tuple(_extent(extent) for extent in shape)
    if isinstance(shape, np.ndarray) and shape.ndim == 1:
        return tuple(_extent(extent) for extent in shape)
    return (_extent(shape),)


def _extent(extent: Any) -> int:
    value = operator.index(extent)
    if value < 0:
        raise ValueError("Negative dimensions are not allowed")
    return value


def _contiguity(order: str | None) -> Literal["C", "F"]:
    """Return how a fresh array without a prototype lies: as CuPy, in "F" order for every letter but "C"."""
    letter = "C" if order is None else order.upper()
    if letter not in ("C", "F", "A", "K"):
        raise ValueError("order not understood")
    return "C" if letter == "C" else "F"


def new_array(shape: object, dtype: DType, order: str | None = "C") -> Array:
    """Return an uninitialised array, or raise ``OutOfMemoryError`` before its memory is touched."""
    shape = as_shape(shape)
    order = _contiguity(order)
    _require(shape, dtype)
    return np.empty(shape, dtype, order=order)


def _require(shape: Shape, dtype: DType) -> None:
    """Refuse what no memory can hold, in the words for what C cannot count, or what there is no room for."""
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes >= _PAST_SSIZE:
        raise OverflowError("can't convert negative value to size_t")
    LEDGER.require(nbytes)


def new_like(prototype: Array, dtype: object, order: str | None, subok: object, shape: object) -> Array:
    """Return an uninitialised array like ``prototype``, laid out by CuPy's reading of ``order``."""
    if subok is not None:
        raise TypeError("subok is not supported yet")
    chosen = prototype.dtype if dtype is None else as_dtype(dtype)
    target = as_shape(shape) if shape else prototype.shape
    _require(target, chosen)
    wanted = as_order("K" if order is None else order)
    if wanted == "K" and len(target) != prototype.ndim:
        wanted = "C"
    made: Array = np.empty_like(prototype, chosen, wanted, subok=False, shape=target)
    return made


@define("cupy.empty")
def empty(shape: object, dtype: DTypeLike = float, order: str = "C") -> Array:
    return new_array(shape, as_dtype(dtype), order)


@define("cupy.zeros")
def zeros(shape: object, dtype: DTypeLike = float, order: str = "C") -> Array:
    shape, chosen = as_shape(shape), as_dtype(dtype)
    _require(shape, chosen)
    return np.zeros(shape, chosen, order=_contiguity(order))


@define("cupy.ones")
def ones(shape: object, dtype: DTypeLike = float, order: str = "C") -> Array:
    array = new_array(shape, as_dtype(dtype), order)
    array.fill(1)
    return array


@define("cupy.full")
def full(shape: object, fill_value: object, dtype: object = None, order: str = "C") -> Array:
    if dtype is None:
        dtype = fill_value.dtype if isinstance(fill_value, np.ndarray) else np.array(fill_value).dtype
    array = new_array(shape, as_dtype(dtype), order)
    copyto(array, fill_value, "unsafe")
    return array


@define("cupy.empty_like")
def empty_like(
    prototype: Array, dtype: object = None, order: str = "K", subok: object = None, shape: object = None
) -> Array:
    return new_like(prototype, dtype, order, subok, shape)


@define("cupy.zeros_like")
def zeros_like(a: Array, dtype: object = None, order: str = "K", subok: object = None, shape: object = None) -> Array:
    array = new_like(a, dtype, order, subok, shape)
    array.fill(array.dtype.type(0)) if array.dtype.kind != "V" else array.view(np.uint8).fill(0)
    return array


@define("cupy.ones_like")
def ones_like(a: Array, dtype: object = None, order: str = "K", subok: object = None, shape: object = None) -> Array:
    array = new_like(a, dtype, order, subok, shape)
    array.fill(1)
    return array


@define("cupy.full_like")
def full_like(
    a: Array, fill_value: object, dtype: object = None, order: str = "K", subok: object = None, shape: object = None
) -> Array:
    array = new_like(a, dtype, order, subok, shape)
    copyto(array, fill_value, "unsafe")
    return array


@define("cupy.ndarray.fill")
def fill(array: Array, value: object) -> None:
    if isinstance(value, np.ndarray) and value.shape != ():
        raise ValueError("non-scalar cupy.ndarray cannot be used for fill")
    cast_into(array, value if isinstance(value, np.ndarray) else fill_value(value, array.dtype))
    clear_zeros(array)


@define("cupy.eye")
def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = float, order: str = "C") -> Array:
    M = N if M is None else M
    array = zeros((N, M), dtype, order)
    if -N < k < M:
        array[_diagonal_slice(N, M, operator.index(k))] = 1
    return array


def _diagonal_slice(rows: int, columns: int, k: int) -> tuple[Array, Array]:
    first_row, first_column = min(max(0, -k), rows), min(max(0, k), columns)
    steps = np.arange(max(0, min(rows - first_row, columns - first_column)))
    return steps + first_row, steps + first_column


@define("cupy.identity")
def identity(n: int, dtype: DTypeLike = float) -> Array:
    return eye(n, dtype=dtype)


@define("cupy.arange")
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Array:
    if dtype is None:
        values = (start, stop, step)
        dtype = float if any(np.result_type(v).kind == "f" for v in values if v is not None) else int
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    size = max(0, int(np.ceil((stop - start) / step)))
    chosen = as_dtype(dtype)
    LEDGER.require(size * chosen.itemsize)
    if chosen.kind == "b":
        if size > 2:
            raise TypeError("arange() is only supported for booleans when the result has at most length 2.")
        return np.array([start, start - step][:size], dtype=bool)
    kind = chosen.type
    first, width = kind(start), kind(step)
    if chosen.kind in "iu":
        made: Array = (np.arange(size, dtype=chosen) * width + first).astype(chosen, copy=False)
        return made
    wide = np.dtype(np.float32) if chosen.char == "e" else chosen
    result: Array = (first.astype(wide) + np.arange(size, dtype=wide) * width.astype(wide)).astype(chosen, copy=False)
    return result


@define("cupy.linspace")
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    if num < 0:
        raise ValueError("linspace with num<0 is not supported")
    LEDGER.require(num * max(np.size(start), np.size(stop)) * 8)
    start, stop = _as_samples(start), _as_samples(stop)
    if np.isscalar(start) and np.isscalar(stop) and num > int(endpoint):
        start, stop = _as_limits(start, stop)  # type: ignore[arg-type]
    chosen = None if dtype is None else as_dtype(dtype)
    result, step = np.linspace(start, stop, num, endpoint, retstep=True, dtype=chosen, axis=axis)
    if not retstep:
        return result
    return result, float(step) if np.ndim(start) == np.ndim(stop) == 0 else step


def _as_limits(start: float, stop: float) -> tuple[float, float]:
    """Return two limits as NumPy takes them, or refuse them as CuPy: a kernel gets ``start``, and the difference."""
    require_64_bits(start)
    float(stop - start)
    return start, float(stop) if type(stop) is int else stop


def _as_samples(value: object) -> Any:
    return np.asarray(value) if isinstance(value, (list, tuple)) else value


@define("cupy.logspace")
def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Array:
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    if dtype is None:
        made: Array = np.power(base, exponents)
        return made
    result: Array = np.power(base, exponents.astype(np.float64) if np.dtype(dtype).kind in "iu" else exponents).astype(
        dtype
    )
    return result


@define("cupy.tri")
def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = float) -> Array:
    rows, columns = as_shape((N, N if M is None else M))
    _require((rows, columns), as_dtype(dtype))
    return np.tri(rows, columns, k, as_dtype(dtype))


@define("cupy.indices")
def indices(dimensions: object, dtype: DTypeLike = int) -> Array:
    dimensions = as_shape(dimensions)
    LEDGER.require(len(dimensions) * math.prod(dimensions) * as_dtype(dtype).itemsize)
    if as_dtype(dtype).kind == "b" and max(dimensions, default=0) > 2:
        raise TypeError("arange() is only supported for booleans when the result has at most length 2.")
    return np.indices(dimensions, as_dtype(dtype))


@define("cupy.meshgrid")
def meshgrid(
    *xi: Array, indexing: Literal["xy", "ij"] = "xy", copy: bool = True, sparse: bool = False
) -> tuple[Array, ...]:
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    for x in xi:
        if x.ndim != 1:
            raise ValueError("input has to be 1d")
    if len(xi) <= 1:
        return tuple(xi)
    grids = np.meshgrid(*xi, indexing=indexing, copy=False, sparse=sparse)
    return tuple(grid.copy() if copy else grid for grid in grids)
