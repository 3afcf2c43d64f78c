"""Lanes: further streams beside a connection, by which large frames travel in pieces, each with a thread of its own.

What TLS takes for encrypting and decrypting is more than what the system takes for carrying, and one stream has one
processor for it. Encryption lets go of the interpreter, so threads do. A lane carries pieces one way only, because one
thread at a time may use a stream of TLS. Whoever is at the other end may be hostile: a piece is read when its frame
has been announced, into its place there, and nothing is kept of what comes otherwise.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from gpu_backend.transport.framing import Stream
from gpu_backend.transport.pieces import HEADER, PIECE_BYTES, FrameInPieces, Piece, cut
from gpu_backend.transport.secret_proof import NAME_BYTES
from gpu_backend.wire.codec import Frame

__all__ = ["REQUEST_BYTES", "TAKEN", "Lane", "LaneStream", "Lanes", "Reach", "request", "requested"]

#: What a lane that was connected begins with: which connection it is for, and by whom pieces are sent.
REQUEST_BYTES = NAME_BYTES + 1
#: What is said to a lane that is taken.
TAKEN = b"\1"
#: No further message is sent while so much of those before waits for a lane.
_MOST_QUEUED_BYTES = 16 << 20


class LaneStream(Stream, Protocol):
    """A stream whose peer has proved to know the secret."""

    def shut(self) -> None:
        """Have whoever waits at it wait no more; it is closed by who uses it."""


#: Connects one more lane, by which this side sends pieces or receives them.
Reach = Callable[[bool], LaneStream]


def request(name: bytes, is_sending: bool) -> bytes:
    """Return what asks for a lane of the connection ``name``, by which who asks sends if ``is_sending``."""
    return name + bytes((is_sending,))


def requested(said: bytes) -> tuple[bytes, bool]:
    """Return for which connection a lane is asked, and whether who is asked sends by it."""
    return said[:NAME_BYTES], not said[NAME_BYTES]


class Lanes:
    """The lanes of one connection. All but what its threads do is called by the connection's own thread.

    Parameters
    ----------
    most
        Lanes that there are at most, each way.
    reach
        Connects one, where it is this side that connects.

    Attributes
    ----------
    lost
        In words, that a lane was lost; "" while none is. None is used from then on.
    is_torn
        True if something was being sent by then: the peer has only a part of it.
    """

    def __init__(self, most: int, reach: Reach | None = None) -> None:
        self._most = most
        self._reach = reach
        self.lost, self.is_torn = "", False
        self._is_closed = False
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._is_rung = False
        self._lock = threading.Lock()
        self._to_send, self._has_copied, self._is_announced = (threading.Condition(self._lock) for _ in range(3))
        self._streams: dict[bool, list[LaneStream]] = {True: [], False: []}  # by which pieces are sent, and received
        self._queue: deque[Piece] = deque()
        self._queued_bytes = self._copying = self._in_hand = 0
        self._frames_sent = self._frames_announced = 0
        self._arriving: dict[int, FrameInPieces] = {}

    def fileno(self) -> int:
        """Return a descriptor that is readable when something has changed, until `clear`."""
        return self._bell

    def clear(self) -> None:
        """Note that what has changed is about to be looked at."""
        if self._is_rung:  # to ask the system each time would cost every small message a microsecond
            with self._lock:
                self._is_rung = False
                os.eventfd_read(self._bell)

    # --- lanes come and go

    def want(self) -> None:
        """Have lanes connected, in threads of theirs, if that is this side's to do and was not done yet."""
        reach, self._reach = self._reach, None
        for is_sending in (True, False) * (self._most if reach is not None else 0):
            threading.Thread(target=self._connect, args=(reach, is_sending), name="lane", daemon=True).start()

    def _connect(self, reach: Reach, is_sending: bool) -> None:
        try:
            stream = reach(is_sending)
        except Exception:  # whatever it is that keeps lanes from coming: all goes without, as before
            return
        if self._has_added(stream, is_sending):
            self._serve(stream, is_sending, b"")

    def add(self, stream: LaneStream, is_sending: bool) -> None:
        """Let ``stream`` be a lane; it is closed if there are as many as may be."""
        if self._has_added(stream, is_sending):
            threading.Thread(target=self._serve, args=(stream, is_sending, TAKEN), name="lane", daemon=True).start()

    def _has_added(self, stream: LaneStream, is_sending: bool) -> bool:
        with self._lock:
            is_wanted = not self._is_over and len(self._streams[is_sending]) < self._most
            if is_wanted:
                self._streams[is_sending].append(stream)
            else:
                stream.close()
        return is_wanted

    def _serve(self, stream: LaneStream, is_sending: bool, first: bytes) -> None:
        try:
            _send_whole(stream, memoryview(first))
            (self._send if is_sending else self._receive)(stream)
        except (OSError, ValueError) as error:
            self._lose(f"one of its lanes: {error}")
        finally:
            with self._lock:  # nobody shuts a descriptor that is another's by then
                stream.close()

    @property
    def _is_over(self) -> bool:
        return self._is_closed or bool(self.lost)

    def _lose(self, reason: str) -> None:
        with self._lock:
            if not self._is_over:
                self.lost, self.is_torn = reason, bool(self._queued_bytes or self._in_hand)
                self._end()
                self._ring()

    def close(self) -> None:
        """Close all lanes; what waits to be sent by them is not. Idempotent."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._end()
                os.close(self._bell)

    def _end(self) -> None:
        for stream in self._streams[True] + self._streams[False]:
            stream.shut()
        for waited_for in (self._to_send, self._is_announced):
            waited_for.notify_all()

    def _ring(self) -> None:
        if not (self._is_closed or self._is_rung):
            self._is_rung = True
            os.eventfd_write(self._bell, 1)

    # --- sending

    @property
    def can_send(self) -> bool:
        """True while there are lanes to send by."""
        return bool(self._streams[True]) and not self._is_over

    @property
    def is_full(self) -> bool:
        """True while so much waits to be sent that no more should."""
        return self._queued_bytes >= _MOST_QUEUED_BYTES

    @property
    def is_sending(self) -> bool:
        """True while some of what was given to be sent is still to be looked at."""
        return self._queued_bytes > 0

    @property
    def is_busy(self) -> bool:
        """True while pieces are on their way."""
        return bool(self._in_hand or self._queued_bytes or self._arriving) and not self._is_over

    def put(self, frame: Frame) -> None:
        """Send ``frame``, whose place in its message says that it comes by the lanes."""
        with self._lock:
            pieces = cut(self._frames_sent, frame)
            self._frames_sent += 1
            self._queue += pieces
            self._queued_bytes += len(frame)
            self._to_send.notify(len(pieces))

    def own(self) -> None:
        """Copy what waits: whoever gave it may change it from now on."""
        with self._lock:
            self._has_copied.wait_for(lambda: not self._copying)
            self._queue = deque(piece._replace(content=memoryview(bytes(piece.content))) for piece in self._queue)

    def _send(self, stream: LaneStream) -> None:
        buffer = memoryview(bytearray(HEADER.size + PIECE_BYTES))
        while size := self._copied_next(buffer):
            _send_whole(stream, buffer[:size])
            with self._lock:
                self._in_hand -= 1

    def _copied_next(self, buffer: memoryview) -> int:
        """Copy the next piece to ``buffer``; return how much that is, 0 when all is over."""
        with self._lock:
            self._to_send.wait_for(lambda: self._queue or self._is_over)
            if self._is_over:
                return 0
            piece = self._queue.popleft()
            self._copying += 1
            self._in_hand += 1
        size = HEADER.size + len(piece.content)
        HEADER.pack_into(buffer, 0, piece.frame, piece.offset)
        # By NumPy, which lets go of the interpreter.
        np.frombuffer(buffer, np.uint8)[HEADER.size : size] = np.frombuffer(piece.content, np.uint8)
        with self._lock:
            was_full = self.is_full
            self._copying -= 1
            self._queued_bytes -= len(piece.content)
            self._has_copied.notify_all()
            if not self._queued_bytes or (was_full and not self.is_full):
                self._ring()
        return size

    # --- receiving

    def expect(self, size: int) -> FrameInPieces:
        """Return the next frame that comes by the lanes, of ``size`` bytes."""
        frame = FrameInPieces(size)
        with self._lock:
            if size:
                self._arriving[self._frames_announced] = frame
            self._frames_announced += 1
            self._is_announced.notify_all()
        return frame

    def _receive(self, stream: LaneStream) -> None:
        header = memoryview(bytearray(HEADER.size))
        while True:
            _read_whole(stream, header)
            number, offset = HEADER.unpack(header)
            claimed = self._claimed(number, offset)
            if claimed is None:
                return
            _read_whole(stream, claimed.place)
            self._note_filled(number, claimed.frame)

    def _claimed(self, number: int, offset: int) -> _Claimed | None:
        with self._lock:
            self._is_announced.wait_for(lambda: number < self._frames_announced or self._is_over)
            if self._is_over:
                return None
            frame = self._arriving.get(number)
            if frame is None:
                raise ValueError("a piece of a frame that is whole")
            return _Claimed(frame, frame.claim(offset))

    def _note_filled(self, number: int, frame: FrameInPieces) -> None:
        with self._lock:
            frame.note_filled()
            if frame.is_whole:
                del self._arriving[number]
                self._ring()


class _Claimed(NamedTuple):
    frame: FrameInPieces
    place: memoryview


class Lane(NamedTuple):
    """A stream that is to be a lane of a connection."""

    lanes: Lanes
    stream: LaneStream
    is_sending: bool

    def open(self) -> None:
        """Make it one, if there is room; it is used and closed by a thread of its own from now on."""
        self.lanes.add(self.stream, self.is_sending)


def _send_whole(stream: Stream, data: memoryview) -> None:
    while data:
        try:
            data = data[stream.send(data) :]
        except BlockingIOError:
            _await(stream, select.POLLOUT)


def _read_whole(stream: Stream, buffer: memoryview) -> None:
    while buffer:
        try:
            taken = stream.recv_into(buffer)
        except BlockingIOError:
            _await(stream, select.POLLIN)
            continue
        if not taken:
            raise ConnectionResetError("the peer closed it")
        buffer = buffer[taken:]


def _await(stream: Stream, event: int) -> None:
    poll = select.poll()
    poll.register(stream.fileno(), event)
    poll.poll()
