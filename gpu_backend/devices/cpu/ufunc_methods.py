"""The methods of ufuncs: ``outer`` for all, the others for the few that CuPy gives them to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.scatter import scatter
from gpu_backend.devices.cpu.table import define, define_value, lookup
from gpu_backend.devices.cpu.ufunc import Ufunc

#: Ufuncs whose ``at`` CuPy has.
_SCATTERING = frozenset({"add", "subtract", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"})

#: Method names of arrays that carry ``reduce`` and ``accumulate``.
_REDUCTIONS = {"add": ("sum", "cumsum"), "multiply": ("prod", "cumprod")}


def define_methods(ufunc: Ufunc) -> None:
    """Register ``cupy.<name>.at`` and its sisters, and bind them to ``ufunc``."""
    name = ufunc.name
    reduce_, accumulate = _REDUCTIONS.get(name, (None, None))
    methods: dict[str, Callable[..., Any]] = {
        "at": _at(name) if name in _SCATTERING else _refuse(name, "at"),
        "reduce": _reduce(reduce_) if reduce_ else _refuse(name, "reduce"),
        "accumulate": _accumulate(accumulate) if accumulate else _refuse(name, "accumulate"),
        "reduceat": _reduceat if name == "add" else _refuse(name, "reduceat"),
    }
    define_value(ufunc.outer, f"cupy.{name}.outer")
    for method, function in methods.items():
        define(f"cupy.{name}.{method}")(function)
        setattr(ufunc, method, lookup(f"cupy.{name}.{method}"))


def _refuse(name: str, method: str) -> Callable[..., Any]:
    def refused(*args: object, **kwargs: object) -> Any:
        raise NotImplementedError(f"`cupy_{name}.{method}` is not supported yet")

    return refused


def _at(name: str) -> Callable[..., Any]:
    def at(a: Array, indices: object, b: object = None) -> None:
        scatter(name, a, indices, b)

    return at


def _reduce(method: str) -> Callable[..., Any]:
    def reduce(array: Array, axis: object = 0, dtype: object = None, out: object = None, keepdims: bool = False) -> Any:
        return lookup(f"cupy.ndarray.{method}")(array, axis, dtype, out, keepdims)

    return reduce


def _accumulate(method: str) -> Callable[..., Any]:
    def accumulate(array: Array, axis: object = 0, dtype: object = None, out: object = None) -> Any:
        return lookup(f"cupy.ndarray.{method}")(array, axis, dtype, out)

    return accumulate


def _reduceat(array: Array, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    return np.add.reduceat(array, indices, axis, dtype, out)
