"""Bytes in memory that two processes share, one ring each way: no system call while both sides are awake.

Each side writes only its own two numbers: how much it has put into one ring, and how much it has taken out of the
other. It keeps both for itself and never reads them back; what the peer claims is checked before it is used, and bytes
are copied out before anybody looks at them. So a peer that writes anything anywhere at any time garbles what it says
itself, and nothing else.

Who is about to sleep says so in the memory, and looks once more; the peer then sends a byte by a socket, which also
tells of the peer's end. The order in which a processor makes stores visible is what this relies on: x86-64 keeps it.
One store may still be on its way while a later load is done, so a sleeper's first nap is short: see `naps`.
"""

from __future__ import annotations

import mmap
import platform
import socket
from typing import Final

from gpu_backend.transport import whole
from gpu_backend.transport.waiting import changes
from gpu_backend.wire.codec import Frame

__all__ = ["RINGS_BYTES", "RingStream", "has_rings", "naps"]

#: Bytes that one ring holds. Large frames have blocks of their own.
RING_BYTES: Final = 1 << 20
_WORDS_BYTES: Final = mmap.PAGESIZE
#: Of all: a page of words, and the rings.
RINGS_BYTES: Final = _WORDS_BYTES + 2 * RING_BYTES
#: Places of the words, each in a line of the cache of its own, by ring: how much was put in, how much was taken out,
#: and whether who takes out sleeps.
_PUT: Final = 0
_TAKEN: Final = 16
_SLEEPS: Final = 32
_RING_WORDS: Final = 64
_NAP_SECONDS: Final = 1e-3
#: By names of their own: to look up what a module has takes as long as what is done by it.
_take_whole: Final = whole.take
_put_whole: Final = whole.put
_HEAD_BYTES: Final = whole.HEAD.size
_HEAD_OF_TWO_BYTES: Final = whole.HEAD_OF_TWO.size


def has_rings() -> bool:
    """Tell whether this processor keeps the order of stores that rings rely on."""
    return platform.machine() == "x86_64"


def naps(seconds: float) -> tuple[float, ...]:
    """Return how long to sleep, with another look before each: what the first did not see yet is there by the next."""
    return (seconds,) if seconds <= _NAP_SECONDS else (_NAP_SECONDS, seconds - _NAP_SECONDS)


class RingStream:
    """A `Stream` over two rings. ``bell`` is a connected socket that does not block, this stream's from now on.

    Parameters
    ----------
    bell
        The connection to the peer, by which nothing else passes any more.
    memory
        Holds the rings from ``start`` on. Its size is sealed.
    is_maker
        Whether this side made the memory: it puts into the first ring.
    """

    def __init__(self, bell: socket.socket, memory: mmap.mmap, start: int, is_maker: bool) -> None:
        view = memoryview(memory)[start : start + RINGS_BYTES]
        self._words = view[:_WORDS_BYTES].cast("Q")
        rings = [view[_WORDS_BYTES + n * RING_BYTES :][:RING_BYTES] for n in range(2)]
        out, into = (0, 1) if is_maker else (1, 0)
        self._out, self._into = rings[out], rings[into]
        self._out_words, self._into_words = out * _RING_WORDS, into * _RING_WORDS
        self._put_at, self._sleeps_at = self._into_words + _PUT, self._out_words + _SLEEPS
        self._taken_at = self._into_words + _TAKEN
        self._put = self._taken = 0
        self._is_rung = False
        self._bell = bell

    def fileno(self) -> int:
        """Return the descriptor, for a poller: readable when the peer has rung, or is gone."""
        return self._bell.fileno()

    def has_news(self) -> bool:
        """Tell whether something is to be read, or to be heard by the socket. Makes no system call."""
        return self._words[self._put_at] != self._taken or self._is_rung

    def spin(self, until: float) -> bool:
        """Wait for news without sleeping, up to ``until`` by `time.monotonic`; tell whether there are any."""
        return self._is_rung or changes(self._words, self._put_at, self._taken, until)

    def take_whole(self) -> whole.Taken:
        """Take the next message out, if it lies here whole, as `whole.take` gives it; None leaves it to `recv_into`."""
        message = _take_whole(self._words, self._put_at, self._taken_at, self._taken, self._into)
        if isinstance(message, bytes):
            self._taken += _HEAD_BYTES + len(message)
        elif message is not None:
            self._taken += _HEAD_OF_TWO_BYTES + len(message[0])
        return message

    def put_whole(self, frame: Frame, beside: int = 0) -> bool:
        """Put a message in, as `whole.put`, if there is room for all of it; False leaves it to `send`."""
        words, out = self._words, self._out_words
        size = _put_whole(words, out + _PUT, out + _TAKEN, self._put, self._out, frame, beside)
        if not size:
            return False
        self._put += size
        if words[self._sleeps_at]:
            self._ring()
        return True

    def doze(self) -> bool:
        """Have the peer ring from now on; False if there are news, so that nobody should sleep."""
        self._words[self._into_words + _SLEEPS] = 1
        return not self.has_news()

    def wake(self, is_rung: bool) -> None:
        """Note that this side is awake; ``is_rung`` says that the socket had something to be read."""
        self._words[self._into_words + _SLEEPS] = 0
        self._is_rung |= is_rung

    def send(self, data: bytes | memoryview, /) -> int:
        """Put some of ``data`` into the ring; return how much.

        Raises
        ------
        BlockingIOError
            If the ring is full.
        ConnectionError
            If the peer is gone, or claims what cannot be.
        """
        words, put = self._words, self._put
        lies = put - words[self._out_words + _TAKEN]
        if not 0 <= lies <= RING_BYTES:
            raise ConnectionAbortedError("the peer's ring makes no sense")
        size = min(len(data), RING_BYTES - lies)
        if not size:
            raise BlockingIOError
        at = put % RING_BYTES
        first = min(size, RING_BYTES - at)
        self._out[at : at + first] = data[:first]
        if first < size:
            self._out[: size - first] = data[first:size]
        self._put = words[self._out_words + _PUT] = put + size
        if words[self._sleeps_at]:
            self._ring()
        return size

    def _ring(self) -> None:
        self._words[self._sleeps_at] = 0  # before the bell: who says that it sleeps after this is rung for again
        try:
            self._bell.send(b"\0")
        except BlockingIOError:
            return  # it has not heard the many before

    def recv_into(self, buffer: memoryview, /) -> int:
        """Take what the ring holds out into ``buffer``; return how much, 0 after the end.

        Raises
        ------
        BlockingIOError
            If there is nothing.
        ConnectionError
            If the peer is gone, or claims what cannot be.
        """
        words, taken = self._words, self._taken
        there = words[self._put_at] - taken
        if not there:
            is_end = self._hear()
            there = words[self._put_at] - taken  # the last words came before the end
            if not there:
                if is_end:
                    return 0
                raise BlockingIOError
        if not 0 < there <= RING_BYTES:
            raise ConnectionAbortedError("the peer's ring makes no sense")
        size = min(there, len(buffer))
        at = taken % RING_BYTES
        first = min(size, RING_BYTES - at)
        buffer[:first] = self._into[at : at + first]
        if first < size:
            buffer[first:size] = self._into[: size - first]
        self._taken = words[self._taken_at] = taken + size
        return size

    def _hear(self) -> bool:
        """Take in what the peer has rung; tell whether it is gone."""
        self._is_rung = False
        try:
            return not self._bell.recv(4096)
        except BlockingIOError:
            return False

    def close(self) -> None:
        """Close at once."""
        self._bell.close()
