"""``cupy.fuse``: the function runs in the notebook, and its operations are sent one after the other.

Fusing saves a GPU the launches between small operations; what a fused function means is what the function itself means.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelproxy.calls.array_core import ArrayCore

_PERMITTED = (ArrayCore, bool, int, float, complex, np.generic, type(None))


class Fusion:
    """A function that `fuse` was applied to: ``func``, and ``name``."""

    __module__ = "cupy"

    def __init__(self, func: Callable[..., object], name: str | None = None) -> None:
        self.func = func
        self.name = name or func.__name__

    def __call__(self, *args: object) -> Any:
        """Return the function's result.

        Raises
        ------
        TypeError
            If an argument beside a remote array is neither array, number nor None.
        """
        if any(isinstance(arg, ArrayCore) for arg in args) and not all(isinstance(arg, _PERMITTED) for arg in args):
            types = ", ".join(repr(type(arg)) for arg in args)
            raise TypeError(f"Invalid argument type for '{self.name}': ({types})")
        return self.func(*args)

    def clear_cache(self) -> None:
        """Do nothing: nothing is compiled here."""

    def __repr__(self) -> str:
        return f"<Fusion '{self.name}'>"


def fuse(*args: Any, **kwargs: Any) -> Any:
    """Return a function fused; called with ``kernel_name`` or nothing, a decorator that fuses."""

    def wrap(function: Callable[..., object], kernel_name: str | None = None) -> Fusion:
        return functools.update_wrapper(Fusion(function, kernel_name), function)  # type: ignore[return-value]

    if len(args) == 1 and not kwargs and callable(args[0]):
        return wrap(args[0])
    return lambda function: wrap(function, *args, **kwargs)
