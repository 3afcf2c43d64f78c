"""Casts that have the same bits on every IEEE machine; others end what is known."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
DType = np.dtype[Any]

#: So many numbers that stand in programs are kept as arrays.
_MOST_CONSTANTS = 1024
#: float16 holds every integer up to this one, and float64 up to that.
_EXACT_IN_HALF, EXACT_IN_DOUBLE = 2048, 1 << 53
_HALF, _SINGLE, _DOUBLE = np.dtype("f2"), np.dtype("f4"), np.dtype("f8")
#: The least and the greatest number of each integer dtype, by its character: to ask NumPy takes longer than an op.
LIMITS = {char: (int(np.iinfo(char).min), int(np.iinfo(char).max)) for char in "bBhHiIlLqQ"}


class Unknown(Exception):
    """The value is not known here: only the device can say it."""


def exactly() -> Any:
    """Return a context in which NumPy computes as every machine does, or raises: no NaN arises, nothing underflows."""
    return np.errstate(invalid="raise", under="raise", divide="ignore", over="ignore")


def cast(values: Array, dtype: DType) -> Array:
    """Return ``values`` as ``dtype``, by C's rules as kernels cast; the array itself if it is of that dtype.

    Raises
    ------
    Unknown
        If C leaves the result open or machines differ: NaN in other floats, floats beyond an integer's range, what is
        rounded twice on its way to float16, everything complex.
    FloatingPointError
        If a number is too small to be exact.
    """
    source = values.dtype
    if source == dtype:
        return values
    if source.kind not in "biuf" or dtype.kind not in "biuf":
        raise Unknown
    if source.kind == "f":
        with exactly():
            _check_float(values, dtype)
            return values.astype(dtype)
    if dtype == _HALF and source.kind != "b":
        _check_half(values)
    return values.astype(dtype)


def _check_half(integers: Array) -> None:
    if integers.size and (int(integers.max()) > _EXACT_IN_HALF or int(integers.min()) < -_EXACT_IN_HALF):
        raise Unknown


def _check_float(values: Array, dtype: DType) -> None:
    if not values.size or dtype.kind == "b":
        return
    if dtype.kind in "iu":
        low, end = float(np.iinfo(dtype).min), float(1 << (8 * dtype.itemsize - (dtype.kind == "i")))
        whole = np.trunc(values.astype(np.float64))
        if not bool(((whole >= low) & (whole < end)).all()):  # NaN is neither
            raise Unknown
    elif bool(np.isnan(values).any()) or (
        dtype == _HALF and values.dtype.itemsize > 4 and not bool((values.astype(_SINGLE) == values).all())
    ):
        raise Unknown


def scalar(value: object, dtype: DType) -> Array:
    """Return a number of Python or NumPy as a 0-d array of ``dtype``.

    Raises
    ------
    Unknown
        As `cast`; and if an integer is none of ``dtype``, or none that a float dtype holds.
    """
    if isinstance(value, np.generic):
        return cast(np.asarray(value), dtype)
    if type(value) is float:
        if math.isnan(value) and dtype.kind != "f":
            raise Unknown
        return cast(np.asarray(value), dtype) if not math.isnan(value) else np.full((), np.nan, dtype)
    if type(value) is bool:
        return cast(np.asarray(value), dtype)
    if type(value) is not int or dtype.kind not in "biuf":
        raise Unknown
    if dtype.kind == "b":
        return np.asarray(value != 0)
    if dtype.kind == "f":
        return _whole(value, dtype)
    low, high = LIMITS[dtype.char]
    if not low <= value <= high:
        raise Unknown
    return np.asarray(value, dtype)


@lru_cache(_MOST_CONSTANTS, typed=True)
def constant(value: float, dtype: DType) -> Array:
    """Return a number as `scalar`, to be read only; programs have few. No 0.0: one with a sign is equal to it."""
    made = scalar(value, dtype)
    made.flags.writeable = False
    return made


def _whole(value: int, dtype: DType) -> Array:
    if abs(value) > EXACT_IN_DOUBLE:
        raise Unknown
    if dtype == _DOUBLE:
        return np.asarray(float(value))
    with exactly():
        made = dtype.type(value)
    if int(made) != value:
        raise Unknown
    return np.asarray(made)
