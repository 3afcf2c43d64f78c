"""What the notebook may know of an array: memory, a number, a promise, that it is on its way, or what was counted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpu_backend.opstream.layout import Layout, contiguous
from gpu_backend.wire import values as wire
from kernelproxy.mirror.memory import Memory

Args = tuple[wire.Value, ...]
Kwargs = dict[str, wire.Value] | None


class Promise:
    """An array that is known once somebody wants it: bytes, or the op that makes it of nothing.

    ``is_told`` says that the bytes are what somebody has read, and not what was uploaded.
    """

    __slots__ = ("args", "data", "is_told", "kwargs", "layout", "name")

    def __init__(
        self, layout: Layout, data: bytes | None, name: str = "", args: Args = (), kwargs: Kwargs = None,
        is_told: bool = False,
    ) -> None:  # fmt: skip
        self.layout = layout
        self.data, self.is_told = data, is_told
        self.name = name
        self.args = args
        self.kwargs = kwargs


class Number:
    """A number that was computed here and is its op's one result: most are read, and no more is wanted of them."""

    __slots__ = ("layout", "may_be_nan", "value")

    def __init__(self, layout: Layout, value: float, may_be_nan: bool) -> None:
        self.layout = layout
        #: Python's, which ``layout``'s dtype holds exactly.
        self.value = value
        self.may_be_nan = may_be_nan

    def as_memory(self) -> Memory:
        """Return it as memory, for what else may be done with it."""
        memory = Memory(self.layout, np.array(self.value, self.layout.dtype))
        memory.may_be_nan, memory.is_computed = self.may_be_nan, True
        return memory


class Awaited:
    """Stands for memory that is being read: whoever writes it before it is here ends that."""

    __slots__ = ("layout",)

    def __init__(self, layout: Layout) -> None:
        self.layout = layout


class Bins(NamedTuple):
    """How many bins integers need that are counted, at least and at most."""

    least: int
    most: int


class Counted:
    """Stands for memory of which no more is known than what was counted there.

    ``counts`` holds of masks how many of their elements are true, and ``bins`` what integers need, by what shows them.
    """

    __slots__ = ("bins", "counts")
    #: Of what is held here of the memory: nothing.
    layout = contiguous((0,), np.dtype(bool))

    def __init__(self) -> None:
        self.counts: dict[wire.Ref | wire.View, int] = {}
        self.bins: dict[wire.Ref | wire.View, Bins] = {}


Entry = Memory | Number | Promise | Awaited | Counted
