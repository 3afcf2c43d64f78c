"""One connection to an executor: connecting, greeting, sending, receiving. It knows nothing of ops."""

from __future__ import annotations

import os
from collections.abc import Sequence
from time import monotonic
from typing import Any

import zmq

from gpu_backend.transport.curve import KeyPair
from gpu_backend.transport.local import LocalClosed
from gpu_backend.wire import messages as wire
from gpu_backend.wire.codec import MAX_HEADER_BYTES, Codec, Frame, encode
from gpu_backend.wire.control import Ticket
from gpu_backend.wire.errors import (
    NotAuthorized,
    OversizedMessage,
    PoolRefusal,
    PoolUnreachable,
    ProtocolError,
    RefusalCode,
    SessionLost,
)
from kernelproxy.links import CurveLink, Link, LocalLink

_codec: Codec[wire.ToClient] = Codec(wire.ToClient)
Incoming = tuple[wire.ToClient, list[Frame]]

_LOCAL = "unix://"


class Connection:
    """A connection to the executor that ``ticket`` names. Use it from one thread at a time.

    ``instance`` names this process to the executor: an epoch of a session belongs to one client instance. ``is_owner``
    tells it that the session is this process's own, and ends with it.
    """

    #: What the executor said to our greeting.
    welcome: wire.Welcome

    def __init__(
        self, context: zmq.Context[Any], ticket: Ticket, keys: KeyPair, instance: str, is_owner: bool = False
    ) -> None:
        self.ticket = ticket
        self._is_owner = is_owner
        self.instance = instance
        self.bytes_sent = 0
        self.endpoint = _usable_endpoint(ticket)
        self._link = self._open(context, keys)
        self._is_closed = False

    def _open(self, context: zmq.Context[Any], keys: KeyPair) -> Link:
        if self.endpoint.startswith(_LOCAL):
            try:
                return LocalLink(self.endpoint.removeprefix(_LOCAL))
            except LocalClosed as error:
                raise PoolUnreachable(f"The executor does not answer: {error}.") from None
        return CurveLink(context, self.endpoint, keys, self.ticket.server_key.encode())

    def greet(self, first: int, received: int, timeout_seconds: float) -> wire.Welcome:
        """Say Hello and return the executor's Welcome, which stays in ``welcome``.

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
        hello = wire.Hello(self.ticket.session, self.ticket.epoch, self.instance, first, received, self._is_owner)
        deadline = monotonic() + timeout_seconds
        self.send(hello)
        while monotonic() < deadline:
            incoming = self.receive(0.05)
            if incoming is not None and isinstance(incoming[0], wire.Welcome):
                self.welcome = incoming[0]
                self.settle()
                return self.welcome
            if incoming is not None and isinstance(incoming[0], wire.Refused):
                raise refusal_error(incoming[0])
            if self._link.failure:
                raise NotAuthorized(
                    f"The executor at {self.endpoint} turned us away: {self._link.failure}. "
                    "Ask the pool for a new ticket (restart the kernel), or check your key with `workbench doctor`."
                )
        raise PoolUnreachable(f"The executor at {self.endpoint} did not answer within {timeout_seconds:.1f} s.")

    def was_cut(self) -> bool:
        """Tell whether the connection has been lost since the last time this was asked."""
        return self._link.was_cut()

    @property
    def is_cut(self) -> bool:
        """True while the connection is known to be lost."""
        return self._link.is_cut

    @property
    def is_sound(self) -> bool:
        """False once it is closed, or when an interrupt struck half-way through a message: then nothing can be sure."""
        return not self._is_closed and not self._link.is_torn

    def send(self, message: Any, buffers: Sequence[Frame] = ()) -> bool:
        """Send ``message``. Return False if there is no room for it now: nothing was sent.

        Raises
        ------
        OversizedMessage
            If the executor would not take a message of that size.
        ValueError, OverflowError, TypeError
            If ``message`` holds what cannot be put into bytes.
        """
        frames = encode(message, buffers)
        if len(frames[0]) > MAX_HEADER_BYTES:
            raise OversizedMessage(
                f"they take {len(frames[0])} bytes, and at most {MAX_HEADER_BYTES} can travel so. "
                "Make large lists arrays first"
            )
        if not self._link.send(frames):
            return False
        self.bytes_sent += sum([len(frame) for frame in frames])
        return True

    def receive(self, timeout_seconds: float) -> Incoming | None:
        """Return the next message and its buffers, or None if none comes in time. Ctrl-C interrupts the wait.

        Call `settle` when the message has been taken in: an interrupt before that loses it.
        """
        frames = self._link.receive(timeout_seconds)
        return None if frames is None else (_codec.decode(frames), frames[1:])

    def settle(self) -> None:
        """Note that the last message received is safe."""
        self._link.is_torn = False

    def close(self, linger_milliseconds: int = 0) -> None:
        """Close the connection; what was sent gets so long to leave. Idempotent."""
        if not self._is_closed:
            self._is_closed = True
            self._link.close(linger_milliseconds)


def refusal_error(refused: wire.Refused) -> Exception:
    """Return the exception that says what ``refused`` says."""
    if refused.code in (RefusalCode.STALE_EPOCH, RefusalCode.WRONG_SESSION, RefusalCode.ENDED):
        return SessionLost(refused.message)
    if refused.code == RefusalCode.IN_USE:
        return PoolRefusal(refused.message)
    return ProtocolError(f"The executor refused a message ({refused.code}): {refused.message}")


def _usable_endpoint(ticket: Ticket) -> str:
    """Return the first endpoint that this host can use: one in the file system only if it is here and ours."""
    for endpoint in ticket.endpoints:
        scheme, _, path = endpoint.partition("://")
        if scheme == "tcp" or os.access(path, os.W_OK):
            return endpoint
    return ticket.endpoints[-1]
