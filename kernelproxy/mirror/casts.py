"""Casts that have the same bits on every IEEE machine; others end what is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
DType = np.dtype[Any]

#: float16 holds every integer up to this one.
_EXACT_IN_HALF = 2048
_HALF, _SINGLE = np.dtype("f2"), np.dtype("f4")


class Unknown(Exception):
    """The value is not known here: only the device can say it."""


def cast(values: Array, dtype: DType) -> Array:
    """Return ``values`` as ``dtype``, by C's rules as kernels cast; the array itself if it is of that dtype.

    Raises
    ------
    Unknown
        If C leaves the result open or machines differ: NaN in other floats, floats beyond an integer's range, what is
        rounded twice on its way to float16, everything complex.
    """
    source = values.dtype
    if source == dtype:
        return values
    if source.kind not in "biuf" or dtype.kind not in "biuf":
        raise Unknown
    if source.kind == "f":
        _check_float(values, dtype)
    elif dtype == _HALF and source.kind != "b":
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
        if abs(value) > 1 << 53 or int(made := dtype.type(value)) != value:
            raise Unknown
        return np.asarray(made)
    limits = np.iinfo(dtype)
    if not int(limits.min) <= value <= int(limits.max):
        raise Unknown
    return np.asarray(value, dtype)
