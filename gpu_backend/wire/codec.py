"""Messages to frames and back. Every message opens with ``MAGIC`` and ``PROTOCOL_VERSION``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from gpu_backend.wire.errors import ForeignVersion, MalformedMessage, OversizedMessage
from gpu_backend.wire.version import MAGIC, PROTOCOL_VERSION

#: Largest encoded struct, without its buffers. A full batch of ordinary ops is some 10 kB.
MAX_HEADER_BYTES: Final = 8 << 20
#: Most buffers in one message.
MAX_FRAMES: Final = 1024

_PREFIX = bytes((MAGIC, PROTOCOL_VERSION))
#: A message of less is copied rather than looked at where it is.
_COPIED_BYTES: Final = 4_096
_encode: Final = msgspec.msgpack.Encoder().encode

M = TypeVar("M")
Frame = bytes | bytearray | memoryview


def encode(message: msgspec.Struct, buffers: Sequence[Frame] = ()) -> list[Frame]:
    """Return the frames of ``message``: the encoded struct, then ``buffers`` untouched."""
    return [_PREFIX + _encode(message), *buffers]


def size_of(frames: Sequence[Frame]) -> int:
    """Return how many bytes ``frames`` have together."""
    return len(frames[0]) if len(frames) == 1 else sum(map(len, frames))  # as nearly all, and then in no time


class Codec(Generic[M]):
    """Decodes the messages of one direction.

    Parameters
    ----------
    message_types
        The union of structs that may arrive. Anything else is refused by name.
    """

    def __init__(self, message_types: Any) -> None:
        self._decoder: msgspec.msgpack.Decoder[M] = msgspec.msgpack.Decoder(message_types)

    def decode(self, frames: Sequence[Frame]) -> M:
        """Return the message in ``frames[0]``; the buffers stay in ``frames[1:]``.

        Raises
        ------
        ForeignVersion
            If the first two bytes are not ours.
        OversizedMessage
            If the header or the number of frames is over its limit.
        MalformedMessage
            If the bytes are no message of this direction.
        """
        header = frames[0] if frames else b""
        is_usual = isinstance(header, bytes) and header[:2] == _PREFIX and len(frames) <= MAX_FRAMES
        # To copy a few bytes takes less than to look at them where they are.
        body = header[2:] if is_usual and len(header) < _COPIED_BYTES else _body(memoryview(header), len(frames) - 1)
        try:
            return self._decoder.decode(body)
        except (msgspec.DecodeError, ValueError, RecursionError, OverflowError) as error:
            raise MalformedMessage(f"The message does not decode: {error}") from None


def _body(header: memoryview, buffers: int) -> memoryview:
    """Return what is encoded there. Raises as `Codec.decode`."""
    if len(header) < len(_PREFIX):
        raise MalformedMessage("The message is empty.")
    if header[0] != MAGIC or header[1] != PROTOCOL_VERSION:
        raise ForeignVersion(_foreign(header))
    if len(header) > MAX_HEADER_BYTES or buffers > MAX_FRAMES:
        raise OversizedMessage(
            f"The message has a header of {len(header)} bytes and {buffers} buffers; "
            f"at most {MAX_HEADER_BYTES} bytes and {MAX_FRAMES} buffers are accepted."
        )
    return header[len(_PREFIX) :]


def _foreign(header: memoryview) -> str:
    if header[0] != MAGIC:
        return "The message is not of the gpu-workbench protocol."
    return (
        f"The peer speaks protocol version {header[1]}, this side speaks {PROTOCOL_VERSION}. "
        "Install the same version of gpu-workbench on both sides; a pool that is up since before an upgrade has to "
        "be restarted (`workbench pool down`, then `workbench pool up`)."
    )
