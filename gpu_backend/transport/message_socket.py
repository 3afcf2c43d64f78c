"""Messages of several frames over a connection, without ever waiting: what all ways to an executor are above.

ZeroMQ hands every message to a thread of its own on either side, which costs some 50 µs a round trip and a copy. Here
the two processes speak to each other directly.
"""

from __future__ import annotations

import select
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Final

from gpu_backend.transport.copying import Bytes
from gpu_backend.transport.framing import READ_BYTES, MessageReader, Stream, head, head_beside_lanes, place_of, single
from gpu_backend.transport.laned_messages import LanedMessages
from gpu_backend.transport.lost import ConnectionLost
from gpu_backend.transport.peer_process import PeerProcess
from gpu_backend.transport.ring import RingStream
from gpu_backend.transport.shared_frames import BLOCK_BYTES, SharedFrames
from gpu_backend.wire.codec import Frame

#: How long a message waits for a block, seconds; then it goes through the socket. Who reads holds blocks for moments.
_BLOCK_SECONDS: Final = 0.05
#: How often to look for room in a ring or for a block, seconds: a device empties eight blocks in less than one more.
_ROOM_SECONDS: Final = 0.2e-3
#: Blocks that are not lent to whoever may keep them.
_LEFT_BLOCKS: Final = 2
#: Smaller frames pass through the stream: to hand a block over takes as long as copying so much as often as that does.
_SHARED_BYTES: Final = 32 << 10


