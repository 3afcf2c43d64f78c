"""Calls by which CuPy's own kernels write where there is no memory: refused, for CUDA ends a process that does so."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import cupy
import numpy as np


def checked_names() -> dict[str, Callable[..., Any]]:
    """Return what stands here for such names of CuPy's."""
    return {"cupy.put": _into_something(cupy.put), "cupy.ndarray.put": _into_something(cupy.ndarray.put)}


def _into_something(put: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse to put elements into an array that has none, in NumPy's words: the index modulo 0 is any address."""

    @wraps(put)
    def checked(a: Any, *args: Any, **kwargs: Any) -> Any:
        given = [*args[:1], *(kwargs[name] for name in ("ind", "indices") if name in kwargs)]
        if isinstance(a, cupy.ndarray) and not a.size and given and _count(given[0]):
            raise IndexError("cannot replace elements of an empty array")
        return put(a, *args, **kwargs)

    return checked


def _count(indices: Any) -> int:
    return int(indices.size) if isinstance(indices, cupy.ndarray) else np.size(indices)
