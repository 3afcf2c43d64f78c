"""Unbuffered updates at index arrays: ``ufunc.at``, ``cupyx.scatter_*`` and the array methods of that name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.dtypes import cast_into
from gpu_backend.devices.cpu.index import parse_index
from gpu_backend.devices.cpu.table import define, lookup

_INTEGERS = "iIlLqQ"

#: Operation: NumPy's ufunc, the dtypes an atomic exists for, and CuPy's name of both.
_OPERATIONS: dict[str, tuple[Any, str, str]] = {
    "add": (np.add, _INTEGERS + "efd", "int32, int64, float16, float32, float64, uint32, uint64"),
    "subtract": (np.subtract, "iI", "int32, uint32,"),
    "maximum": (np.maximum, _INTEGERS + "fd", "int32, int64, float32, float64, uint32, uint64"),
    "minimum": (np.minimum, _INTEGERS + "fd", "int32, int64, float32, float64, uint32, uint64"),
    "bitwise_and": (np.bitwise_and, _INTEGERS, "int32, int64, uint32, uint64"),
    "bitwise_or": (np.bitwise_or, _INTEGERS, "int32, int64, uint32, uint64"),
    "bitwise_xor": (np.bitwise_xor, _INTEGERS, "int32, int64, uint32, uint64"),
}


def scatter(name: str, a: Array, slices: object, value: object) -> None:
    """Apply the ufunc ``name`` to ``a`` at ``slices``, duplicates counted each.

    Raises
    ------
    TypeError
        If CUDA has no atomic of that kind for the dtype and there are index arrays.
    """
    operation, chars, listed = _OPERATIONS[name]
    parts, has_arrays = parse_index(a, slices)
    if not has_arrays:
        lookup(f"cupy.{name}")(a[parts], value, a[parts])
        return
    masked = [p.dtype.kind == "b" for p in parts if isinstance(p, np.ndarray)]
    if a.dtype.char not in chars and masked != [True]:
        raise TypeError(f"cupy.{name}.at only supports {listed} as data type")
    if isinstance(value, np.ndarray):
        cast = np.empty(value.shape, a.dtype)
        cast_into(cast, value)
    else:
        cast = np.asarray(value, dtype=a.dtype)
    if a.size:
        operation.at(a, parts, cast)


def _scatterer(name: str) -> Callable[[Array, Any, Any], None]:
    def update(a: Array, slices: object, value: object) -> None:
        scatter(name, a, slices, value)

    return update


for _public, _name in {"add": "add", "max": "maximum", "min": "minimum"}.items():
    define(f"cupyx.scatter_{_public}", f"cupy.ndarray.scatter_{_public}")(_scatterer(_name))
