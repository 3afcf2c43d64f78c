"""Messages of one frame that lie whole in a ring, as nearly all do: taken out and put in at once, in C where compiled.

All others are `framing`'s: those of several frames, larger than the ring, or of which only a part has come yet.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from gpu_backend import sources
from gpu_backend.wire.codec import Frame

__all__ = ["HEAD", "put", "take"]

#: What stands before a frame that is alone in its message: how many there are, and how long it is.
HEAD: Final = struct.Struct("<IQ")
_HEAD_BYTES: Final = HEAD.size

Take = Callable[[memoryview, int, int, int, memoryview], bytes | None]
Put = Callable[[memoryview, int, int, int, memoryview, Frame], int]


def _taken(words: memoryview, put_at: int, taken_at: int, taken: int, ring: memoryview) -> bytes | None:
    there = words[put_at] - taken
    if not _HEAD_BYTES < there <= len(ring):
        return None
    frames, size = HEAD.unpack(_copied(ring, taken, _HEAD_BYTES))
    if frames != 1 or not 0 < size <= there - _HEAD_BYTES:
        return None
    frame = _copied(ring, taken + _HEAD_BYTES, size)
    words[taken_at] = taken + _HEAD_BYTES + size
    return frame


def _copied(ring: memoryview, start: int, size: int) -> bytes:
    at = start % len(ring)
    first = bytes(ring[at : at + size])
    return first if len(first) == size else first + ring[: size - len(first)]


def _put(words: memoryview, put_at: int, taken_at: int, put: int, ring: memoryview, frame: Frame) -> int:
    lies, message = put - words[taken_at], HEAD.pack(1, len(frame)) + frame
    size, at = len(message), put % len(ring)
    if size == _HEAD_BYTES or not 0 <= lies <= len(ring) - size:
        return 0
    first = min(size, len(ring) - at)
    ring[at : at + first] = message[:first]
    ring[: size - first] = message[first:]
    words[put_at] = put + size
    return size


_compiled = sources.in_c("gpu_backend.transport._whole")

#: Takes the next message out of a ring, if it is of one frame and lies there whole; else takes nothing, and is None.
#: It is given the words, the places of how much was put in and was taken out, how much that was, and the ring.
take: Take = _taken if _compiled is None else _compiled.take
#: Puts a message of one frame into a ring, if there is room for all of it; returns how many bytes that took, or 0.
#: It is given the words, the places of how much was put in and was taken out, how much was put in, and the ring.
put: Put = _put if _compiled is None else _compiled.put
