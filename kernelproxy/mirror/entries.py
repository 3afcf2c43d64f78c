"""What the notebook may know of an array: its memory, a promise of it, that it is on its way, or what was counted."""

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


Entry = Memory | Promise | Awaited | Counted
