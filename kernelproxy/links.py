"""The two ways to an executor: directly, to one of our own user on our own host, and by CURVE to any other."""

from __future__ import annotations

import select
from collections.abc import Sequence
from time import monotonic
from typing import Any, Protocol

import zmq

from gpu_backend.transport import local
from gpu_backend.transport.curve import KeyPair
from gpu_backend.transport.handshake import HandshakeWatch
from gpu_backend.transport.local import LocalClosed
from gpu_backend.transport.sockets import as_client, has_message
from gpu_backend.wire.codec import Frame

#: Buffers smaller than this are cheaper copied than shared with libzmq's own thread.
_SHARE_BYTES = 64 << 10
#: How long to look for an answer without sleeping, seconds: most answers come sooner than a sleeper wakes. Twice as
#: long as the last one took, where that was short: an executor that slept needs longer.
_SPIN_SECONDS, _MOST_SPIN_SECONDS = 100e-6, 1e-3


class Link(Protocol):
    """Carries messages. Used by one thread at a time."""

    #: True while a message is half sent or half taken. If an interrupt leaves it so, nothing on the link can be sure
    #: any more. It stays so after `receive` has returned a message, until the caller has that safe and sets it back.
    is_torn: bool

    def send(self, frames: Sequence[Frame]) -> bool:
        """Send a message; False if there is no room for it now."""

    def receive(self, timeout_seconds: float) -> list[Frame] | None:
        """Return the next message, or None if none comes in time. Ctrl-C interrupts the wait."""

    @property
    def failure(self) -> str:
        """Why the peer will not have us; "" while nothing says so."""

    def was_cut(self) -> bool:
        """Tell whether the way was lost since this was last asked."""

    @property
    def is_cut(self) -> bool:
        """True while the way is known to be lost."""

    def close(self, linger_milliseconds: int) -> None:
        """Close; what was sent gets so long to leave."""


class CurveLink:
    """A DEALER socket that shows our key and accepts only the executor's."""

    def __init__(self, context: zmq.Context[Any], endpoint: str, keys: KeyPair, server_key: bytes) -> None:
        self._socket = as_client(context.socket(zmq.DEALER), keys, server_key)
        self._watch = HandshakeWatch(self._socket)
        self._socket.connect(endpoint)
        self._disconnects = 0
        self.is_torn = False

    def send(self, frames: Sequence[Frame]) -> bool:
        """Send a message; False if there is no room for it now."""
        self.is_torn = True
        try:
            for frame in frames[:-1]:
                self._socket.send(frame, zmq.NOBLOCK | zmq.SNDMORE, copy=len(frame) < _SHARE_BYTES)
            self._socket.send(frames[-1], zmq.NOBLOCK, copy=len(frames[-1]) < _SHARE_BYTES)
        except zmq.Again:
            self.is_torn = False  # of a message either nothing is refused or all
            return False
        self.is_torn = False
        return True

    def receive(self, timeout_seconds: float) -> list[Frame] | None:
        """Return the next message, or None if none comes in time."""
        if not has_message(self._socket) and not self._await(timeout_seconds):
            return None
        self.is_torn = True
        frames: list[Frame] = [self._socket.recv(zmq.NOBLOCK)]
        while self._socket.rcvmore:
            frames.append(self._socket.recv(copy=False).buffer)
        return frames

    def _await(self, timeout_seconds: float) -> bool:
        if timeout_seconds <= 0:
            return False
        spin_until = monotonic() + min(_SPIN_SECONDS, timeout_seconds)
        while monotonic() < spin_until:
            if has_message(self._socket):
                return True
        return bool(self._socket.poll(max(1, int(timeout_seconds * 1_000))))

    @property
    def failure(self) -> str:
        """Why the executor will not have us."""
        self._watch.read()
        return self._watch.failure

    def was_cut(self) -> bool:
        """Tell whether the connection was lost since this was last asked."""
        self._watch.read()
        cut = self._watch.disconnects > self._disconnects
        self._disconnects = self._watch.disconnects
        return cut

    @property
    def is_cut(self) -> bool:
        """True once the connection has been lost."""
        return self._watch.disconnects > 0

    def close(self, linger_milliseconds: int) -> None:
        """Close the socket."""
        self._watch.close()
        self._socket.close(linger=linger_milliseconds)


class LocalLink:
    """A Unix socket to an executor of our own user."""

    failure = ""

    def __init__(self, path: str) -> None:
        self._socket = local.connect(path)
        self._poll = select.poll()
        self._news = select.poll()
        for poll in (self._poll, self._news):
            poll.register(self._socket.fileno(), select.POLLIN)
        self._spin_seconds = _SPIN_SECONDS
        self.is_cut = False
        self.is_torn = False

    def send(self, frames: Sequence[Frame]) -> bool:
        """Send a message; False if the one before is still on its way."""
        self.is_torn = True
        try:
            has_room = self._socket.send(frames)
        except LocalClosed:
            self.is_cut = has_room = True  # lost like everything under way: it is sent again after the next greeting
        self.is_torn = False
        return has_room

    def receive(self, timeout_seconds: float) -> list[Frame] | None:
        """Return the next message, or None if none comes in time."""
        asked = monotonic()
        until = asked + timeout_seconds
        spin_until = min(until, asked + self._spin_seconds)
        try:
            was_sending = not self._push()
            while (message := self._take()) is None:
                now = monotonic()
                if now >= until or (was_sending and self._push()):
                    self._spin_seconds = _SPIN_SECONDS
                    return None  # the caller may have waited for room to send
                if not self._spin(spin_until):
                    self._sleep(until - now)
        except LocalClosed:
            self.is_cut = True
            self.is_torn = False
            return None
        if timeout_seconds:
            twice = 2 * (monotonic() - asked)
            self._spin_seconds = max(_SPIN_SECONDS, twice) if twice <= _MOST_SPIN_SECONDS else _SPIN_SECONDS
        return message

    def _spin(self, until: float) -> bool:
        """Look for news without sleeping; False if there are none ``until`` then."""
        news = self._news
        while not news.poll(0):
            if monotonic() >= until:
                return False
        return True

    def _take(self) -> list[Frame] | None:
        if not self._socket.has_read_ahead and not self._news.poll(0):  # takes a fourth of a read in vain
            return None
        self.is_torn = True
        message = self._socket.receive()
        if message is None:
            self.is_torn = False
        return message

    def _push(self) -> bool:
        self.is_torn = True
        try:
            done = self._socket.push()
        except LocalClosed:
            self.is_cut = done = True  # what the executor said before it left may still stand here to be read
        self.is_torn = False
        return done

    def _sleep(self, seconds: float) -> None:
        wanted = select.POLLIN | (select.POLLOUT if self._socket.is_sending else 0)
        self._poll.modify(self._socket.fileno(), wanted)
        self._poll.poll(max(1, int(seconds * 1_000)))
        self._push()

    def was_cut(self) -> bool:
        """Tell whether the connection is lost."""
        return self.is_cut

    def close(self, linger_milliseconds: int) -> None:
        """Close the socket."""
        self._socket.close()
