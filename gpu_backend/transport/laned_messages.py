"""Messages some of whose frames come by lanes, in the order in which they were sent; and what wakes who waits for them.

What stands in the connection's own stream is read on while pieces arrive, so that no lane has to wait for a frame to be
announced; but only so much of it, whoever sends it.
"""

from __future__ import annotations

import select
from collections import deque
from collections.abc import Sequence
from time import sleep

from gpu_backend.transport.framing import MessageReader
from gpu_backend.transport.lanes import Lanes
from gpu_backend.transport.lost import ConnectionLost
from gpu_backend.transport.pieces import LEAST_BYTES, FrameInPieces
from gpu_backend.wire.codec import Frame, size_of

__all__ = ["LanedMessages"]

#: Messages, and bytes of them, that wait for the pieces of one before: no more is read until that is whole.
_MOST_WAITING, _MOST_WAITING_BYTES = 64, 32 << 20
#: As many can tell of something.
_DESCRIPTORS = 2
#: How long who looks for news again and again leaves the interpreter to the lanes while these are busy, seconds.
_PAUSE_SECONDS = 20e-6


class LanedMessages:
    """Reads the messages of the connection ``descriptor`` by its ``reader`` and ``lanes``."""

    def __init__(self, descriptor: int, reader: MessageReader, lanes: Lanes) -> None:
        self.lanes = lanes
        self._descriptor, self._reader = descriptor, reader
        self._waiting: deque[tuple[list[Frame], list[FrameInPieces]]] = deque()
        self._waiting_bytes = 0
        self._is_sending = False
        self._mask = select.EPOLLIN
        self._poll = select.epoll()
        self._poll.register(descriptor, self._mask)
        self._poll.register(lanes.fileno(), select.EPOLLIN)

    def fileno(self) -> int:
        """Return a descriptor that is readable when there are news, or room that was waited for."""
        return self._poll.fileno()

    def has_news(self) -> bool:
        """Tell whether there is something to be read, or the end."""
        if self.lanes.is_busy:
            sleep(_PAUSE_SECONDS)
        for descriptor, event in self._poll.poll(0, _DESCRIPTORS):
            if descriptor != self._descriptor or event & ~select.EPOLLOUT:
                return True
        return False

    def watch(self, is_sending: bool) -> None:
        """Wake when the connection's stream has room as well, or do not; ``is_sending`` says which."""
        if is_sending != self._is_sending:
            self._is_sending = is_sending
            self._note_watched()

    def _note_watched(self) -> None:
        mask = (select.EPOLLIN if self._reads_on else 0) | (select.EPOLLOUT if self._is_sending else 0)
        if mask != self._mask:
            self._mask = mask
            self._poll.modify(self._descriptor, mask)

    @property
    def _reads_on(self) -> bool:
        return len(self._waiting) < _MOST_WAITING and self._waiting_bytes < _MOST_WAITING_BYTES

    @property
    def _has_whole(self) -> bool:
        return bool(self._waiting) and all(frame.is_whole for frame in self._waiting[0][1])

    @property
    def has_read_ahead(self) -> bool:
        """True while something has been read that was not yet received."""
        return self._has_whole or (self._reads_on and self._reader.has_read_ahead)

    def receive(self) -> list[Frame] | None:
        """Return the next message, or None if none is complete.

        Raises
        ------
        ConnectionLost
            If the peer is gone, or sends what is no message or no piece of one.
        """
        self.lanes.clear()
        if not self._waiting:
            message = self._reader.receive()
            if message is None or not self._reader.awaited:
                return self._noted(message)
            self._put(message)
        while not self._has_whole and self._reads_on:
            message = self._reader.receive()
            if message is None:
                break
            self._put(message)
        return self._next()

    def _put(self, message: list[Frame]) -> None:
        awaited, self._reader.awaited = self._reader.awaited, []
        self._waiting.append((message, awaited))
        self._waiting_bytes += size_of(message)

    def _next(self) -> list[Frame] | None:
        message = None
        if self._has_whole:
            message = self._waiting.popleft()[0]
            self._waiting_bytes -= size_of(message)
        elif self._waiting and self.lanes.lost:
            raise ConnectionLost(self.lanes.lost)
        self._note_watched()
        return message

    def _noted(self, message: list[Frame] | None) -> list[Frame] | None:
        """Return ``message``, which came by the stream alone; if it is large, more of that may follow."""
        if message is not None and len(message) > 1 and size_of(message) >= LEAST_BYTES:
            self.lanes.want()
        return message

    def taken(self, frames: Sequence[Frame]) -> list[bool]:
        """Tell which of ``frames`` go by the lanes; those are on their way."""
        large = [len(frame) >= LEAST_BYTES for frame in frames]
        if not any(large):
            return large
        if not self.lanes.can_send:
            self.lanes.want()
            return [False] * len(frames)
        for frame, is_large in zip(frames, large, strict=True):
            if is_large:
                self.lanes.put(frame)
        return large

    def has_room(self) -> bool:
        """Tell whether the lanes take the next message.

        Raises
        ------
        ConnectionLost
            If a lane is lost with some of one before.
        """
        if self.lanes.lost and self.lanes.is_torn:
            raise ConnectionLost(self.lanes.lost)
        return not self.lanes.is_full

    def close(self) -> None:
        """Close the lanes."""
        self._poll.close()
        self.lanes.close()
