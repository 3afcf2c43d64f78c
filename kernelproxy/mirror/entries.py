"""What the notebook may know of an array: its memory, a promise of it, that it is on its way, or how much is true."""

from __future__ import annotations

import numpy as np

from gpu_backend.opstream.layout import Layout, contiguous
from gpu_backend.wire import values as wire
from kernelproxy.mirror.memory import Memory

Args = tuple[wire.Value, ...]
Kwargs = dict[str, wire.Value] | None


class Promise:
    """An array that is known once somebody wants it: uploaded bytes, or the op that makes it of nothing."""

    __slots__ = ("args", "data", "kwargs", "layout", "name")

    def __init__(
        self, layout: Layout, data: bytes | None, name: str = "", args: Args = (), kwargs: Kwargs = None
    ) -> None:
        self.layout = layout
        self.data = data
        self.name = name
        self.args = args
        self.kwargs = kwargs


class Awaited:
    """Stands for memory that is being read: whoever writes it before it is here ends that."""

    __slots__ = ("layout",)

    def __init__(self, layout: Layout) -> None:
        self.layout = layout


class Counted:
    """Stands for masks in memory of which no more is known than how many of their elements are true.

    ``counts`` holds that by what shows the mask.
    """

    __slots__ = ("counts",)
    #: Of what is held here of the memory: nothing.
    layout = contiguous((0,), np.dtype(bool))

    def __init__(self) -> None:
        self.counts: dict[wire.Ref | wire.View, int] = {}


Entry = Memory | Promise | Awaited | Counted
