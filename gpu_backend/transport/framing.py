"""Messages of several frames on a stream of bytes: how they are written, and reading them.

A message is a ``u32`` number of frames, a ``u64`` length for each, and the frames' bytes; all little-endian. Large
frames do not pass through the stream where both sides share memory for them: then the length also says in which block
they lie. Nor do they where there are lanes beside it: then the length says that they come by those, in pieces.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from gpu_backend.transport.lost import ConnectionLost
from gpu_backend.transport.pieces import FrameInPieces
from gpu_backend.transport.shared_frames import SharedFrames
from gpu_backend.transport.sockets import MAX_FRAME_BYTES
from gpu_backend.transport.whole import HEAD, IN_BLOCK
from gpu_backend.wire.codec import MAX_FRAMES, Frame

_COUNT: Final = struct.Struct("<I")
_LENGTH: Final = struct.Struct("<Q")
#: In the length of a frame that lies in a block, that one's number is in the bits from this on.
_BLOCK_SHIFT: Final = 40
#: Set in the length of a frame that comes by the lanes.
_BY_LANES: Final = 1 << 62
#: Read in one go, into memory that stays: to have the system give and take it back costs ten times the reading.
READ_BYTES: Final = 256 << 10
#: Largest message that is read; its sender is cut off. The largest that the protocol needs is the upload of one op's
#: arguments, and what is larger than a frame may be travels in pieces.
MAX_MESSAGE_BYTES: Final = 1 << 30


class Stream(Protocol):
    """Carries bytes, as a socket that does not block does. What it cannot do at once raises a BlockingIOError."""

    def fileno(self) -> int:
        """Return the descriptor, for a poller."""

    def send(self, data: bytes | memoryview, /) -> int:
        """Send some of ``data``; return how much. After a BlockingIOError, the next call brings the same again."""

    def recv_into(self, buffer: memoryview, /) -> int:
        """Read into ``buffer`` what there is; return how much, 0 after the end."""

    def close(self) -> None:
        """Close at once."""


def single(frame: Frame) -> bytes:
    """Return the message of one ``frame``."""
    return HEAD.pack(1, len(frame)) + frame


def head_beside_lanes(frames: Sequence[Frame], by_lanes: Sequence[bool]) -> bytes:
    """Return what stands before the bytes of ``frames``, but for those that go ``by_lanes``."""
    lengths = [len(one) | (_BY_LANES if is_by_lanes else 0) for one, is_by_lanes in zip(frames, by_lanes, strict=True)]
    return _COUNT.pack(len(frames)) + b"".join(map(_LENGTH.pack, lengths))


def place_of(block: int, length: int) -> int:
    """Return what the length of a frame that lies in ``block`` says beside that it does."""
    return block << _BLOCK_SHIFT | length


def head(frames: Sequence[Frame], blocks: Sequence[int | None]) -> bytes:
    """Return what stands before the bytes of ``frames``, of which some lie in ``blocks``."""
    lengths = [
        len(frame) if block is None else IN_BLOCK | place_of(block, len(frame))
        for frame, block in zip(frames, blocks, strict=True)
    ]
    return _COUNT.pack(len(frames)) + b"".join(map(_LENGTH.pack, lengths))


class MessageReader:
    """Reads messages from ``stream``.

    Parameters
    ----------
    shared
        The memory for large frames, if there is some.
    has_pending
        Tells whether more may have arrived by a stream than was read from it, where that can be.
    expect
        Announces a frame of some size to the lanes, where there can be any.
    most_bytes
        The largest message that is read; its sender is cut off.
    """

    def __init__(
        self,
        stream: Stream,
        shared: SharedFrames | None = None,
        has_pending: Callable[[], bool] | None = None,
        expect: Callable[[int], FrameInPieces] | None = None,
        most_bytes: int = MAX_MESSAGE_BYTES,
    ) -> None:
        #: The memory for large frames.
        self.shared = shared
        #: Frames of the messages that were received last which come by the lanes; for who receives to take away.
        self.awaited: list[FrameInPieces] = []
        self._expect = expect
        self._most_bytes = most_bytes
        self._stream = stream
        self._has_pending = has_pending
        self._arrived = memoryview(bytearray(READ_BYTES))
        self._read = bytearray()
        self._large: _LargeMessage | None = None

    @property
    def has_read_ahead(self) -> bool:
        """True while something has been read that was not yet received."""
        if self._read or self._large is not None:
            return True
        return self._has_pending is not None and self._has_pending()

    def receive(self) -> list[Frame] | None:
        """Return the next message, or None if none is complete.

        Raises
        ------
        ConnectionLost
            If the peer is gone or sends what is no message.
        """
        if self._read:
            message = self._parse()
            if message is not None:
                return message
        try:
            if self._large is not None:
                self._large.read_from(self._stream)
                return self._finish_large()
            taken = self._stream.recv_into(self._arrived)
        except BlockingIOError:
            return None
        except OSError as error:
            raise ConnectionLost(str(error)) from None
        if not taken:
            raise ConnectionLost("the peer closed the connection")
        arrived = self._arrived
        if not self._read and taken > HEAD.size and HEAD.unpack_from(arrived) == (1, taken - HEAD.size):
            return [bytes(arrived[HEAD.size : taken])]  # as nearly all are: one frame, and whole
        self._read += arrived[:taken]
        return self._parse()

    def _parse(self) -> list[Frame] | None:
        read = self._read
        if len(read) < _COUNT.size:
            return None
        (count,) = _COUNT.unpack_from(read)
        if not 0 < count <= MAX_FRAMES + 1:
            raise ConnectionLost(f"a message of {count} frames")
        start = _COUNT.size + count * _LENGTH.size
        if len(read) < start:
            return None
        lengths = struct.unpack_from(f"<{count}Q", read, _COUNT.size)
        total = _size_by_stream(lengths, self._most_bytes)
        if len(read) < start + total:
            if total > READ_BYTES:
                self._large = _LargeMessage(lengths, total, memoryview(bytes(read))[start:])
                self._read = bytearray()
            return None
        frames = self._split(memoryview(bytes(read[start : start + total])), lengths)
        del read[: start + total]
        return frames

    def _split(self, content: memoryview, lengths: Sequence[int]) -> list[Frame]:
        frames: list[Frame] = []
        start = 0
        for length in lengths:
            if length & IN_BLOCK:
                frames.append(self.in_block(length ^ IN_BLOCK))
            elif length & _BY_LANES:
                frames.append(self._by_lanes(length ^ _BY_LANES))
            else:
                frames.append(content[start : start + length])
                start += length
        return frames

    def _by_lanes(self, size: int) -> memoryview:
        if self._expect is None:
            raise ConnectionLost("a frame by lanes that there are none of")
        frame = self._expect(size)
        self.awaited.append(frame)
        return frame.content

    def in_block(self, place: int) -> memoryview:
        """Return the frame of which its length says so, as `place_of`. Raises as `receive`."""
        if self.shared is None:
            raise ConnectionLost("a frame in memory that was never shared")
        try:
            return self.shared.take(place >> _BLOCK_SHIFT, place & ((1 << _BLOCK_SHIFT) - 1))
        except ValueError as error:
            raise ConnectionLost(str(error)) from None

    def _finish_large(self) -> list[Frame] | None:
        large = self._large
        if large is None or not large.is_complete:
            return None
        self._large = None
        return self._split(large.content, large.lengths)


def _size_by_stream(lengths: Sequence[int], most_bytes: int) -> int:
    """Return how many bytes of a message come by the stream, having checked that it is none too large."""
    by_stream = [length for length in lengths if not length & (IN_BLOCK | _BY_LANES)]
    by_lanes = [length ^ _BY_LANES for length in lengths if length & (IN_BLOCK | _BY_LANES) == _BY_LANES]
    largest = max(by_stream + by_lanes, default=0)
    if largest > MAX_FRAME_BYTES:
        raise ConnectionLost(f"a frame of {largest} bytes")
    total = sum(by_stream) + sum(by_lanes)
    if total > most_bytes:
        raise ConnectionLost(f"a message of {total} bytes")
    return sum(by_stream)


class _LargeMessage:
    """A message whose bytes go straight to where they stay."""

    def __init__(self, lengths: Sequence[int], size: int, begun: memoryview) -> None:
        self.lengths = lengths
        self.content = memoryview(bytearray(size))
        self.content[: len(begun)] = begun
        self._filled = len(begun)

    @property
    def is_complete(self) -> bool:
        return self._filled == len(self.content)

    def read_from(self, source: Stream) -> None:
        while not self.is_complete:
            taken = source.recv_into(self.content[self._filled :])
            if not taken:
                raise ConnectionLost("the peer closed the connection")
            self._filled += taken
