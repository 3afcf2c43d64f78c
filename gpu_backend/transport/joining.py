"""How two processes of one host come to share memory, once each has proved to know the secret: asked and answered once.

Who listens has made the memory before anybody came, so that it can be ready, and offers it with its descriptor; who
connects answers whether it has it. Then both use it from the first message on, or neither does: a descriptor does not
pass every way that bytes do.
"""

from __future__ import annotations

import mmap
import os
import socket
from typing import NamedTuple

from gpu_backend.transport import sealed
from gpu_backend.transport.ring import RINGS_BYTES, RingStream, has_rings
from gpu_backend.transport.shared_frames import FRAMES_BYTES, SharedFrames

__all__ = ["Memory", "Room", "is_taken", "joined", "make", "offer", "offered"]

#: What each side says; a descriptor comes with the offer of memory.
_MEMORY, _NONE = b"\1", b"\0"
_WORD_BYTES = 1
_SIZE = FRAMES_BYTES + RINGS_BYTES


class Room(NamedTuple):
    """Memory to share with one peer. ``descriptor`` is there until it is offered."""

    descriptor: int
    memory: mmap.mmap
    frames: SharedFrames


class Memory(NamedTuple):
    """What two processes share."""

    #: What everything but large frames passes through: the rings, or the socket where there can be none.
    stream: RingStream | socket.socket
    frames: SharedFrames


def make() -> Room:
    """Return memory to offer to one peer.

    Raises
    ------
    OSError
        If the system has none to give.
    """
    descriptor = sealed.make("ring", _SIZE)
    try:
        memory = mmap.mmap(descriptor, _SIZE)
    except BaseException:  # nothing may stay open
        os.close(descriptor)
        raise
    return Room(descriptor, memory, SharedFrames(memory, is_maker=True))


def offer(connected: socket.socket, room: Room | None) -> OSError | None:
    """Offer ``room`` to the peer, by its descriptor, which is closed; or say that there is none.

    Return why the descriptor could not be passed, if so: then the peer is told that there is none. The system lets an
    account have so many under way and no more, which others of that account may be.

    Raises
    ------
    OSError
        If it is gone.
    """
    if room is None:
        connected.send(_NONE)
        return None
    try:
        socket.send_fds(connected, [_MEMORY], [room.descriptor])
    except OSError as error:
        connected.send(_NONE)  # raises as well if the peer is gone
        return error
    finally:
        os.close(room.descriptor)
    return None


def is_taken(connected: socket.socket) -> bool:
    """Tell whether the peer has taken what was offered.

    Raises
    ------
    BlockingIOError
        If it has not said yet.
    OSError
        If it is gone, or what it says is none of this.
    """
    answer = connected.recv(_WORD_BYTES)
    if answer not in (_MEMORY, _NONE):
        raise ConnectionAbortedError("the peer says nothing known")
    return answer == _MEMORY


def joined(connected: socket.socket, room: Room) -> Memory:
    """Return what is shared of ``room`` from now on. What was said by ``connected`` so far was all heard."""
    return _shared(connected, room.memory, room.frames, is_maker=True)


def offered(connected: socket.socket) -> Memory | None:
    """Take what the peer offers, answer, and return what is shared from now on; None for nothing.

    Raises
    ------
    BlockingIOError
        If it has not said yet.
    OSError
        If it is gone, or what it offers is not of that size for good.
    """
    told, descriptors, _, _ = socket.recv_fds(connected, _WORD_BYTES, 1)
    try:
        if told not in (_MEMORY, _NONE):
            raise ConnectionAbortedError("the peer offers nothing known")
        memory = _mapped(descriptors[0]) if descriptors else None
        connected.send(_NONE if memory is None else _MEMORY)
        return None if memory is None else _shared(connected, memory, SharedFrames(memory, is_maker=False), False)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _mapped(descriptor: int) -> mmap.mmap | None:
    sealed.require(descriptor, _SIZE)
    try:
        return mmap.mmap(descriptor, _SIZE)
    except OSError:  # this process has no room for it
        return None


def _shared(connected: socket.socket, memory: mmap.mmap, frames: SharedFrames, is_maker: bool) -> Memory:
    stream = RingStream(connected, memory, FRAMES_BYTES, is_maker) if has_rings() else connected
    return Memory(stream, frames)