class MessageSocket:
    """A connection that carries messages of several frames. Never blocks.

    ``stream`` is what its peer has proved to know the secret on. ``process`` is the peer's, if anybody wants to know of
    its end; it is closed with the socket unless taken. Large frames may pass through memory by way of ``reader``, or by
    the lanes of ``laned``.
    """

    def __init__(
        self,
        stream: Stream,
        reader: MessageReader | None = None,
        process: PeerProcess | None = None,
        laned: LanedMessages | None = None,
    ) -> None:
        self._process = process
        self._stream = stream
        self._reader = reader or MessageReader(stream)
        #: `MessageReader.receive`.
        self.receive: Callable[[], list[Frame] | None] = self._reader.receive
        self._unsent: deque[memoryview] = deque()
        self._lacked_block_at = 0.0  # since when a message waits for a block
        self._ring = stream if isinstance(stream, RingStream) else None
        #: Tells whether there are news: something to be read, or the end. The cheap question.
        self.has_news: Callable[[], bool] = self._ring.has_news if self._ring is not None else self._has_readable
        self._laned = laned
        if laned is not None:
            self.receive, self.has_news = laned.receive, laned.has_news
        self._poll: select.poll | None = None

    def _has_readable(self) -> bool:
        if self._poll is None:
            self._poll = select.poll()
            self._poll.register(self.fileno(), select.POLLIN)
        return bool(self._poll.poll(0))

    def spin(self, until: float) -> bool:
        """Wait for news without sleeping, up to ``until`` by `time.monotonic`; tell whether there are any."""
        if self._ring is not None:
            return self._ring.spin(until)
        while not self.has_news():
            if monotonic() >= until:
                return False
        return True

    @property
    def passes_whole(self) -> bool:
        """Whether messages pass by a ring in one piece, as `whole` has them, and nothing is half read or half sent."""
        if self._ring is None or self._unsent or self._lacked_block_at:
            return False
        return not self._reader.has_read_ahead

    def take_whole(self) -> list[Frame] | None:
        """Return the next message, if it lies in the ring as a whole; None leaves it to `receive`.

        Makes no system call. While messages do not pass so, it is None. Raises as `receive`.
        """
        message = self._ring.take_whole() if self._ring is not None and self.passes_whole else None
        if message is None:
            return None
        return [message] if isinstance(message, bytes) else [message[0], self._reader.in_block(message[1])]

    def fileno(self) -> int:
        """Return the descriptor, for a poller."""
        return self._laned.fileno() if self._laned is not None else self._stream.fileno()

    @property
    def is_sending(self) -> bool:
        """True while a message, or part of one, waits for the peer to read."""
        if self._laned is not None and self._laned.lanes.is_sending:
            return True
        return bool(self._unsent) or self._waits_for_block()

    @property
    def awaited(self) -> int:
        """What to have a poller look for at the descriptor, as a mask of its events."""
        is_told = self._ring is None and self._laned is None  # or else nobody, or what is readable, tells of room
        return select.POLLIN | (select.POLLOUT if is_told and self.is_sending else 0)

    def most_sleep(self, seconds: float) -> float:
        """Return how much of ``seconds`` to sleep before `push` is to be called: nobody tells of room in a ring."""
        return min(seconds, _ROOM_SECONDS) if self._ring is not None and self.is_sending else seconds

    def doze(self) -> bool:
        """Say that this side is about to sleep, by a poller; False if it should not, as there are news."""
        return self._ring is None or self._ring.doze()

    def wake(self, is_rung: bool) -> None:
        """Note that this side is awake again; ``is_rung`` says that the poller has named the descriptor."""
        if self._ring is not None:
            self._ring.wake(is_rung)

    @property
    def has_read_ahead(self) -> bool:
        """True while something has been read that was not yet received."""
        return self._laned.has_read_ahead if self._laned is not None else self._reader.has_read_ahead

    def send(self, frames: Sequence[Frame]) -> bool:
        """Send a message, or as much as goes now; False if nothing was taken, as earlier ones are still on their way.

        Raises
        ------
        ConnectionLost
            If the peer is gone.
        """
        if self._unsent and not self.push():
            return False
        if len(frames) == 1:
            self._send_single(frames[0])
            return True
        if self._laned is not None:
            return self._send_beside(self._laned, frames)
        if len(frames) == 2 and self._put_beside_block(frames[0], frames[1]):
            return True
        placed, shared = self.place(frames), self._reader.shared
        if placed is None:
            return False
        frames = placed
        blocks = [shared.put(frame) if shared is not None else None for frame in frames]
        through_socket = [frame for frame, block in zip(frames, blocks, strict=True) if block is None and len(frame)]
        self._unsent += [memoryview(head(frames, blocks)), *(memoryview(frame).cast("B") for frame in through_socket)]
        self.push()
        return True

    def _put_beside_block(self, frame: Frame, large: Frame) -> bool:
        """Send a message as contents of arrays come in, of one frame and another in a block. False if it is no such."""
        shared = self._reader.shared
        if self._ring is None or shared is None or (block := shared.put(large)) is None:
            return False
        if self._put_whole(frame, place_of(block, len(large))):
            self._lacked_block_at = 0.0
            return True
        shared.take_back(block)
        return False

    def _put_whole(self, frame: Frame, beside: int = 0) -> bool:
        if self._ring is None:
            return False
        try:
            return self._ring.put_whole(frame, beside)
        except OSError as error:
            raise ConnectionLost(str(error)) from None

    def _send_beside(self, laned: LanedMessages, frames: Sequence[Frame]) -> bool:
        """Send what is large of a message by the lanes, and the rest by the stream."""
        if not laned.has_room():
            return False
        taken = laned.taken(frames)
        rest = [frame for frame, is_taken in zip(frames, taken, strict=True) if not is_taken and len(frame)]
        self._unsent += [memoryview(head_beside_lanes(frames, taken)), *(memoryview(frame).cast("B") for frame in rest)]
        self.push()
        return True

    def lend(self, size: int) -> Bytes | None:
        """Return memory for a frame of ``size`` bytes that is sent as it is; None if there is none now.

        Frames are kept until the peer has confirmed them, and so is this memory; so some is left for what is copied.
        """
        shared = self._reader.shared
        return shared.lend(size, _LEFT_BLOCKS) if shared is not None and size >= _SHARED_BYTES else None

    def place(self, frames: Sequence[Frame]) -> Sequence[Frame] | None:
        """Return ``frames`` with what is large copied to where the peer sees it; None if they must wait for room there.

        Nothing of them is sent by that, so nothing is half sent if it is cut short.
        """
        shared = self._reader.shared
        if shared is None or self._unsent:
            return frames
        if len(frames) == 2 and shared.holds(frames[1]) and len(frames[0]) < _SHARED_BYTES:  # as nearly all
            self._lacked_block_at = 0.0
            return frames
        if self._must_wait_for_block(shared, frames):
            return None
        return [(_is_shared(frame) and shared.placed(frame)) or frame for frame in frames]

    def _must_wait_for_block(self, shared: SharedFrames, frames: Sequence[Frame]) -> bool:
        if not shared.is_full or not any(_is_large(frame) and not shared.holds(frame) for frame in frames):
            self._lacked_block_at = 0.0
            return False
        self._lacked_block_at = self._lacked_block_at or monotonic()
        return self._waits_for_block()

    def _waits_for_block(self) -> bool:
        return self._lacked_block_at > 0 and monotonic() < self._lacked_block_at + _BLOCK_SECONDS

    def _send_single(self, frame: Frame) -> None:
        """Send a message as nearly all are: of one frame, and taken by the ring or the system at once."""
        if self._put_whole(frame):
            return
        data = single(frame)
        try:
            sent = self._stream.send(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise ConnectionLost(str(error)) from None
        if sent < len(data):
            self._unsent.append(memoryview(data)[sent:])
            if self._laned is not None:
                self._laned.watch(True)

    def push(self) -> bool:
        """Send what still waits; tell whether there is room for the next message."""
        is_sent = self._push_unsent()
        if self._laned is not None:
            self._laned.watch(not is_sent)
            return self._laned.has_room() and is_sent
        return is_sent and self._has_block()

    def _push_unsent(self) -> bool:
        unsent = self._unsent
        while unsent:
            try:
                sent = self._stream.send(unsent[0])
            except BlockingIOError:
                return False
            except OSError as error:
                raise ConnectionLost(str(error)) from None
            if sent == len(unsent[0]):
                unsent.popleft()
            else:
                unsent[0] = unsent[0][sent:]
        return True

    def _has_block(self) -> bool:
        if not self._lacked_block_at:
            return True
        return not (self._waits_for_block() and self._reader.shared is not None and self._reader.shared.is_full)

    def own(self) -> None:
        """Copy what waits for the peer to read: whoever gave it may change it from now on."""
        self._unsent = deque([memoryview(bytes(part)) for part in self._unsent])
        if self._laned is not None:
            self._laned.lanes.own()

    def take_process(self) -> PeerProcess | None:
        """Return the peer's process, which the caller closes."""
        process, self._process = self._process, None
        return process

    def close(self) -> None:
        """Close at once."""
        if self._laned is not None:
            self._laned.close()
        self._stream.close()
        if self._process is not None:
            self._process.close()


def _is_shared(frame: Frame) -> bool:
    return _SHARED_BYTES <= len(frame) <= BLOCK_BYTES


def _is_large(frame: Frame) -> bool:
    """Tell whether ``frame`` is to wait for a block: smaller ones pass through the stream as well."""
    return READ_BYTES < len(frame) <= BLOCK_BYTES
