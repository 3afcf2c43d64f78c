"""Reads the arguments that CuPy's functions share: dtypes, shapes, axes, memory orders."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from functools import cache
from math import prod
from typing import SupportsIndex

import numpy as np
from numpy.exceptions import AxisError

from gpu_backend.opstream.layout import DType, Layout, Shape
from gpu_backend.opstream.proof.outcome import CannotProve, refusal
from gpu_backend.opstream.proof.values import is_items, is_record

#: CuPy's limit on the number of axes.
MOST_AXES = 64
#: Sizes from here on overflow the arithmetic of CuPy rather than its memory.
_MOST_BYTES = 1 << 62
#: What C has no signed size for.
_PAST_SSIZE = 1 << 63

_BASIC = "?bhilBHILefdFD"
#: dtype to its representative: "q" and "Q" are "l" and "L" under another name.
_NATIVE: dict[DType, DType] = {np.dtype(char): np.dtype(char) for char in _BASIC}

BOOL, INT64, UINT64 = np.dtype("?"), np.dtype("l"), np.dtype("L")
INT8, UINT8, INT32 = np.dtype("b"), np.dtype("B"), np.dtype("i")
FLOAT64, FLOAT32, FLOAT16 = np.dtype("d"), np.dtype("f"), np.dtype("e")
COMPLEX64, COMPLEX128 = np.dtype("F"), np.dtype("D")


def native(dtype: DType) -> DType:
    """Return the one dtype object that stands for ``dtype``; only numbers and bools are known here."""
    found = _NATIVE.get(dtype)
    if found is None:
        raise CannotProve(f"dtype {dtype}")
    return found


def is_known(dtype: DType) -> bool:
    """Tell whether the rules about dtypes hold for ``dtype``: bool, int, uint, float and complex of all widths."""
    return dtype in _NATIVE


def _is_array(value: object) -> bool:
    return isinstance(value, Layout) or isinstance(getattr(value, "layout", None), Layout)


def as_dtype(spec: object) -> DType:
    """Return the dtype that a user names; None is float64, as in NumPy."""
    if _is_array(spec):
        raise CannotProve("an array as a dtype")  # CuPy takes the dtype that it has
    try:
        return _as_dtype(spec)
    except TypeError:
        raise CannotProve(f"dtype {spec!r}") from None


@cache
def _as_dtype(spec: object) -> DType:
    if spec is None or isinstance(spec, (str, type, tuple, np.dtype)):
        return native(np.dtype(spec))
    if hasattr(spec, "dtype"):  # as of a scalar of NumPy, or of what other libraries call a dtype
        return native(np.dtype(spec.dtype))
    raise CannotProve(f"dtype {spec!r}")


def as_storable_dtype(spec: object) -> DType:
    """Return the dtype that a user names for memory that nothing is computed with: structured ones too.

    A list of fields is none: CuPy looks dtypes up, and cannot look up a list.
    """
    if is_record(spec) and all(is_known(spec[name]) for name in spec.names or ()):
        return spec
    return as_dtype(spec)


def as_index(value: object) -> int:
    """Return a Python int for what CuPy takes as one."""
    if type(value) is int:
        return value
    if isinstance(value, (bool, np.integer)):
        return int(value)
    raise CannotProve(f"{type(value).__name__} as an integer")


def as_extent(value: object) -> int:
    """Return a Python int for what CuPy takes as the length of an axis: an array on the device is none."""
    if type(value) is int and -_PAST_SSIZE <= value < _PAST_SSIZE:
        return value
    if _is_array(value):
        raise refusal(TypeError, "'ndarray' object cannot be interpreted as an integer")
    if isinstance(value, (str, float)):
        raise refusal(TypeError, f"{type(value).__name__!r} object cannot be interpreted as an integer")
    extent = as_index(value)
    if not -_PAST_SSIZE <= extent < _PAST_SSIZE:
        raise refusal(OverflowError, "Python int too large to convert to C ssize_t")
    return extent


def as_bool(value: object) -> bool:
    """Return the truth of a host value."""
    if value is None or isinstance(value, (bool, int, float, str, np.generic)):
        return bool(value)
    raise CannotProve(f"the truth of {type(value).__name__}")


def as_text(value: object) -> str:
    """Return a text, as a source or a name must be."""
    if not isinstance(value, str):
        raise CannotProve(f"{type(value).__name__} as a text")
    return value


def as_items(values: object) -> tuple[object, ...]:
    """Return the values of a list, tuple or other collection of the host."""
    if not isinstance(values, Iterable):
        raise CannotProve(f"{type(values).__name__} where several values are wanted")
    return tuple(values)


def as_shape(size: object) -> Shape:
    """Return the shape of a new array. Raises as CuPy's constructor does."""
    shape = _extents(size)
    if len(shape) > MOST_AXES:
        raise refusal(ValueError, f"maximum supported dimension for an ndarray is {MOST_AXES}, found {len(shape)}")
    if any(extent < 0 for extent in shape):
        raise refusal(ValueError, "Negative dimensions are not allowed")
    if prod(shape) * 16 > _MOST_BYTES:
        raise CannotProve("a size beyond all memory")
    return shape


