"""How chunks that overlap are read: as copies of each other, or as parts of a sum, a product, a maximum, a minimum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from kernelproxy.calls.ufuncs import ufunc_named

_DType: TypeAlias = "np.dtype[Any]"


class Operation:
    """What is done with overlapping elements to have their value.

    Attributes
    ----------
    func, numpy_func
        The ufunc, CuPy's and NumPy's.
    idempotent
        Whether an element may be counted twice.
    identity_of
        Gives the value of a dtype that changes nothing; raises RuntimeError if there is none.
    """

    __module__ = "cupyx.distributed.array._modes"

    def __init__(self, name: str, idempotent: bool, identity_of: Callable[[_DType], Any]) -> None:
        self.func, self.numpy_func = ufunc_named(name), getattr(np, name)
        self.idempotent = idempotent
        self.identity_of = identity_of


def _bound(dtype: _DType, sign: int) -> Any:
    """Return the largest value of a dtype for a ``sign`` of 1, the smallest for -1."""
    if dtype.kind == "b":
        return dtype.type(sign > 0)
    if dtype.kind in "iu":
        return dtype.type(np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min)
    if dtype.kind == "f":
        return dtype.type(sign * np.inf)
    raise RuntimeError(f"Unsupported type: {dtype}")


#: None: chunks are copies.
Mode = Operation | None
REPLICA: None = None
MIN = Operation("minimum", True, lambda dtype: _bound(dtype, 1))
MAX = Operation("maximum", True, lambda dtype: _bound(dtype, -1))
SUM = Operation("add", False, lambda dtype: dtype.type(0))
PROD = Operation("multiply", False, lambda dtype: dtype.type(1))
