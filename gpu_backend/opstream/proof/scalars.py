"""Whether a host scalar can be put into a dtype, and what CuPy raises if not."""

from __future__ import annotations

import math
import warnings

import numpy as np

from gpu_backend.opstream.layout import DType
from gpu_backend.opstream.proof.arguments import BOOL, COMPLEX128, FLOAT64
from gpu_backend.opstream.proof.outcome import CannotProve, refusal
from gpu_backend.opstream.proof.values import is_scalar

_NOT_ONE = "non-scalar numpy.ndarray cannot be used for fill"


def bounds(dtype: DType) -> tuple[float, float]:
    """Return the lowest and the highest real number that surely goes into ``dtype`` without error or warning."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return int(info.min), int(info.max)
    if dtype in (BOOL, FLOAT64, COMPLEX128):
        return -math.inf, math.inf
    largest = float(np.finfo(dtype).max)
    return -largest, largest


def int_bounds(dtype: DType) -> tuple[float, float]:
    """Return `bounds` for Python ints: beyond int64 they enter promotion as another dtype."""
    low, high = bounds(dtype)
    return max(low, -(1 << 63)), min(high, (1 << 63) - 1)


def is_within(number: complex, low: float, high: float) -> bool:
    """Tell whether a number of Python's lies between bounds, as 0 does, with both its parts."""
    return low <= number.real <= high and low <= number.imag <= high


def check_operand(value: object, dtype: DType) -> None:
    """Refuse as CuPy does if the scalar operand ``value`` cannot be cast to ``dtype``, that of the loop."""
    if isinstance(value, (bool, np.bool_)):
        return
    if isinstance(value, np.generic):
        if np.can_cast(value.dtype, dtype):
            return
        raise CannotProve("a NumPy scalar cast to another kind")
    if isinstance(value, int):
        _check_int(value, dtype)
    elif isinstance(value, float):
        _check_float(value, dtype)
    elif isinstance(value, complex):
        if dtype.kind != "c":
            raise CannotProve("a complex scalar cast to a real dtype")
        _check_float(value.real, dtype)
        _check_float(value.imag, dtype)
    else:
        raise CannotProve(f"a scalar of {type(value).__name__}")


def check_fill(value: object, dtype: DType) -> None:
    """Refuse as CuPy's ``fill`` does if the host value cannot be made a scalar of ``dtype``.

    Lists and arrays are refused unless they are 0-d.
    """
    if isinstance(value, np.ndarray) and value.ndim:
        raise refusal(ValueError, _NOT_ONE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            made = np.asarray(value, dtype=dtype)
        except Warning:
            raise CannotProve("a warning about the value") from None
        except (OverflowError, TypeError, ValueError) as error:
            raise refusal(type(error), *error.args) from None
    if made.shape != ():
        raise refusal(ValueError, _NOT_ONE)


def check_cast_value(value: complex, dtype: DType) -> None:
    """Refuse as ``cupy.copyto`` does if the Python scalar ``value`` cannot be cast to ``dtype``, unsafely."""
    if type(value) is int and not -(1 << 63) <= value < 1 << 64:
        raise CannotProve("an int beyond 64 bits")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            np.copyto(np.empty((), dtype), value, casting="unsafe")
        except Warning:
            raise CannotProve("a warning about the value") from None
        except (OverflowError, TypeError, ValueError) as error:
            raise refusal(type(error), *error.args) from None


def fills_quietly(value: object, dtype: DType) -> bool:
    """Tell in a hurry whether a Python scalar surely goes into ``dtype``; False means: look closer."""
    limits = quiet_bounds(type(value), dtype)
    return limits is not None and limits[0] <= value <= limits[1]  # type: ignore[operator]


def quiet_bounds(kind: type, dtype: DType) -> tuple[float, float] | None:
    """Return the least and the greatest scalar of Python's ``kind`` that is seen in a hurry to go into ``dtype``."""
    if kind is float and dtype.kind in "fc":
        return (-math.inf, math.inf) if dtype.itemsize >= 8 and dtype.kind == "f" else (-65504.0, 65504.0)
    if kind is int and dtype.kind != "V":
        return (0 if dtype.kind == "u" else -128), 127
    return (False, True) if kind is bool and dtype.kind in "biufc" else None


def converts(value: object, dtype: DType) -> bool:
    """Tell whether a scalar of Python or NumPy becomes an array of ``dtype`` without error or warning."""
    if fills_quietly(value, dtype):
        return True
    if not is_scalar(value):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            np.asarray(value, dtype=dtype)
        except (Warning, OverflowError, TypeError, ValueError):
            return False
    return True


def _check_int(value: int, dtype: DType) -> None:
    if dtype.kind in "iu":
        try:
            dtype.type(value)
        except OverflowError as error:
            raise refusal(OverflowError, *error.args) from None
    elif dtype.kind in "fc" and not bounds(dtype)[0] <= value <= bounds(dtype)[1]:
        raise CannotProve("an int beyond the range of a float dtype")


def _check_float(value: float, dtype: DType) -> None:
    if dtype.kind not in "fc":
        raise CannotProve("a float scalar cast to an integer dtype")
    if math.isfinite(value) and abs(value) > bounds(dtype)[1]:
        raise CannotProve("a float beyond the range of its dtype")
