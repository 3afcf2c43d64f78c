"""Reaching an executor: the connection, and the proof to each other that both know the ticket's secret."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

from gpu_backend.transport import joining, local
from gpu_backend.transport.channel import channel
from gpu_backend.transport.framing import MessageReader, Stream
from gpu_backend.transport.lanes import TAKEN, request
from gpu_backend.transport.lost import ConnectionLost
from gpu_backend.transport.message_socket import MessageSocket
from gpu_backend.transport.ring import RingStream
from gpu_backend.transport.secret_proof import (
    LOCAL_WAY,
    OPENING_BYTES,
    REFUSAL,
    VERDICT_BYTES,
    Connecting,
    UnknownVersion,
)
from gpu_backend.transport.shared_frames import SharedFrames
from gpu_backend.transport.tls import TlsStream, as_client, messages_of, tls_way

#: What an endpoint for other hosts begins with.
TLS_SCHEME = "tls://"
#: How long a lane may take to come, seconds: nobody waits for it.
_LANE_SECONDS = 30.0
#: Bytes read of what answers, before it has proved anything.
_ALLOWANCE_BYTES = 16 << 10

T = TypeVar("T")


class NotReached(ConnectionLost):
    """Nobody listens, or nobody answers in time."""


class NobodyListens(NotReached):
    """What answers for the host says that nobody listens there.

    On our own host that is the system itself, which knows: who listened has ended. On the way to another it may be
    somebody between, a firewall or the near end of a tunnel.
    """


class ProofFailed(Exception):
    """Who answers is not the executor that was meant, or does not accept that we are meant. The message says which."""


class Expected(NamedTuple):
    """By what an executor and who connects to it know each other."""

    secret: bytes
    #: SHA-256 of the executor's certificate, in hexadecimal.
    certificate: str

    def __repr__(self) -> str:  # it must not get into a log or a traceback
        return f"Expected(secret=..., certificate={self.certificate!r})"


def reach_local(endpoint: str, expected: Expected, timeout_seconds: float) -> MessageSocket:
    """Return a connection to an executor of this host, through memory that both share if there is some.

    Raises
    ------
    NotReached
        If nobody answers within ``timeout_seconds``; a `NobodyListens` if the process has ended.
    ConnectionLost
        If the connection was cut.
    ProofFailed
        If the other side does not know the secret, or says that we do not.
    """
    deadline = monotonic() + timeout_seconds
    connected = _connected_here(endpoint, timeout_seconds)
    try:
        stream, frames = _joined(connected, expected, deadline)
        return MessageSocket(stream, MessageReader(stream, frames))
    except BaseException:  # an interrupt too must leave nothing open
        connected.close()
        raise


def connect(endpoints: Sequence[str], timeout_seconds: float) -> socket.socket:
    """Return a connection to an executor that listens at ``endpoints``, on which nothing was said yet.

    Raises
    ------
    NotReached
        If nobody accepts one within ``timeout_seconds``.
    """
    usable = [one for one in endpoints if local.is_here(one) or one.startswith(TLS_SCHEME)]
    if not usable:
        raise NotReached("it has no endpoint for other hosts")
    return (_connected_here if local.is_here(usable[0]) else _connected)(usable[0], timeout_seconds)


def reach_by(connected: socket.socket, expected: Expected, timeout_seconds: float) -> MessageSocket:
    """Return a channel to another executor by ``connected``, which was opened for this process; closed if that fails.

    Raises as `reach_local` and `reach_far`.
    """
    deadline = monotonic() + timeout_seconds
    try:
        if connected.family == socket.AF_UNIX:
            return channel(*_joined(connected, expected, deadline))
        return channel(_encrypted(connected, expected, deadline, is_lane=False)[0])
    except BaseException:  # whatever it is, nothing may stay open
        connected.close()
        raise


def _joined(
    connected: socket.socket, expected: Expected, deadline: float
) -> tuple[RingStream | socket.socket, SharedFrames | None]:
    """Return what is shared with an executor of this host, with all proved."""
    local.make_ready(connected)
    _prove(connected, expected.secret, LOCAL_WAY, deadline)
    memory = _await(partial(joining.offered, connected), connected, deadline)
    return memory if memory is not None else (connected, None)


def reach_far(
    endpoint: str, expected: Expected, timeout_seconds: float, lanes: int = 0
) -> tuple[MessageSocket, TlsStream]:
    """Return a connection to an executor of another host, and what encrypts it.

    Raises
    ------
    NotReached
        If nobody answers within ``timeout_seconds``; a `NobodyListens` if the connection was refused.
    ConnectionLost
        If the connection was cut, or what passes on it was altered.
    ProofFailed
        If it shows another certificate, in which case it learned nothing of us, or as in `reach_local`.
    """
    deadline = monotonic() + timeout_seconds
    connected = _connected(endpoint, timeout_seconds)
    try:
        stream, name = _encrypted(connected, expected, deadline, is_lane=False)
        return messages_of(stream, lanes, partial(_reach_lane, endpoint, expected, name))[0], stream
    except BaseException:  # an interrupt too must leave nothing open
        connected.close()
        raise


def _reach_lane(endpoint: str, expected: Expected, name: bytes, is_sending: bool) -> TlsStream:
    """Return one more stream to the executor, for pieces of what the connection ``name`` carries."""
    deadline = monotonic() + _LANE_SECONDS
    connected = _connected(endpoint, _LANE_SECONDS)
    try:
        stream, _ = _encrypted(connected, expected, deadline, is_lane=True)
        asked = request(name, is_sending)
        if _await(partial(stream.send, asked), stream, deadline) != len(asked) or _read(stream, 1, deadline) != TAKEN:
            raise ConnectionLost("the executor takes no lane")
        return stream
    except BaseException:  # whatever it is, nothing may stay open
        connected.close()
        raise


def _connected_here(endpoint: str, timeout_seconds: float) -> socket.socket:
    try:
        return local.connect(endpoint, timeout_seconds)
    except OSError as error:
        raise _not_reached(endpoint, error) from None


def _connected(endpoint: str, timeout_seconds: float) -> socket.socket:
    try:
        at = urlsplit(endpoint)
        host, port = at.hostname, at.port
    except ValueError as error:
        raise NotReached(f"{endpoint}: {error}") from None
    if timeout_seconds <= 0:  # used up by a try before this one, and no time that a socket takes
        raise NotReached(f"{endpoint}: timed out")
    try:
        return socket.create_connection((host, port), timeout_seconds)
    except OSError as error:
        raise _not_reached(endpoint, error) from None
    except ValueError as error:  # a name that no host can have
        raise NotReached(f"{endpoint}: {error}") from None


def _not_reached(endpoint: str, error: OSError) -> NotReached:
    kind = NobodyListens if isinstance(error, ConnectionRefusedError) else NotReached
    return kind(f"{endpoint}: {error.strerror or error}")


def _encrypted(connected: socket.socket, expected: Expected, deadline: float, is_lane: bool) -> tuple[TlsStream, bytes]:
    """Return what encrypts ``connected``, with all proved, and by what both sides know it."""
    try:
        stream = TlsStream(connected, as_client(is_lane), is_server=False, allowance=_ALLOWANCE_BYTES)
    except OSError as error:  # it is gone already
        raise ConnectionLost(str(error)) from None
    _await(stream.shake_hands, stream, deadline)
    if stream.fingerprint != expected.certificate:
        raise ProofFailed("it shows another certificate than the pool's ticket names")
    if is_lane and not stream.is_lane:
        raise ConnectionLost("the executor knows no lanes")
    name = _prove(stream, expected.secret, tls_way(expected.certificate), deadline)
    stream.trust()
    return stream, name


def _prove(stream: Stream, secret: bytes, way: bytes, deadline: float) -> bytes:
    """Prove that both know ``secret``; return by what both know the connection."""
    try:
        proof = Connecting(secret, way, _read(stream, OPENING_BYTES, deadline))
    except UnknownVersion as error:
        raise ProofFailed(str(error)) from None
    if _await(partial(stream.send, proof.answer), stream, deadline) != len(proof.answer):
        raise ConnectionLost("the executor reads nothing")
    verdict = _read(stream, VERDICT_BYTES, deadline)
    if verdict == REFUSAL:
        raise ProofFailed("it does not know this ticket")
    if not proof.is_proved_by(verdict):
        raise ProofFailed("it does not know the secret of the pool's ticket")
    return proof.name


def _read(stream: Stream, size: int, deadline: float) -> bytes:
    read = bytearray()
    while missing := size - len(read):
        piece = memoryview(bytearray(missing))
        taken = _await(partial(stream.recv_into, piece), stream, deadline)
        if not taken:
            raise ConnectionLost("the executor closed the connection")
        read += piece[:taken]
    return bytes(read)


def _await(action: Callable[[], T], stream: Stream, deadline: float) -> T:
    """Do ``action`` as soon as the other side has said what it needs."""
    poll = select.poll()
    poll.register(stream.fileno(), select.POLLIN)
    while True:
        try:
            return action()
        except BlockingIOError:
            if not poll.poll(max(0, (deadline - monotonic()) * 1_000)):
                raise NotReached("the executor does not answer") from None
        except OSError as error:
            raise ConnectionLost(str(error)) from None
