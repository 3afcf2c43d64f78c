"""How two processes of one host come to share memory, once each has proved to know the secret: asked and answered once.

Who connects says whether it has memory to share, with the descriptor of it if so; who listens answers whether it has
it. Then both use it from the first message on, or neither does: a descriptor does not pass every way that bytes do.
"""

from __future__ import annotations

import mmap
import os
import socket
from typing import NamedTuple

from gpu_backend.transport import sealed
from gpu_backend.transport.ring import RINGS_BYTES, RingStream, has_rings
from gpu_backend.transport.shared_frames import FRAMES_BYTES, SharedFrames

__all__ = ["ANSWER_BYTES", "OFFER_BYTES", "Memory", "is_joined", "join", "make", "offer", "offered"]

#: What each side says; a descriptor comes with the offer of memory.
_MEMORY, _NONE = b"\1", b"\0"
OFFER_BYTES = ANSWER_BYTES = 1
_SIZE = FRAMES_BYTES + RINGS_BYTES


class Memory(NamedTuple):
    """What two processes share."""

    #: What everything but large frames passes through: the rings, or the socket where there can be none.
    stream: RingStream | socket.socket
    frames: SharedFrames


def make() -> int:
    """Return the descriptor of memory to share, which the caller closes.

    Raises
    ------
    OSError
        If the system has none to give.
    """
    return sealed.make("ring", _SIZE)


def offer(connected: socket.socket, descriptor: int | None) -> None:
    """Offer the memory of ``descriptor`` to the peer, or say that there is none."""
    if descriptor is None:
        connected.send(_NONE)
    else:
        socket.send_fds(connected, [_MEMORY], [descriptor])


def offered(connected: socket.socket) -> Memory | None:
    """Take what the peer offers, answer, and return what is shared from now on; None for nothing.

    Raises
    ------
    BlockingIOError
        If it has not said yet.
    OSError
        If it is gone, or what it offers is not of that size for good.
    """
    told, descriptors, _, _ = socket.recv_fds(connected, OFFER_BYTES, 1)
    try:
        if told not in (_MEMORY, _NONE):
            raise ConnectionAbortedError("the peer offers nothing known")
        memory = join(connected, descriptors[0], is_maker=False) if descriptors else None
        connected.send(_NONE if memory is None else _MEMORY)
        return memory
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def is_joined(answer: bytes) -> bool:
    """Tell whether the peer has taken what was offered."""
    return answer == _MEMORY


def join(connected: socket.socket, descriptor: int, is_maker: bool) -> Memory:
    """Map the memory of ``descriptor``, which stays the caller's. What was said by ``connected`` so far was all heard.

    Raises
    ------
    NotSealed
        If it is no such memory, or could lose its size.
    """
    sealed.require(descriptor, _SIZE)
    memory = mmap.mmap(descriptor, _SIZE)
    stream = RingStream(connected, memory, FRAMES_BYTES, is_maker) if has_rings() else connected
    return Memory(stream, SharedFrames(memory, is_maker))