def _extents(size: object) -> Shape:
    if size is None:
        raise refusal(TypeError, "Use () not None as shape arguments")
    if isinstance(size, (bool, np.bool_)):
        raise refusal(TypeError, "an integer is required")
    if is_items(size):
        if any(isinstance(extent, (bool, np.bool_)) for extent in size):
            raise refusal(TypeError, "an integer is required")
        return tuple([as_extent(extent) for extent in size])
    return (as_extent(size),)


def as_axis(axis: object, ndim: int) -> int:
    """Return ``axis`` counted from the front."""
    place = as_index(axis)
    if not -ndim <= place < ndim:
        raise refusal(AxisError, place, ndim)
    return place + ndim if place < 0 else place


def as_axes(axes: object, ndim: int) -> tuple[int, ...]:
    """Return the axes of a reduction, sorted; None means all of them."""
    if axes is None:
        return tuple(range(ndim))
    given = axes if is_items(axes) else (axes,)
    found = tuple(sorted([as_axis(axis, ndim) for axis in given]))
    if len(set(found)) != len(found):
        raise refusal(ValueError, "duplicate value in 'axis'")
    return found


def as_order(order: object, *, allow_k: bool = True) -> str:
    """Return "C", "F", "A" or "K" for a memory order as the user writes it."""
    if not isinstance(order, str):
        raise CannotProve(f"memory order {order!r}")
    char = order[:1].upper() or "C"
    if char == "K" and not allow_k:
        raise refusal(ValueError, "order 'K' is not permitted")
    if char not in "CFAK":
        raise refusal(ValueError, "order not understood")
    return char


def order_like(layout: Layout, order: str) -> str:
    """Return the order that "A" and "K" mean for an array; "K" remains if it is contiguous in neither."""
    if order == "A":
        return "F" if layout.f_contiguous and not layout.c_contiguous else "C"
    if order == "K":
        return "C" if layout.c_contiguous else "F" if layout.f_contiguous else "K"
    return order


def broadcast(shapes: Sequence[Shape], described: Sequence[Shape] | None = None) -> Shape:
    """Return the shape that all ``shapes`` broadcast to.

    Parameters
    ----------
    described
        The shapes that the error names, if others than ``shapes``.
    """
    ndim = max(map(len, shapes), default=0)
    result = [1] * ndim
    for shape in shapes:
        for place, extent in enumerate(shape, ndim - len(shape)):
            if extent != result[place] and extent != 1:
                if result[place] != 1:
                    named = " ".join(str(one) for one in (shapes if described is None else described))
                    raise refusal(ValueError, f"operands could not be broadcast together with shapes {named}")
                result[place] = extent
    return tuple(result)


def as_count(value: object) -> int:
    """Return ``value`` as `operator.index` sees it; host values only."""
    if isinstance(value, Layout):
        raise CannotProve("an array where an integer is wanted")
    try:
        if isinstance(value, SupportsIndex):
            return operator.index(value)
    except TypeError:  # an array of NumPy may be an index, and is none unless it is one integer
        pass
    raise CannotProve(f"{type(value).__name__} as an integer")
