"""Ops other than ufuncs whose results have the same bits everywhere: arrays made, moved, selected, counted, compared.

Each takes the op's arguments as `Operands` and gives the values of its one result, or writes into a window.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_backend.opstream.layout import Layout
from gpu_backend.wire import values as wire
from kernelproxy.mirror.casts import Array, DType, Unknown, cast, scalar
from kernelproxy.mirror.operands import Operands

#: Gives the values of a result of the layout that was proved.
Maker = Callable[[Operands, Layout], Array]
#: Floats hold every integer up to this one, and so does what is computed of them on the way.
_EXACT_IN_SINGLE, _EXACT_IN_DOUBLE = 1 << 24, 1 << 53


def as_dtype(operand: Any, dtype: DType) -> Array:
    """Return an array or number as ``dtype``."""
    return cast(operand, dtype) if isinstance(operand, np.ndarray) else scalar(operand, dtype)


# --- arrays made of nothing -------------------------------------------------------------------------------------------


def _zeros(given: Operands, made: Layout) -> Array:
    return np.zeros(made.shape, made.dtype)


def _ones(given: Operands, made: Layout) -> Array:
    return np.ones(made.shape, made.dtype)


def _full(given: Operands, made: Layout) -> Array:
    return np.full(made.shape, as_dtype(given.named(1, "fill_value"), made.dtype))


def _eye(given: Operands, made: Layout) -> Array:
    k = given.named(2, "k", 0)
    if type(k) is not int or len(made.shape) != 2:
        raise Unknown
    return np.eye(*made.shape, k, dtype=made.dtype)


def _identity(given: Operands, made: Layout) -> Array:
    return np.eye(*made.shape, dtype=made.dtype)


def _arange(given: Operands, made: Layout) -> Array:
    """Whole numbers only: of others CuPy's kernel may round once where NumPy rounds twice."""
    numbers = [_whole(one) for one in given.args]
    start, stop, step = (0, numbers[0], 1) if len(numbers) == 1 else (*numbers, 1)[:3]
    found = range(start, stop, step)
    largest = _EXACT_IN_SINGLE if made.dtype.kind == "f" and made.dtype.itemsize < 8 else _EXACT_IN_DOUBLE
    if given.kwargs.keys() - {"dtype"} or (len(found),) != made.shape or max(abs(start), abs(stop)) > largest:
        raise Unknown
    return cast(np.arange(start, stop, step, dtype=np.int64), made.dtype)


def _whole(number: Any) -> int:
    if type(number) is float and number.is_integer():
        return int(number)
    if type(number) is not int:
        raise Unknown
    return number


# --- copies, casts, selections ----------------------------------------------------------------------------------------


def _as_made(given: Operands, made: Layout) -> Array:
    return as_dtype(given.array(0), made.dtype).reshape(made.shape)


def _flattened(given: Operands, made: Layout) -> Array:
    if len(given.args) > 1 or given.kwargs:  # in another order
        raise Unknown
    return _as_made(given, made)


def _where(given: Operands, made: Layout) -> Array:
    if len(given.args) != 3 or given.kwargs:
        raise Unknown
    chosen = as_dtype(given.value(0), np.dtype(bool))
    return np.asarray(np.where(chosen, *(as_dtype(given.value(place), made.dtype) for place in (1, 2))))


def _selected(given: Operands, made: Layout) -> Array:
    """``x[index]`` for one array of integers, which CuPy takes modulo the length."""
    array, index = given.array(0), given.array(1)
    if len(given.args) != 2 or index.dtype.kind not in "iu" or not array.ndim or not array.shape[0]:
        raise Unknown
    wide = np.int64 if index.dtype.kind == "i" else np.uint64  # CuPy's kernel divides unsigned numbers as such
    return np.asarray(array[(index.astype(wide) % wide(array.shape[0])).astype(np.int64)])


def _joined(given: Operands, made: Layout) -> Array:
    parts = given.args[0]
    axis = given.named(1, "axis", 0)
    if not isinstance(parts, (wire.List, wire.Tuple)) or type(axis) is not int or given.kwargs.keys() - {"axis"}:
        raise Unknown
    return np.concatenate([cast(given.known_array(one), made.dtype) for one in parts.items], axis)


def _squared(given: Operands, made: Layout) -> Array:
    array, power = given.array(0), given.args[1]
    if type(power) is not int or power != 2 or array.dtype != made.dtype or made.dtype.kind not in "iuf":
        raise Unknown
    given.refuse_nan()
    return np.asarray(np.multiply(array, array))


