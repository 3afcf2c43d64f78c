"""Large frames by way of memory that two processes share: copied once in and once out, and not by the system."""

from __future__ import annotations

import mmap
from typing import Any
from weakref import ref

import numpy as np

from gpu_backend.transport.copying import Bytes, address_of, copy
from gpu_backend.transport.endings import ending
from gpu_backend.wire.codec import Frame
from gpu_backend.wire.messages import CHUNK_BYTES

__all__ = ["BLOCKS", "BLOCK_BYTES", "FRAMES_BYTES", "SharedFrames"]

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

    A block of this side is lent to whoever fills it, and sent as it is. It can be lent again when nobody here looks
    into it any more, and the receiver, when the last object there that looks into it is gone, has set it free. The
    latter is a byte in the memory itself. What the peer makes of that, or writes into a block, garbles what it is told
    itself.

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
        self._address = address_of(np.frombuffer(memory, np.uint8))
        #: What was lent of each outgoing block that somebody here looks into; it takes itself out of this.
        self._filled: dict[int, ref[Any]] = {}
        #: What was taken of each incoming block; it sets that free.
        self._seen: dict[int, ref[Any]] = {}
        self._at_end_of_filled = [ending(self._filled.pop, place, None) for place in range(2 * BLOCKS)]
        self._at_end_of_seen = [ending(memory.__setitem__, place, _FREE) for place in range(2 * BLOCKS)]

    @property
    def is_full(self) -> bool:
        """True while no block of this side can be lent."""
        return self._free_place() < 0

    def _free_place(self) -> int:
        for place in range(self._outgoing, self._outgoing + BLOCKS):
            if place not in self._filled and self._memory[place] == _FREE:
                return place
        return -1

    def lend(self, size: int, leaving: int = 0) -> Bytes | None:
        """Return a block's first ``size`` bytes, to be filled and put; None if there is none, or it would not fit.

        Nor is one lent of which others than ``leaving`` are not to be had.
        """
        if not 0 < size <= BLOCK_BYTES or (leaving and len(self._filled) >= BLOCKS - leaving):
            return None
        place = self._free_place()
        if place < 0:
            return None
        seen = np.frombuffer(self._memory, np.uint8, size, _start(place))
        # Another thread, or a finalizer, may have chosen the same meanwhile: then ours is forgotten, before its array.
        if self._filled.setdefault(place, ref(seen, self._at_end_of_filled[place]))() is not seen:
            return None
        # And it may have been filled and put by now, too: that is seen by the state, looked at last.
        return seen if self._memory[place] == _FREE else None

    def holds(self, frame: Frame) -> bool:
        """Tell whether ``frame`` lies in a block that was lent, from its first byte on."""
        return self._place_of(frame) >= 0

    def _place_of(self, frame: Frame) -> int:
        if type(frame) is not memoryview:
            return -1
        for filled, lent in list(self._filled.items())[::-1]:  # what was lent last is mostly what is asked for
            seen = lent()
            if seen is not None and seen.nbytes == frame.nbytes and seen is frame.obj:  # all that was lent
                return filled
        offset = address_of(np.frombuffer(frame, np.uint8)) - self._address - _STATES_BYTES
        place, within = divmod(offset, BLOCK_BYTES)
        return place if not within and self._outgoing <= place < self._outgoing + BLOCKS else -1

    def placed(self, frame: Frame) -> Frame | None:
        """Return ``frame`` as it lies in a block, copied there unless it does already; None if all are taken."""
        if self.holds(frame):
            return frame
        block = self.lend(len(frame))
        if block is None:
            return None
        copy(block, np.frombuffer(frame, np.uint8))
        return block.data

    def put(self, frame: Frame) -> int | None:
        """Hand ``frame`` to the peer if it lies in a block, and return that one's number; None if it does not."""
        place = self._place_of(frame)
        if place < 0:
            return None
        self._memory[place] = _TAKEN
        return place - self._outgoing

    def take_back(self, block: int) -> None:
        """Have it that ``block`` was not put: the peer was not told of it."""
        self._memory[block + self._outgoing] = _FREE

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
        self._seen[place] = ref(seen, self._at_end_of_seen[place])
        return seen.data

    def blocks(self) -> list[Bytes]:
        """Return the memory of each block of either direction."""
        return [np.frombuffer(self._memory, np.uint8, BLOCK_BYTES, _start(place)) for place in range(2 * BLOCKS)]


def _start(place: int) -> int:
    return _STATES_BYTES + place * BLOCK_BYTES
