"""``cupy.fuse``: a function of arrays as one kernel.

Fusing saves a GPU the launches between small operations; what a fused function means is what the function itself means.
So here the function runs as it is, with its arguments checked as CuPy checks them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_backend.devices.cpu.call import settle, silence

_SCALARS = (bool, int, float, complex, np.generic)


class Fusion:
    """A function that ``fuse`` was applied to.

    Attributes
    ----------
    func
        The function itself. What it calls on arrays must be functions of this device.
    name
        The kernel's name.
    """

    def __init__(self, func: Callable[..., Any], name: str | None = None) -> None:
        self.func = func
        self.name = name or func.__name__

    def __repr__(self) -> str:
        return f"<Fusion '{self.name}'>"

    def __call__(self, *args: object) -> Any:
        """Return the function's result; arrays of no dimension stay arrays.

        Raises
        ------
        TypeError
            If an argument beside an array is neither array, number nor None.
        """
        if any(isinstance(arg, np.ndarray) for arg in args) and not all(
            arg is None or isinstance(arg, (np.ndarray, *_SCALARS)) for arg in args
        ):
            types = ", ".join(repr(type(arg)) for arg in args)
            raise TypeError(f"Invalid argument type for '{self.name}': ({types})")
        silence()
        return settle(self.func(*args))

    def clear_cache(self) -> None:
        """Return at once: nothing is compiled, so nothing is kept."""


def fuse(*args: Any, **kwargs: Any) -> Any:
    """Return a function fused, or, if called with ``kernel_name`` or nothing, a decorator that fuses."""

    def wrap(function: Callable[..., object], kernel_name: str | None = None) -> Fusion:
        fused = Fusion(function, kernel_name)
        functools.update_wrapper(fused, function)
        return fused

    if len(args) == 1 and not kwargs and callable(args[0]):
        return wrap(args[0])
    return lambda function: wrap(function, *args, **kwargs)