# --- reductions -------------------------------------------------------------------------------------------------------


def _reduction(function: Callable[..., Any], kinds: str, names: tuple[str, ...]) -> Maker:
    """Return a reduction that is exact for dtypes of ``kinds``; its parameters behind the array are ``names``."""

    def reduce(given: Operands, made: Layout) -> Array:
        array = given.array(0)
        if array.dtype.kind not in kinds or len(given.args) > 1 + len(names) or given.kwargs.keys() - set(names):
            raise Unknown
        if function in _ORDERED and made.dtype != array.dtype:
            raise Unknown
        axis = given.axis(given.named(1, "axis", None))
        keepdims = given.named(1 + names.index("keepdims"), "keepdims", False) if "keepdims" in names else False
        if type(keepdims) is not bool or (array.dtype.kind == "f" and not array.size):
            raise Unknown
        if array.dtype.kind == "f" and function not in _OF_TRUTH:
            given.refuse_nan()
            _check_zeros(array, function)
        options = {"dtype": made.dtype} if function in _SUMS else {}
        if function in _SUMS and made.dtype.kind not in "iu":
            raise Unknown
        found = np.asarray(function(array, axis=axis, **options, **({"keepdims": True} if keepdims else {})))
        return found if found.dtype == made.dtype else cast(found, made.dtype)

    return reduce


def _check_zeros(array: Array, function: Callable[..., Any]) -> None:
    """Machines choose differently among 0.0 and -0.0, unless only their place is asked for."""
    if function in _ORDERED:
        signs = np.signbit(array[array == 0])
        if signs.any() and not signs.all():
            raise Unknown


_SUMS: tuple[Callable[..., Any], ...] = (np.sum, np.prod, np.cumsum)
_ORDERED: tuple[Callable[..., Any], ...] = (np.min, np.max)
_OF_TRUTH: tuple[Callable[..., Any], ...] = (np.any, np.all, np.count_nonzero)
_SUMMING, _PLAIN = ("axis", "dtype", "out", "keepdims"), ("axis", "out", "keepdims")

_REDUCTIONS: dict[str, Maker] = {
    "sum": _reduction(np.sum, "biu", _SUMMING),
    "prod": _reduction(np.prod, "biu", _SUMMING),
    "cumsum": _reduction(np.cumsum, "biu", ("axis", "dtype", "out")),
    "min": _reduction(np.min, "biuf", _PLAIN),
    "max": _reduction(np.max, "biuf", _PLAIN),
    "any": _reduction(np.any, "biuf", _PLAIN),
    "all": _reduction(np.all, "biuf", _PLAIN),
    "argmin": _reduction(np.argmin, "biuf", _SUMMING),
    "argmax": _reduction(np.argmax, "biuf", _SUMMING),
}

#: By the name of the op.
MAKERS: dict[str, Maker] = {
    **{f"cupy.{name}": maker for name, maker in _REDUCTIONS.items()},
    **{f"cupy.ndarray.{name}": maker for name, maker in _REDUCTIONS.items()},
    "cupy.amin": _REDUCTIONS["min"],
    "cupy.amax": _REDUCTIONS["max"],
    "cupy.count_nonzero": _reduction(np.count_nonzero, "biuf", ("axis",)),
    "cupy.zeros": _zeros,
    "cupy.zeros_like": _zeros,
    "cupy.ones": _ones,
    "cupy.ones_like": _ones,
    "cupy.full": _full,
    "cupy.full_like": _full,
    "cupy.eye": _eye,
    "cupy.identity": _identity,
    "cupy.arange": _arange,
    "cupy.copy": _as_made,
    "cupy.ndarray.copy": _as_made,
    "cupy.ndarray.flatten": _flattened,
    "cupy.ndarray.astype": _as_made,
    "cupy.astype": _as_made,
    "cupy.array": _as_made,
    "cupy.where": _where,
    "cupy.concatenate": _joined,
    "cupy.ndarray.__getitem__": _selected,
    "cupy.ndarray.__pow__": _squared,
}
#: What makes arrays of nothing: known without an operand.
CREATING = frozenset(
    f"cupy.{name}"
    for name in ("zeros", "zeros_like", "ones", "ones_like", "full", "full_like", "eye", "identity", "arange")
)
