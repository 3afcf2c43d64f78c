"""What every call on the CPU device has in common: silence, array results, books of memory, CuPy's own errors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np

from gpu_backend.devices.cpu.dtypes import require_supported
from gpu_backend.devices.cpu.memory import LEDGER, as_out_of_memory
from gpu_backend.opstream.layout import NUMBERS

ndarray = np.ndarray
T = TypeVar("T")

_silenced: ContextVar[bool] = ContextVar("_silenced", default=False)


def silence() -> None:
    """Turn NumPy's floating-point warnings off in this context; a GPU has none.

    Once per context: entering ``np.errstate`` for each call would cost more than the call.
    """
    if not _silenced.get():
        np.seterr(all="ignore")
        _silenced.set(True)


def settle(result: Any) -> Any:
    """Return ``result`` with every NumPy scalar as a 0-d array, and book the memory of its arrays.

    Raises
    ------
    ValueError
        If an array is of a dtype that NumPy has and CuPy has not.
    """
    kind = type(result)
    if kind is ndarray:
        if result.dtype.char not in NUMBERS:
            require_supported(result.dtype)
        LEDGER.hold(result)
        return result
    if isinstance(result, np.generic):
        return settle(np.asarray(result))
    if isinstance(result, ndarray):  # np.matrix, np.memmap, a masked array
        return settle(np.asarray(result))
    if kind is tuple or kind is list:
        return kind(settle(item) for item in result)
    if isinstance(result, tuple):  # a named tuple: our own stay, CuPy has no others where NumPy has them
        items = (settle(item) for item in result)
        return kind(*items) if kind.__module__.startswith(__package__) else tuple(items)
    return result


def guarded(function: Callable[..., object]) -> Callable[..., Any]:
    """Return ``function`` as a function of the device."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        if not _silenced.get():
            silence()
        try:
            return settle(function(*args, **kwargs))
        except MemoryError as error:
            raise as_out_of_memory(error) from None

    return call


def guarded_methods(kind: type[T]) -> type[T]:
    """Guard the public methods of a class whose objects stay on the device."""
    for name, member in list(vars(kind).items()):
        if callable(member) and not isinstance(member, type) and (name == "__init__" or not name.startswith("_")):
            setattr(kind, name, guarded(member))
    return kind
