"""NumPy's functions called with remote arrays: each goes to the CuPy function of the same name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np

from gpu_backend.opstream import surface
from kernelproxy.calls import array_core
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.dispatch import stands_for
from kernelproxy.calls.scalars import NUMBERS
from kernelproxy.public_names import make

_COMPARISONS = frozenset({"greater", "greater_equal", "less", "less_equal", "equal", "not_equal"})
_STANDING_FOR_ARRAYS = ("__cuda_array_interface__", "__cupy_get_ndarray__")
_METHODS = frozenset({"__call__", "outer", "at", "reduce", "accumulate", "reduceat"})


def array_ufunc(function: np.ufunc, method: str, inputs: tuple[object, ...], kwargs: dict[str, object]) -> Any:
    """Carry out ``function.method(*inputs)`` remotely; NotImplemented if CuPy has nothing of that name.

    Raises
    ------
    TypeError
        If an operand is a NumPy array: CuPy converts nothing by itself.
    """
    ours = _named(function.__name__) if method in _METHODS else None
    if method == "__call__" and ours is not None and not kwargs and all(map(_is_plain, inputs)):
        return ours(*inputs)  # as in ``np.float64(2) * x``
    carried_out = ours if method == "__call__" else getattr(ours, method, None)
    if carried_out is None:
        return NotImplemented
    out = kwargs.get("out")
    if not all(map(_is_known, (*inputs, *(out if isinstance(out, tuple) else ())))):
        return NotImplemented
    inputs = tuple(stands_for(one) for one in inputs)
    if isinstance(out, tuple) and len(out) == 1:
        kwargs = {**kwargs, "out": out[0]}
    if isinstance(kwargs.get("out"), np.ndarray):
        raise TypeError("return arrays must be of ArrayType")
    if function.__name__ in _COMPARISONS:  # NumPy hands over a scalar of its own as a 0-d array
        inputs = tuple(one.item() if isinstance(one, np.ndarray) and one.ndim == 0 else one for one in inputs)
    return carried_out(*inputs, **kwargs)


def _is_plain(one: object) -> bool:
    """Tell whether ``one`` stands for itself, and CuPy's ufuncs take it."""
    return type(one) is array_core.array_class or type(one) in NUMBERS


def _is_known(one: Any) -> bool:
    """Tell whether CuPy's ufuncs take ``one``, or, for an array of NumPy, say that they do not."""
    is_number_or_array = isinstance(one, (ArrayCore, int, float, complex, np.generic, np.ndarray))
    return is_number_or_array or any(hasattr(one, name) for name in _STANDING_FOR_ARRAYS)


def array_function(
    function: Callable[..., object], types: Iterable[type], args: tuple[object, ...], kwargs: dict[str, object]
) -> Any:
    """Carry out a NumPy function remotely; NotImplemented if CuPy has none of that name."""
    if any(not issubclass(kind, (ArrayCore, np.ndarray)) for kind in types):
        return NotImplemented
    module = (function.__module__ or "numpy").removeprefix("numpy")
    qualname = f"cupy{module}.{function.__name__}"
    if not surface.load().is_public(qualname):
        return NotImplemented
    return make(qualname)(*args, **kwargs)


@cache
def _named(name: str) -> Any:
    """Return what CuPy has under a ufunc's name, which may be no ufunc there (``matmul``); None if nothing."""
    described = surface.load()
    return next(
        (make(full) for full in (f"cupy.{name}", f"cupyx.scipy.special.{name}") if described.is_public(full)), None
    )
