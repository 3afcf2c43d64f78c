"""One connection to an executor: connecting, greeting, sending, receiving. It knows nothing of ops."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import Any

from gpu_backend.transport.copying import Bytes
from gpu_backend.transport.lost import ConnectionLost
from gpu_backend.transport.reaching import NobodyListens, NotReached, ProofFailed
from gpu_backend.wire import messages as wire
from gpu_backend.wire.codec import MAX_HEADER_BYTES, Codec, Frame, encode, size_of
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
from gpu_backend.wire.told import fit_words
from kernelproxy import compiled
from kernelproxy.session.links import Link, open_link
from kernelproxy.session.unreached import ConnectionCut, ConnectionRefused, ExecutorEnded, ExecutorGone

_codec: Codec[wire.ToClient] = Codec(wire.ToClient)
Incoming = tuple[wire.ToClient, list[Frame]]


class Connection:
    """A connection to the executor that ``ticket`` names. Use it from one thread at a time.

    ``instance`` names this process to the executor: an epoch of a session belongs to one client instance. ``is_owner``
    tells it that the session is this process's own, and ends with it. To connect may take ``timeout_seconds``. To
    another host what is large may pass by so many ``lanes`` each way.

    Raises
    ------
    NotAuthorized
        If the executor is not the one that the ticket names, or does not take us for the one it was given to.
    PoolUnreachable
        If it does not answer in time; a `ConnectionCut` if the connection is lost meanwhile, an `ExecutorGone` if it is
        known to have ended, a `ConnectionRefused` if that may be so.
    """

    #: What the executor said to our greeting.
    welcome: wire.Welcome
    #: Why the executor ends, once it has said that it does; "" while it has not.
    ended_for = ""

    def __init__(self, ticket: Ticket, instance: str, is_owner: bool, timeout_seconds: float, lanes: int = 0) -> None:
        self.ticket = ticket
        self._is_owner = is_owner
        self.instance = instance
        self.bytes_sent = 0
        #: The way that is used.
        self.endpoint = ""
        self._lanes = lanes
        self._link = self._open(timeout_seconds)
        self._is_closed = False
        self._put_back: Incoming | None = None

    def _open(self, timeout_seconds: float) -> Link:
        try:
            link, self.endpoint = open_link(self.ticket, timeout_seconds, self._lanes)
        except NotReached as error:
            raise _unreached(error) from None
        except ConnectionLost as error:
            raise ConnectionCut(f"The connection to the executor was cut as it was made: {error}.") from None
        except ValueError as error:  # numbers and addresses that are none
            raise ProtocolError(f"The pool's ticket makes no sense: {error}.") from None
        except ProofFailed as error:
            raise NotAuthorized(
                f"What answers for the executor is not to be trusted, or does not trust us: {error}. "
                "Restart the kernel for a new ticket; if it stays so, tell the pool's operator."
            ) from None
        return link

    def greet(self, first: int, received: int, timeout_seconds: float) -> wire.Welcome:
        """Say Hello and return the executor's Welcome, which stays in ``welcome``.

        Raises
        ------
        PoolUnreachable
            If the executor does not answer within ``timeout_seconds``; a `ConnectionCut` if the connection is lost.
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
                self.welcome = _sensible(incoming[0])
                self.settle()
                return self.welcome
            if incoming is not None and isinstance(incoming[0], wire.Refused):
                raise refusal_error(incoming[0])
            if self._link.is_cut:
                raise ConnectionCut(f"The connection to the executor at {self.endpoint} was cut.")
        raise PoolUnreachable(f"The executor at {self.endpoint} did not answer within {timeout_seconds:.1f} s.")

    def is_another_executors(self, other: Connection) -> bool:
        """Tell whether ``other`` led to another executor, so that nothing made there is here."""
        return (self.ticket.session, self.ticket.epoch) != (other.ticket.session, other.ticket.epoch)

    @property
    def is_cut(self) -> bool:
        """True once the connection is known to be lost, or was given up."""
        return self._is_closed or self._link.is_cut

    @property
    def is_closed(self) -> bool:
        """True once it is closed."""
        return self._is_closed

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
        self.bytes_sent += size_of(frames)
        return True

    def receive(self, timeout_seconds: float) -> Incoming | None:
        """Return the next message and its buffers, or None if none comes in time. Ctrl-C interrupts the wait.

        Call `settle` when the message has been taken in: an interrupt before that loses it.
        """
        if self._put_back is not None:
            incoming, self._put_back = self._put_back, None
            return incoming
        frames = self._link.receive(timeout_seconds)
        if frames is None:
            return None
        return self._fit(_codec.decode(frames)), frames[1:]

    def _fit(self, message: wire.ToClient) -> wire.ToClient:
        if isinstance(message, wire.Refused):
            message = fit_words(message)
            if message.code == RefusalCode.ENDED:
                self.ended_for = message.message
        return message

    def put_back(self, incoming: Incoming) -> None:
        """Have the last message received be received again: whoever has read it is not the one who acts on it."""
        self._put_back = incoming
        self.settle()

    def settle(self) -> None:
        """Note that the last message received is safe."""
        self._link.is_torn = False

    def lend(self, size: int) -> Bytes | None:
        """Return memory for a buffer of ``size`` bytes that is sent as it is; None if there is none now."""
        return self._link.lend(size)

    def own(self) -> None:
        """Have nothing that is still to be sent lie in the memory that it was given in."""
        self._link.own()

    def close(self) -> None:
        """Close the connection; what the system has taken still arrives. Idempotent."""
        if not self._is_closed:
            self._is_closed = True
            self._link.close()


def _unreached(error: NotReached) -> PoolUnreachable:
    text = f"The executor cannot be reached: {error}."
    if isinstance(error, ExecutorEnded):
        return ExecutorGone(text)
    return ConnectionRefused(text) if isinstance(error, NobodyListens) else PoolUnreachable(text)


def refusal_error(refused: wire.Refused) -> Exception:
    """Return the exception that says what ``refused`` says."""
    if refused.code in (RefusalCode.STALE_EPOCH, RefusalCode.WRONG_SESSION, RefusalCode.ENDED):
        return SessionLost(refused.message)
    if refused.code == RefusalCode.IN_USE:
        return PoolRefusal(refused.message)
    return ProtocolError(f"The executor refused a message ({refused.code}): {refused.message}")


def _sensible(welcome: wire.Welcome) -> wire.Welcome:
    """Return ``welcome`` if it lets us send anything at all."""
    if min(welcome.credit_ops, welcome.credit_bytes) < 1:
        raise ProtocolError(
            f"The executor takes {welcome.credit_ops} ops and {welcome.credit_bytes} bytes at a time: nothing fits."
        )
    return fit_words(welcome)


compiled.learn(
    Batch=wire.Batch, Connection=Connection, decode=_codec.decode, encode=encode, most_header_bytes=MAX_HEADER_BYTES,
    Refused=wire.Refused,
)  # fmt: skip
