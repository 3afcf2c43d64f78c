"""One connection to an executor: connecting, greeting, sending, receiving. It knows nothing of ops."""

from __future__ import annotations

import os
from collections.abc import Sequence
from time import monotonic
from typing import Any

import zmq

from gpu_backend.transport.curve import KeyPair
from gpu_backend.transport.handshake import HandshakeWatch
from gpu_backend.transport.sockets import as_client
from gpu_backend.wire import messages as wire
from gpu_backend.wire.codec import Codec, Frame, encode
from gpu_backend.wire.control import Ticket
from gpu_backend.wire.errors import NotAuthorized, PoolRefusal, PoolUnreachable, ProtocolError, RefusalCode, SessionLost

_codec: Codec[wire.ToClient] = Codec(wire.ToClient)
Incoming = tuple[wire.ToClient, list[Frame]]

#: Buffers smaller than this are cheaper copied than shared with libzmq's own thread.
_SHARE_BYTES = 64 << 10
#: How long to look for an answer without sleeping, seconds: most answers come sooner than a sleeper wakes.
_SPIN_SECONDS = 100e-6


class Connection:
    """A CURVE connection to the executor that ``ticket`` names. Use it from one thread at a time.

    ``instance`` names this process to the executor: an epoch of a session belongs to one client instance.
    """

    def __init__(self, context: zmq.Context[Any], ticket: Ticket, keys: KeyPair, instance: str) -> None:
        self.ticket = ticket
        self.instance = instance
        self.bytes_sent = 0
        self.bytes_received = 0
        self._socket = as_client(context.socket(zmq.DEALER), keys, ticket.server_key.encode())
        self._watch = HandshakeWatch(self._socket)
        self._socket.connect(_usable_endpoint(ticket))
        self._disconnects = 0

    def greet(self, first: int, received: int, timeout_seconds: float) -> wire.Welcome:
        """Say Hello and return the executor's Welcome.

        Raises
        ------
        NotAuthorized
            If the executor does not accept our key. Known within a second.
        PoolUnreachable
            If it does not answer within ``timeout_seconds``.
        SessionLost
            If it serves another epoch by now, or has ended.
        PoolRefusal
            If another process uses the session.
        """
        hello = wire.Hello(self.ticket.session, self.ticket.epoch, self.instance, first, received)
        deadline = monotonic() + timeout_seconds
        self.send(hello)
        while monotonic() < deadline:
            incoming = self.receive(0.05)
            if incoming is not None and isinstance(incoming[0], wire.Welcome):
                return incoming[0]
            if incoming is not None and isinstance(incoming[0], wire.Refused):
                raise refusal_error(incoming[0])
            self._watch.read()
            if self._watch.failure:
                raise NotAuthorized(
                    f"The executor at {_usable_endpoint(self.ticket)} turned us away: {self._watch.failure}. "
                    "Ask the pool for a new ticket (restart the kernel), or check your key with `workbench doctor`."
                )
        raise PoolUnreachable(
            f"The executor at {_usable_endpoint(self.ticket)} did not answer within {timeout_seconds:.1f} s."
        )

    def was_cut(self) -> bool:
        """Tell whether the connection has been lost since the last time this was asked."""
        self._watch.read()
        cut = self._watch.disconnects > self._disconnects
        self._disconnects = self._watch.disconnects
        return cut

    def send(self, message: Any, buffers: Sequence[Frame] = ()) -> bool:
        """Send ``message``. Return False if the socket's queue is full: nothing was sent."""
        frames = encode(message, buffers)
        try:
            if len(frames) == 1:
                self._socket.send(frames[0], zmq.NOBLOCK)
            else:
                for frame in frames[:-1]:
                    self._socket.send(frame, zmq.NOBLOCK | zmq.SNDMORE, copy=len(frame) < _SHARE_BYTES)
                self._socket.send(frames[-1], zmq.NOBLOCK, copy=len(frames[-1]) < _SHARE_BYTES)
        except zmq.Again:
            return False
        self.bytes_sent += sum(len(frame) for frame in frames)
        return True

    def receive(self, timeout_seconds: float) -> Incoming | None:
        """Return the next message and its buffers, or None if none comes in time. Ctrl-C interrupts the wait."""
        if not self._socket.events & zmq.POLLIN and not self._await(timeout_seconds):
            return None
        frames: list[Frame] = [self._socket.recv(zmq.NOBLOCK)]
        while self._socket.rcvmore:
            frames.append(self._socket.recv(copy=False).buffer)
        self.bytes_received += sum(len(frame) for frame in frames)
        return _codec.decode(frames), frames[1:]

    def _await(self, timeout_seconds: float) -> bool:
        if timeout_seconds <= 0:
            return False
        spin_until = monotonic() + min(_SPIN_SECONDS, timeout_seconds)
        while monotonic() < spin_until:
            if self._socket.events & zmq.POLLIN:
                return True
        return bool(self._socket.poll(max(1, int(timeout_seconds * 1_000))))

    @property
    def is_cut(self) -> bool:
        """True while the connection is known to be lost."""
        return self._watch.disconnects > 0

    def close(self, linger_milliseconds: int = 0) -> None:
        """Close the socket; what was sent gets so long to leave."""
        self._watch.close()
        self._socket.close(linger=linger_milliseconds)


def refusal_error(refused: wire.Refused) -> Exception:
    """Return the exception that says what ``refused`` says."""
    if refused.code in (RefusalCode.STALE_EPOCH, RefusalCode.WRONG_SESSION, RefusalCode.ENDED):
        return SessionLost(refused.message)
    if refused.code == RefusalCode.IN_USE:
        return PoolRefusal(refused.message)
    return ProtocolError(f"The executor refused a message ({refused.code}): {refused.message}")


def _usable_endpoint(ticket: Ticket) -> str:
    """Return the first endpoint that this host can use: an ipc one only if its socket is here and ours."""
    for endpoint in ticket.endpoints:
        if not endpoint.startswith("ipc://") or os.access(endpoint.removeprefix("ipc://"), os.W_OK):
            return endpoint
    return ticket.endpoints[-1]
