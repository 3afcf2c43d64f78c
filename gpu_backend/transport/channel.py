"""The connection between two executors of one user, once that is proved: messages, and none of them large."""

from __future__ import annotations

from gpu_backend.transport.framing import MessageReader, Stream
from gpu_backend.transport.message_socket import MessageSocket
from gpu_backend.transport.shared_frames import BLOCK_BYTES, SharedFrames
from gpu_backend.transport.tls import TlsStream

__all__ = ["channel"]

#: Beside a piece of an array: what says which one it is.
_HEAD_BYTES = 64 << 10


def channel(stream: Stream, frames: SharedFrames | None = None) -> MessageSocket:
    """Return what takes messages by ``stream``, and large frames by memory that both share, if there is some."""
    has_pending = (lambda: stream.has_pending) if isinstance(stream, TlsStream) else None
    return MessageSocket(stream, MessageReader(stream, frames, has_pending, most_bytes=BLOCK_BYTES + _HEAD_BYTES))
