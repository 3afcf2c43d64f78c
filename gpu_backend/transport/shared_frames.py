"""Large frames by way of memory that two processes share: copied once in and once out, and not by the system."""

from __future__ import annotations

import mmap
from typing import Any
from weakref import ref

import numpy as np

from gpu_backend.transport.endings import at_end
from gpu_backend.wire.codec import Frame
from gpu_backend.wire.messages import CHUNK_BYTES

#: Largest frame that goes this way: a chunk.
BLOCK_BYTES = CHUNK_BYTES
#: Frames under way at a time, each way. What is more goes through the socket.
BLOCKS = 8
_STATES_BYTES = mmap.PAGESIZE
#: Of all: a page of states, and the blocks.
FRAMES_BYTES = _STATES_BYTES + 2 * BLOCKS * BLOCK_BYTES
_FREE, _TAKEN = 0, 1


class SharedFrames:
    """Blocks for frames of either direction. Whoever makes it sends by the first half, the other by the second.

    A block is taken by its sender and set free by its receiver, when the last object that looks into it is gone. No
    memory is used for blocks that were never needed.

    Parameters
    ----------
    memory
        Begins with the blocks. Its size is sealed: a peer that ends or misbehaves costs its own connection only.
    is_maker
        Whether this process made it.
    """

    def __init__(self, memory: mmap.mmap, is_maker: bool) -> None:
        self._memory = memory
        self._outgoing, self._incoming = (0, BLOCKS) if is_maker else (BLOCKS, 0)
        #: What sets each incoming block free.
        self._lent: dict[int, ref[Any]] = {}

    @property
    def is_full(self) -> bool:
        """True while all blocks of this side are taken."""
        return self._free_place() < 0

    def _free_place(self) -> int:
        return self._memory.find(bytes((_FREE,)), self._outgoing, self._outgoing + BLOCKS)

    def put(self, frame: Frame) -> int | None:
        """Copy ``frame`` into a block and return its number; None if all are taken."""
        place = self._free_place()
        if place < 0:
            return None
        start = _start(place)
        self._memory[start : start + len(frame)] = frame
        self._memory[place] = _TAKEN
        return place - self._outgoing

    def take(self, block: int, length: int) -> memoryview:
        """Return the frame of ``length`` bytes that the peer put into ``block``.

        Raises
        ------
        ValueError
            If there can be none.
        """
        place = self._incoming + block
        if not (0 <= block < BLOCKS and 0 < length <= BLOCK_BYTES and self._memory[place] == _TAKEN):
            raise ValueError(f"a frame of {length} bytes in block {block}")
        seen = np.frombuffer(self._memory, np.uint8, length, _start(place))
        self._lent[place] = at_end(seen, self._memory.__setitem__, place, _FREE)
        return seen.data


def _start(place: int) -> int:
    return _STATES_BYTES + place * BLOCK_BYTES
