"""Messages that lie whole in a ring, as nearly all do: taken out and put in at once, in C where compiled.

They are of one frame, or of one and another that lies in a block of shared memory. All others are `framing`'s: those of
more frames, larger than the ring, or of which only a part has come yet.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from gpu_backend import sources
from gpu_backend.wire.codec import Frame

__all__ = ["HEAD", "HEAD_OF_TWO", "IN_BLOCK", "put", "take"]

#: What stands before a frame that is alone in its message: how many there are, and how long it is.
HEAD: Final = struct.Struct("<IQ")
#: The same where another frame lies in a block.
HEAD_OF_TWO: Final = struct.Struct("<IQQ")
#: Set in the length of a frame that lies in a block; the bits below say in which, and how long it is.
IN_BLOCK: Final = 1 << 63

#: A frame; or one, and what says where the other lies; or nothing.
Taken = bytes | tuple[bytes, int] | None
Take = Callable[[memoryview, int, int, int, memoryview], Taken]
Put = Callable[[memoryview, int, int, int, memoryview, Frame, int], int]


def _taken(words: memoryview, put_at: int, taken_at: int, taken: int, ring: memoryview) -> Taken:
    there = words[put_at] - taken
    if not HEAD.size < there <= len(ring):
        return None
    (frames, size), head, beside = HEAD.unpack(_copied(ring, taken, HEAD.size)), HEAD.size, 0
    if frames == 2 and there > HEAD_OF_TWO.size:
        head = HEAD_OF_TWO.size
        _, size, beside = HEAD_OF_TWO.unpack(_copied(ring, taken, head))
    if frames - 1 != beside >> 63 or not 0 < size <= there - head:
        return None
    frame = _copied(ring, taken + head, size)
    words[taken_at] = taken + head + size
    return (frame, beside ^ IN_BLOCK) if beside else frame


def _copied(ring: memoryview, start: int, size: int) -> bytes:
    at = start % len(ring)
    first = bytes(ring[at : at + size])
    return first if len(first) == size else first + ring[: size - len(first)]


def _put(words: memoryview, put_at: int, taken_at: int, put: int, ring: memoryview, frame: Frame, beside: int) -> int:
    head = HEAD_OF_TWO.pack(2, len(frame), IN_BLOCK | beside) if beside else HEAD.pack(1, len(frame))
    lies, message = put - words[taken_at], head + frame
    size, at = len(message), put % len(ring)
    if not len(frame) or not 0 <= lies <= len(ring) - size:
        return 0
    first = min(size, len(ring) - at)
    ring[at : at + first] = message[:first]
    ring[: size - first] = message[first:]
    words[put_at] = put + size
    return size


_compiled = sources.in_c("gpu_backend.transport._whole")

#: Takes the next message out of a ring, if it is such and lies there whole; else takes nothing, and is None. Where a
#: frame lies beside it in a block, what says so comes with it, as `put` was given it: nobody has looked at that.
#: It is given the words, the places of how much was put in and was taken out, how much that was, and the ring.
take: Take = _taken if _compiled is None else _compiled.take
#: Puts a message into a ring, if there is room for all of it; returns how many bytes that took, or 0. It is given the
#: words, the places of how much was put in and was taken out, how much was put in, the ring, the frame, and where
#: another lies beside it in a block: what its length says but for `IN_BLOCK`, or 0 if there is none.
put: Put = _put if _compiled is None else _compiled.put
