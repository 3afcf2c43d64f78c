"""Functions whose answers are host values: shapes, dtypes, yes and no."""

from __future__ import annotations

import numpy as np

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.table import define_value

for _name in (
    "broadcast_shapes", "can_cast", "common_type", "iscomplexobj", "isdtype", "isfortran", "isrealobj", "isscalar",
    "issubdtype", "iterable", "min_scalar_type", "mintypecode", "ndim", "promote_types", "result_type", "shape",
    "size", "typename",
):  # fmt: skip
    define_value(getattr(np, _name), f"cupy.{_name}")


def byte_bounds(a: Array) -> tuple[int, int]:
    """Return the addresses of the first byte of ``a`` and of the one after its last."""
    low, high = np.lib.array_utils.byte_bounds(a)
    return int(low), int(high)


def shares_memory(a: Array, b: Array, max_work: int | None = None) -> bool:
    """Tell whether two arrays have an element in common."""
    return bool(np.shares_memory(a, b))


def may_share_memory(a: Array, b: Array, max_work: int | None = None) -> bool:
    """Tell whether the memory ranges of two arrays overlap."""
    return bool(np.may_share_memory(a, b))


define_value(byte_bounds, "cupy.byte_bounds")
define_value(shares_memory, "cupy.shares_memory")
define_value(may_share_memory, "cupy.may_share_memory")
