"""The connection between two executors of one user, once that is proved: messages, and none of them large."""

from __future__ import annotations

import os
import socket

from gpu_backend.transport import tls
from gpu_backend.transport.framing import MessageReader, Stream
from gpu_backend.transport.message_socket import MessageSocket
from gpu_backend.transport.shared_frames import BLOCK_BYTES, SharedFrames
from gpu_backend.transport.tls import TlsStream

__all__ = ["channel", "is_silent"]

#: Beside a piece of an array: what says which one it is.
_HEAD_BYTES = 64 << 10


def channel(stream: Stream, frames: SharedFrames | None = None) -> MessageSocket:
    """Return what takes messages by ``stream``, and large frames by memory that both share, if there is some."""
    has_pending = (lambda: stream.has_pending) if isinstance(stream, TlsStream) else None
    return MessageSocket(stream, MessageReader(stream, frames, has_pending, most_bytes=BLOCK_BYTES + _HEAD_BYTES))


def is_silent(connected: MessageSocket) -> bool:
    """Tell whether the peer's host has not answered for long although it should have; never of one of this host."""
    try:
        shown = socket.socket(fileno=os.dup(connected.fileno()))
    except OSError:  # no descriptor is left to look by
        return False
    with shown:
        return shown.family != socket.AF_UNIX and tls.is_silent(shown)
