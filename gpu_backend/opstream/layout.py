"""Layouts: shape, strides and dtype of an array, interned so that equal layouts are one object.

Interning makes inference a dictionary look-up: the result of ``add`` on two layouts is found by their identities.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, ClassVar

import numpy as np

from gpu_backend.wire.dtypes import dtype_to_text
from gpu_backend.wire.memory_order import permuted_order

Shape = tuple[int, ...]
DType = np.dtype[Any]


class Layout:
    """How an array lies in memory. Make one with `contiguous` or `strided`; never by the class itself.

    Attributes
    ----------
    shape, strides
        As in NumPy; strides are in bytes.
    dtype
        The element type.
    ndim, size, itemsize, nbytes
        As in NumPy.
    c_contiguous, f_contiguous
        As CuPy's flags.
    held_bytes
        How much memory a new array of this layout holds: more than its elements' if there are gaps between them.
    memory_order
        "C" or "F" if contiguous ("" when both), else the word of `permuted_order`.
    orders
        What an op says of a result that lies so: nothing if it is C-contiguous, else the word.
    dtype_text
        The element type as it travels.
    """

    __slots__ = (
        "c_contiguous", "dtype", "dtype_text", "f_contiguous", "held_bytes", "itemsize", "memory_order", "nbytes",
        "ndim", "orders", "shape", "size", "strides",
    )  # fmt: skip

    _interned: ClassVar[dict[tuple[Shape, Shape, DType], Layout]] = {}

    def __init__(self, shape: Shape, strides: Shape, dtype: DType) -> None:
        self.shape = shape
        self.strides = strides
        self.dtype = _numpys_own(dtype)
        self.ndim = len(shape)
        self.size = prod(shape)
        self.itemsize = dtype.itemsize
        self.nbytes = self.held_bytes = self.size * self.itemsize
        self.c_contiguous = self.size == 0 or _is_contiguous(shape, strides, self.itemsize)
        self.f_contiguous = self.size == 0 or _is_contiguous(shape[::-1], strides[::-1], self.itemsize)
        if self.c_contiguous:
            self.memory_order = "" if self.f_contiguous else "C"
        else:
            self.memory_order = "F" if self.f_contiguous else permuted_order(shape, strides, self.itemsize)
            if self.memory_order[:1] == "?":
                ends = [abs(stride) * (extent - 1) for stride, extent in zip(strides, shape, strict=True)]
                self.held_bytes = max(self.nbytes, sum(ends) + self.itemsize)
        self.orders = None if self.c_contiguous else (self.memory_order,)
        self.dtype_text = dtype_to_text(dtype)

    def __repr__(self) -> str:
        return f"Layout(shape={self.shape}, strides={self.strides}, dtype={self.dtype})"


def _numpys_own(dtype: DType) -> DType:
    """Return the one object that NumPy has for a plain dtype: programs ask whether ``x.dtype is np.dtype("f4")``."""
    is_copy = dtype.isbuiltin == 0 and dtype.isnative and dtype.kind in "biufc"
    return np.dtype(dtype.char) if is_copy else dtype


@dataclass(frozen=True, slots=True)
class SparseLayout:
    """What the notebook knows of a sparse matrix or array, as long as nobody sets its parts: shape and dtype."""

    shape: Shape
    dtype: DType


class SomeRows:
    """What is known of a C-contiguous array of which nobody knows how many rows it has. Make one with `some_rows`.

    Attributes
    ----------
    dtype
        The element type.
    rest
        The shape of a row.
    most_bytes
        How much memory it holds at most.
    """

    __slots__ = ("dtype", "most_bytes", "rest")

    def __init__(self, dtype: DType, rest: Shape, most_bytes: int) -> None:
        self.dtype = _numpys_own(dtype)
        self.rest = rest
        self.most_bytes = most_bytes

    def __repr__(self) -> str:
        return f"SomeRows(rest={self.rest}, dtype={self.dtype}, most_bytes={self.most_bytes})"

    def with_count(self, count: int) -> Layout:
        """Return the layout of such an array of ``count`` rows."""
        return contiguous((count, *self.rest), self.dtype)


@lru_cache(maxsize=4_096)
def some_rows(dtype: DType, rest: Shape, most_bytes: int) -> SomeRows:
    """Return the one object with these properties: as with layouts, an op on such arrays is found by its identity."""
    return SomeRows(dtype, rest, most_bytes)


def strided(shape: Shape, strides: Shape, dtype: DType) -> Layout:
    """Return the one layout with these properties."""
    key = (shape, strides, dtype)
    layout = Layout._interned.get(key)
    if layout is None:
        if len(Layout._interned) >= _MOST_INTERNED:
            Layout._interned.clear()  # equal layouts may then be two objects: slower once, never wrong
        layout = Layout._interned[key] = Layout(shape, strides, dtype)
    return layout


def contiguous(shape: Shape, dtype: DType, order: str = "C") -> Layout:
    """Return the layout of a fresh array in memory order "C" or "F"."""
    return strided(shape, contiguous_strides(shape, dtype.itemsize, order), dtype)


def contiguous_strides(shape: Shape, itemsize: int, order: str = "C") -> Shape:
    """Return the strides, in bytes, of a fresh contiguous array; without elements they are all zero, as in CuPy."""
    if 0 in shape:
        return (0,) * len(shape)
    strides: list[int] = []
    step = itemsize
    for extent in reversed(shape) if order == "C" else shape:
        strides.append(step)
        step *= extent
    return tuple(reversed(strides)) if order == "C" else tuple(strides)


#: The types of numbers that an array on a device can hold, as NumPy's characters.
NUMBERS = frozenset("?bhilqBHILQefdFD")

#: Bounds memory in sessions that make arrays of ever new shapes.
_MOST_INTERNED = 65_536


def _is_contiguous(shape: Shape, strides: Shape, itemsize: int) -> bool:
    step = itemsize
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1:
            if stride != step:
                return False
            step *= extent
    return True
