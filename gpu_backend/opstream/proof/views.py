"""Views as metadata: each function returns the window ``(offset, layout)`` that the new array is on the old one.

The offset is in bytes from the array's own start. Where CuPy copies, or where that is not known here, they return
`Unproved`; where CuPy refuses, they raise its exception. Nothing here sends a message.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from gpu_backend.opstream.layout import Layout
from gpu_backend.opstream.proof import reshaping, windows
from gpu_backend.opstream.proof.indexing import getitem, known_window
from gpu_backend.opstream.proof.outcome import Unproved, Window, proves

R = TypeVar("R")

__all__ = [
    "array_split", "broadcast_to", "diagonal", "expand_dims", "flip", "getitem", "imag", "known_window", "moveaxis",
    "ravel", "real", "reshape", "rollaxis", "rot90", "split", "squeeze", "swapaxes", "transpose", "view",
]  # fmt: skip

#: Bounds what each function remembers.
_MOST_REMEMBERED = 4_096
_PLAIN, _INTS = frozenset({int, str, type(None)}), frozenset({int})


def _remembered(function: Callable[..., R]) -> Callable[..., R | Unproved]:
    """Make a rule a function for callers, which remembers what it found for plain arguments."""
    proved = proves(function)
    memory: dict[tuple[object, ...], R | Unproved] = {}

    @wraps(function)
    def remembering(layout: Layout, *args: object, **kwargs: object) -> R | Unproved:
        if kwargs or not (_PLAIN.issuperset(map(type, args)) or _are_plain(args)):
            return proved(layout, *args, **kwargs)
        key = (layout, *args)
        found = memory.get(key)
        if found is None:
            if len(memory) >= _MOST_REMEMBERED:
                memory.clear()
            found = memory[key] = proved(layout, *args)
        return found

    return remembering


def _are_plain(args: tuple[object, ...]) -> bool:
    """Tell whether arguments can be remembered: 1.0 and True equal 1, but are not it."""
    return all(_INTS.issuperset(map(type, arg)) if type(arg) is tuple else type(arg) in _PLAIN for arg in args)


transpose = _remembered(windows.transpose)
swapaxes = _remembered(windows.swapaxes)
moveaxis = _remembered(windows.moveaxis)
rollaxis = _remembered(windows.rollaxis)
squeeze = _remembered(windows.squeeze)
expand_dims = _remembered(windows.expand_dims)
broadcast_to = _remembered(windows.broadcast_to)
view = proves(windows.view)
flip = _remembered(windows.flip)
rot90 = _remembered(windows.rot90)
array_split = _remembered(windows.array_split)
split = _remembered(windows.split)

_reshape = _remembered(reshaping.reshape)
_ravel = _remembered(reshaping.ravel)
_diagonal = _remembered(windows.diagonal)


def reshape(layout: Layout, shape: object, order: str = "C", copy: object = None) -> Window | Unproved:
    """Return the window of ``x.reshape(shape)``; `Unproved` where it copies."""
    return _unless_new(_reshape(layout, shape, order, copy))


def ravel(layout: Layout, order: str = "C") -> Window | Unproved:
    """Return the window of ``x.ravel()``; `Unproved` where it copies."""
    return _unless_new(_ravel(layout, order))


def diagonal(layout: Layout, offset: object = 0, axis1: object = 0, axis2: object = 1) -> Window | Unproved:
    """Return the window of ``x.diagonal(...)``; `Unproved` where it is a new empty array."""
    return _unless_new(_diagonal(layout, offset, axis1, axis2))


def real(layout: Layout) -> Window:
    """Return the window of ``x.real``."""
    return windows.part(layout, imaginary=False) if layout.dtype.kind == "c" else (0, layout)


def imag(layout: Layout) -> Window | Unproved:
    """Return the window of ``x.imag``; `Unproved` where it is an array of new zeros."""
    return windows.part(layout, imaginary=True) if layout.dtype.kind == "c" else Unproved("it is new zeros")


def _unless_new(made: Window | Layout | Unproved) -> Window | Unproved:
    return Unproved("it is a new array") if isinstance(made, Layout) else made
