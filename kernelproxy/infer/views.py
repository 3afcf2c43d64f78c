"""Views as metadata: each function returns the window ``(offset, layout)`` that the new array is on the old one.

The offset is in bytes from the array's own start. Where CuPy copies, or where that is not known here, they return
`Unproved`; where CuPy refuses, they raise its exception. Nothing here sends a message.
"""

from __future__ import annotations

from typing import Any

from kernelproxy.infer import reshaping, windows
from kernelproxy.infer.indexing import getitem
from kernelproxy.infer.outcome import Unproved, Window, proves
from kernelproxy.layout import Layout

__all__ = [
    "array_split", "broadcast_to", "diagonal", "expand_dims", "flip", "getitem", "imag", "moveaxis", "ravel", "real",
    "reshape", "rollaxis", "rot90", "split", "squeeze", "swapaxes", "transpose", "view",
]  # fmt: skip

transpose = proves(windows.transpose)
swapaxes = proves(windows.swapaxes)
moveaxis = proves(windows.moveaxis)
rollaxis = proves(windows.rollaxis)
squeeze = proves(windows.squeeze)
expand_dims = proves(windows.expand_dims)
broadcast_to = proves(windows.broadcast_to)
view = proves(windows.view)
flip = proves(windows.flip)
rot90 = proves(windows.rot90)
array_split = proves(windows.array_split)
split = proves(windows.split)

_reshape = proves(reshaping.reshape)
_ravel = proves(reshaping.ravel)
_diagonal = proves(windows.diagonal)


def reshape(layout: Layout, shape: Any, order: str = "C", copy: Any = None) -> Window | Unproved:
    """Return the window of ``x.reshape(shape)``; `Unproved` where it copies."""
    return _unless_new(_reshape(layout, shape, order, copy))


def ravel(layout: Layout, order: str = "C") -> Window | Unproved:
    """Return the window of ``x.ravel()``; `Unproved` where it copies."""
    return _unless_new(_ravel(layout, order))


def diagonal(layout: Layout, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Window | Unproved:
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
