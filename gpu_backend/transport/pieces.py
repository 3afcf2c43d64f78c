"""Large frames in pieces: how they are cut, and putting them together in whichever order the pieces come. Pure.

A piece carries the number of its frame and where in that it lies; how long it is follows from both. So there is nothing
to be said of two pieces that overlap, or of one that reaches beyond its frame: a place is one of the frame's, or none.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from gpu_backend.wire.codec import Frame

__all__ = ["HEADER", "LEAST_BYTES", "PIECE_BYTES", "FrameInPieces", "Piece", "cut"]

#: So much is one piece, but for the last of a frame: it stays in a processor's own cache while it is worked at.
PIECE_BYTES = 256 << 10
#: Smaller frames are not cut.
LEAST_BYTES = 2 * PIECE_BYTES
#: Before each piece: the number of its frame, and where it lies there.
HEADER = struct.Struct("<QQ")


class Piece(NamedTuple):
    """A part of a frame."""

    frame: int
    offset: int
    content: memoryview


def cut(number: int, frame: Frame) -> list[Piece]:
    """Return the pieces of ``frame``, which is the one of that ``number``."""
    content = memoryview(frame).cast("B")
    return [Piece(number, start, content[start : start + PIECE_BYTES]) for start in range(0, len(content), PIECE_BYTES)]


class FrameInPieces:
    """A frame of ``size`` bytes that is on its way. Each of its pieces is taken once."""

    def __init__(self, size: int) -> None:
        #: Its bytes, as far as they have come; where they have not, whatever lay there before.
        self.content = np.empty(size, np.uint8).data
        self._unclaimed = set(range(0, size, PIECE_BYTES))
        self._missing = len(self._unclaimed)

    @property
    def is_whole(self) -> bool:
        """True once all has come."""
        return not self._missing

    def claim(self, offset: int) -> memoryview:
        """Return the place of the piece at ``offset``, which nobody else is given; call `note_filled` afterwards.

        Raises
        ------
        ValueError
            If the frame has no such piece, or had it before.
        """
        if offset not in self._unclaimed:
            raise ValueError(f"a piece at {offset} that is none of its frame, or came before")
        self._unclaimed.remove(offset)
        return self.content[offset : offset + PIECE_BYTES]

    def note_filled(self) -> None:
        """Note that a place that was claimed holds its bytes."""
        self._missing -= 1
