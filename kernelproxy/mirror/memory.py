"""Memory of the device as the notebook knows it: the bytes of one array that owns its memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_backend.opstream.layout import Layout
from gpu_backend.wire import values as wire
from gpu_backend.wire.dtypes import text_to_dtype
from kernelproxy.mirror.casts import Array, Unknown

#: The dtypes of single numbers that are the same in Python, as text.
PLAIN = frozenset(np.dtype(char).str for char in "?bBhHiIlLqQefd")


class Memory:
    """The bytes of an array, as they lie on the device.

    Parameters
    ----------
    layout
        How the array lies: contiguous, in C's order or Fortran's.
    data
        Its bytes.

    Attributes
    ----------
    layout
        How it lies.
    array
        The whole array.
    may_be_nan
        Whether there may be NaN among its elements.
    is_computed
        Whether something was computed here to know it.
    is_read
        Whether it has answered a read.
    is_fetched
        Whether it was read from the device in the hope of more reads.
    cells
        Its elements in a row, as they lie; for who has asked for a `place`.
    """

    __slots__ = (
        "_count", "_data", "_is_open", "array", "cells", "is_computed", "is_fetched", "is_read", "layout", "may_be_nan",
    )  # fmt: skip

    def __init__(self, layout: Layout, data: bytes | Array) -> None:
        self._data: Any = data
        self.layout = layout
        if type(data) is np.ndarray and data.dtype is layout.dtype and _lies_so(data, layout):
            self.array: Array = data
        else:
            self.array = np.ndarray(layout.shape, layout.dtype, data, 0, layout.strides)
        self.may_be_nan = layout.dtype.kind in "fcV"
        self.is_computed = self.is_read = self.is_fetched = False
        self._count = -1

    @classmethod
    def of(cls, layout: Layout, values: Array) -> Memory:
        """Return the memory of an array of ``layout`` with these values: theirs, if they are nobody else's.

        Raises
        ------
        Unknown
            If they are none of that layout.
        """
        if values.shape != layout.shape or values.dtype != layout.dtype or not is_contiguous(layout):
            raise Unknown
        flags = values.flags
        is_new = flags.owndata and flags.c_contiguous and layout.c_contiguous and layout.size > 0
        return cls(layout, values if is_new else _copied(values, layout))

    def look_for_nan(self) -> Memory:
        """Look whether there is NaN among the elements, and return itself."""
        if self.array.dtype.kind in "fc":
            self.may_be_nan = bool(np.isnan(self.array).any())
        return self

    def window(self, view: wire.View) -> Array:
        """Return the elements that ``view`` shows.

        Raises
        ------
        Unknown
            If the view believes the array to lie otherwise, or shows numbers as others where a NaN's bits would show.
        ValueError
            If it leads out of the memory.
        """
        order = self.layout.memory_order
        if view.order and order and view.order != order:
            raise Unknown
        dtype = text_to_dtype(view.dtype)
        if dtype != self.array.dtype and self.may_be_nan and self.array.dtype.kind != "V" and self.is_computed:
            raise Unknown
        if 0 in view.shape:
            return np.empty(view.shape, dtype)
        return np.ndarray(view.shape, dtype, self._data, view.offset, view.strides)

    def place(self, view: wire.View) -> int:
        """Return which of `cells` is the one number that ``view`` shows; -1 where `window` is to say what it shows."""
        count, layout = self._count, self.layout
        if count < 0:
            count = self._set_cells()
        if view.shape or view.dtype != layout.dtype_text or not count:
            return -1
        if view.order != layout.memory_order and view.order and layout.memory_order:
            return -1
        place, rest = divmod(view.offset, layout.itemsize)
        return place if not rest and 0 <= place < count else -1

    def _set_cells(self) -> int:
        layout = self.layout
        is_plain = layout.dtype_text in PLAIN
        if is_plain:
            self.cells: Array = np.ndarray((layout.size,), layout.dtype, self._data)
            self._is_open = self.cells.flags.writeable
        self._count = layout.size if is_plain else 0
        return self._count

    def part(self, target: wire.Value) -> Array:
        """Return the elements that ``target`` shows, a window or the whole; raises as `window`."""
        return self.window(target) if isinstance(target, wire.View) else self.array

    def write(self, target: wire.Value, values: Array, forget: Callable[[], object]) -> None:
        """Put ``values`` into ``target``, a window or the whole; ``forget`` it first: an interrupt may strike.

        Raises
        ------
        Unknown
            If elements of the window have memory in common.
        """
        shown = self.part(target)
        if not is_apart(shown):
            raise Unknown
        forget()
        self._open()
        shown = self.part(target)
        shown[...] = values
        self.is_computed = True

    def put(self, place: int, number: Any) -> None:
        """Put ``number``, which elements hold exactly, at a `place`; it is known no more meanwhile, as in `write`."""
        if not self._is_open:
            self._open()
        self.cells[place] = number
        self.is_computed = True

    def _open(self) -> None:
        # What was uploaded belongs to the message that carries it.
        if not self.array.flags.writeable:
            self._data = bytearray(self._data.tobytes("A") if isinstance(self._data, np.ndarray) else self._data)
            self.array = np.ndarray(self.array.shape, self.array.dtype, self._data, 0, self.array.strides)
            self._set_cells()


def _lies_so(array: Array, layout: Layout) -> bool:
    return array.shape == layout.shape and array.strides == layout.strides


def _copied(values: Array, layout: Layout) -> Array:
    return np.frombuffer(values.tobytes("C" if layout.c_contiguous else "F"), np.uint8)


def is_contiguous(layout: Layout) -> bool:
    """Tell whether an array of ``layout`` fills its memory in C's or Fortran's order."""
    return layout.c_contiguous or layout.f_contiguous


def is_apart(window: Array) -> bool:
    """Tell whether every element of ``window`` surely has memory of its own: else the order of writes would show."""
    if window.flags.c_contiguous or window.size < 2:
        return True
    reach = window.itemsize
    for stride, extent in sorted(zip(map(abs, window.strides), window.shape, strict=True)):
        if extent == 1:
            continue
        if stride < reach:
            return False
        reach = stride * (extent - 1) + reach
    return True
