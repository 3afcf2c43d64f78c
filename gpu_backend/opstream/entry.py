"""An entry of the journal: ops that travel in one message."""

from __future__ import annotations

from typing import Self

from gpu_backend.wire.codec import Frame
from gpu_backend.wire.messages import Op


class Entry:
    """Ops of one message. The first has number ``first``; ``frames`` are the buffers that travel with them.

    ``bytes`` is the size of the frames, and ``size`` that of the whole message once it was sent. ``last`` is the number
    of the last op, as of when the journal took the entry: it is read often, and counted once.
    """

    __slots__ = ("bytes", "first", "frames", "kept_bytes", "last", "ops", "size")

    def __init__(self, first: int) -> None:
        self.first = first
        self.ops: list[Op] = []
        self.frames: list[Frame] = []
        self.bytes = self.size = 0
        self.kept_bytes = 0  # of all entries that were ever kept, up to this one
        self.last = first - 1

    @property
    def end(self) -> int:
        """Number of the op that would be the next."""
        return self.first + len(self.ops)

    def part(self, place: int) -> Self:
        """Return an entry with nothing but the op at ``place``."""
        part = type(self)(self.first + place)
        part.ops, part.frames, part.bytes = [self.ops[place]], self.frames, self.bytes
        part.last = part.first
        return part

    def own(self) -> None:
        """Copy the frames that lie in memory of others, who may change it."""
        if any(type(frame) is not bytes for frame in self.frames):
            self.frames = [frame if type(frame) is bytes else bytes(frame) for frame in self.frames]
