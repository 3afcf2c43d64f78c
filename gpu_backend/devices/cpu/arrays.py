"""What the CPU device calls an array."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

from gpu_backend.devices import arrays

#: An array of this device, of any shape and dtype.
Array: TypeAlias = np.ndarray[Any, Any]

DType: TypeAlias = np.dtype[Any]

#: A memory order as CuPy's functions take it.
Order: TypeAlias = Literal["K", "A", "C", "F"]

#: Which casts are allowed.
Casting: TypeAlias = Literal["no", "equiv", "safe", "same_kind", "unsafe"]


_ORDERS: dict[str, Order] = {"K": "K", "A": "A", "C": "C", "F": "F"}


def as_order(order: str) -> Order:
    """Return the memory order that a user names, in letters of either size.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    found = _ORDERS.get(order.upper())
    if found is None:
        raise ValueError("order not understood")
    return found


def owner_of(array: Array) -> Array:
    """Return the array that owns the memory that ``array`` shows."""
    base: object = array.base
    while base is not None:
        if isinstance(base, np.ndarray):
            array = base
        base = getattr(base, "base", None)  # also of what NumPy puts between a strided window and its array
    return array


def is_scalar(value: object) -> bool:
    """Tell whether ``value`` is a scalar to NumPy; of which kind is left open."""
    return bool(np.isscalar(value))


def own(array: arrays.Array) -> Array:
    """Return ``array`` as one of this device.

    Raises
    ------
    TypeError
        If it is of another.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{type(array).__name__} is no array of the CPU device, whose arrays are numpy.ndarray.")
    return array


def in_c_order(array: Array) -> Array:
    """Return ``array`` itself or a copy in C order; 0-d stays 0-d, which it does not in NumPy's own function."""
    return np.asarray(array, order="C")
