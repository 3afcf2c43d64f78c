"""Where notebooks come in: who connects proves that it knows the ticket's secret before a message of it is read.

A stranger may connect, say nothing, half of something or too much. It costs one of few places, for a few seconds, and
those of its own account or host first: nobody can keep another out by filling them. Nothing here waits.
"""

from __future__ import annotations

import logging
import select
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple, Protocol
from weakref import WeakValueDictionary

from gpu_backend.transport import joining, local
from gpu_backend.transport.channel import channel
from gpu_backend.transport.crowd import in_the_way
from gpu_backend.transport.framing import MessageReader, Stream
from gpu_backend.transport.joining import Room
from gpu_backend.transport.lanes import REQUEST_BYTES, Lane, Lanes, requested
from gpu_backend.transport.message_socket import MessageSocket
from gpu_backend.transport.peer_process import PeerProcess, credentials
from gpu_backend.transport.secret_proof import (
    ANSWER_BYTES,
    LOCAL_WAY,
    NAME_BYTES,
    REFUSAL,
    Listening,
    channel_secret,
)
from gpu_backend.transport.tls import TlsStream, messages_of

log = logging.getLogger("transport.entrance")

#: How long a proof may take, seconds: a notebook's takes milliseconds.
_PROOF_SECONDS = 5.0
#: While somebody is at it we look at least so often, seconds, but where an op or the host keeps us from it. What goes
#: beyond that is not their time.
_LOOK_SECONDS = 1.5
#: Connections that have proved nothing yet: in all, and of one account or host.
_MOST_ENTERING, _MOST_OF_ONE = 64, 8
#: Looked at in one go; the rest waits its turn.
_MOST_AT_ONCE = 8
#: Bytes read of a peer before it has proved anything. A handshake takes some two thousand.
_ALLOWANCE_BYTES = 16 << 10
#: Which of the secrets that an entrance knows is that of other executors.
_CHANNELS = 1


class Door(Protocol):
    """A listening socket, and how a connection through it becomes one of messages."""

    def fileno(self) -> int:
        """Return the descriptor, for a poller."""

    def accept(self) -> Guest | None:
        """Return the next connection, or None."""

    def close(self) -> None:
        """Accept no more."""


class Guest(Protocol):
    """A connection whose peer is still to prove that it knows the secret."""

    #: Whose it is, as far as can be known without a proof.
    account: str
    #: By what the way is known in the proof.
    way: bytes
    stream: Stream

    def prepare(self) -> None:
        """Go on until bytes can pass; raises a BlockingIOError until then."""

    def admit(self, name: bytes, is_channel: bool) -> MessageSocket | Lane:
        """Return what takes messages from now on, of the connection that its peer knows by ``name``; or a lane of one.

        Raises a BlockingIOError until that is settled with the peer, which is another executor if it ``is_channel``.
        """


class Admitted(NamedTuple):
    """A connection whose peer has proved what it knows: a notebook's, or another executor's."""

    peer: MessageSocket
    is_channel: bool


class LocalDoor:
    """For every account of this host. ``listening`` is of `local.listen`, and this door's from now on.

    ``make_room`` returns memory to share with a notebook that has come in, which nobody else has; None for none.
    """

    def __init__(self, listening: socket.socket, make_room: Callable[[], Room | None]) -> None:
        listening.setblocking(False)
        self._listening = listening
        self._make_room = make_room
        self._has_told = False

    def fileno(self) -> int:
        """Return the descriptor, for a poller."""
        return self._listening.fileno()

    def accept(self) -> Guest | None:
        """Return the next connection, or None."""
        try:
            connected, _ = self._listening.accept()
        except OSError:
            return None
        return _LocalGuest(connected, self._offered)

    def _offered(self, connected: socket.socket, is_channel: bool) -> Room | None:
        """Offer memory to who has come in, and return it; None if none could be offered, which is logged once."""
        # What notebooks share is known to the device, which knows one at a time.
        room = _room_of_its_own() if is_channel else self._make_room()
        failure = joining.offer(connected, room)
        if failure is None:
            return room
        if not self._has_told:
            self._has_told = True
            log.warning("no memory is shared with who came in, all passes through a socket: %s", failure)
        return None

    def close(self) -> None:
        """Accept no more."""
        self._listening.close()


class _LocalGuest:
    way = LOCAL_WAY

    def __init__(self, connected: socket.socket, offered: Callable[[socket.socket, bool], Room | None]) -> None:
        local.make_ready(connected)
        self.account = f"account {credentials(connected)[1]}"
        self.stream: Stream = connected
        self._connected = connected
        self._offered = offered
        self._room: Room | None = None
        self._has_offered = False

    def prepare(self) -> None:
        """There is nothing to prepare."""

    def admit(self, name: bytes, is_channel: bool) -> MessageSocket:
        if not self._has_offered:
            self._has_offered = True
            self._room = self._offered(self._connected, is_channel)
        stream: Stream = self._connected
        frames = None
        if joining.is_taken(self._connected) and self._room is not None:
            stream, frames = joining.joined(self._connected, self._room)
        if is_channel:
            return channel(stream, frames)
        return MessageSocket(stream, MessageReader(stream, frames), PeerProcess(self._connected))


class TlsDoor:
    """For other hosts. ``listening`` is a TCP socket, this door's from now on; ``way`` names the certificate."""

    def __init__(self, listening: socket.socket, context: ssl.SSLContext, way: bytes) -> None:
        listening.setblocking(False)
        self._listening, self._context, self._way = listening, context, way
        self._lanes: WeakValueDictionary[bytes, Lanes] = WeakValueDictionary()  # of the connections that there are

    def fileno(self) -> int:
        """Return the descriptor, for a poller."""
        return self._listening.fileno()

    def accept(self) -> Guest | None:
        """Return the next connection, or None."""
        try:
            connected, address = self._listening.accept()
        except OSError:
            return None
        try:
            stream = TlsStream(connected, self._context, is_server=True, allowance=_ALLOWANCE_BYTES)
        except OSError:  # it is gone already
            connected.close()
            return None
        return _TlsGuest(stream, f"host {address[0]}", self._way, self._lanes)

    def close(self) -> None:
        """Accept no more."""
        self._listening.close()


class _TlsGuest:
    def __init__(self, stream: TlsStream, account: str, way: bytes, lanes: WeakValueDictionary[bytes, Lanes]) -> None:
        self.account, self.way = account, way
        self.stream: Stream = stream
        self._tls = stream
        self._lanes = lanes
        self._is_prepared = False
        self._request = bytearray()

    def prepare(self) -> None:
        if not self._is_prepared:
            self._tls.shake_hands()
            self._is_prepared = True

    def admit(self, name: bytes, is_channel: bool) -> MessageSocket | Lane:
        if self._tls.is_lane and not is_channel:
            return self._lane()
        self._tls.trust()
        if is_channel:
            return channel(self._tls)
        admitted, lanes = messages_of(self._tls)
        if lanes is not None:
            self._lanes[name] = lanes
        return admitted

    def _lane(self) -> Lane:
        _fill(self._request, REQUEST_BYTES, self._tls)
        name, is_sending = requested(bytes(self._request))
        lanes = self._lanes.get(name)
        if lanes is None:
            raise ConnectionAbortedError("a lane of a connection that is not there")
        self._tls.trust()
        return Lane(lanes, self._tls, is_sending)


@dataclass(slots=True)
class _Entering:
    guest: Guest
    proof: Listening
    until: float
    answer: bytearray
    has_opened: bool = False


class Entrance:
    """All doors of one executor, and who stands in them. ``secret`` is what a notebook must know.

    What another executor must know follows from it (`channel_secret`).
    """

    def __init__(self, secret: bytes, doors: tuple[Door, ...]) -> None:
        self._secrets = (secret, channel_secret(secret))
        self._doors = {door.fileno(): door for door in doors}
        self._entering: dict[int, _Entering] = {}  # the eldest first
        self._looked_at = 0.0
        self._poll = select.epoll()
        for descriptor in self._doors:
            self._poll.register(descriptor, select.EPOLLIN)

    def fileno(self) -> int:
        """Return a descriptor that is readable while `admitted` has something to do, for a poller."""
        return self._poll.fileno()

    @property
    def is_empty(self) -> bool:
        """True while nobody is about to prove anything."""
        return not self._entering

    def admitted(self) -> list[Admitted]:
        """Go on with everybody who has said something; return the connections of those whose proof is complete."""
        self._turn_away_late()
        admitted = []
        for descriptor, _ in self._poll.poll(0, _MOST_AT_ONCE):
            door = self._doors.get(descriptor)
            if door is None:
                admitted.append(self._hear(descriptor))
                continue
            for _ in range(_MOST_AT_ONCE):
                if (guest := door.accept()) is None:
                    break
                admitted.append(self._receive(guest))
        return [one for one in admitted if one is not None]

    def _receive(self, guest: Guest) -> Admitted | None:
        self._make_room(guest.account)
        descriptor = guest.stream.fileno()
        proof = Listening(self._secrets, guest.way)
        self._entering[descriptor] = _Entering(guest, proof, monotonic() + _PROOF_SECONDS, bytearray())
        self._poll.register(descriptor, select.EPOLLIN)
        return self._hear(descriptor)  # the opening need not wait for it to speak

    def _make_room(self, account: str) -> None:
        accounts = [entering.guest.account for entering in self._entering.values()]
        gone = in_the_way(accounts, account, _MOST_ENTERING, _MOST_OF_ONE)
        if gone is not None:
            self._turn_away(list(self._entering)[gone])

    def _hear(self, descriptor: int) -> Admitted | None:
        entering = self._entering.get(descriptor)
        if entering is None:  # somebody who came in the same moment was given its place
            return None
        try:
            return self._go_on(descriptor, entering)
        except BlockingIOError:
            return None
        except OSError:  # it is gone, or what it says is none of this
            self._turn_away(descriptor)
            return None

    def _go_on(self, descriptor: int, entering: _Entering) -> Admitted | None:
        guest, stream = entering.guest, entering.guest.stream
        guest.prepare()
        if not entering.has_opened:
            entering.has_opened = True
            _send_whole(stream, entering.proof.opening)
        _fill(entering.answer, ANSWER_BYTES, stream)
        if entering.proof.proved is None:
            verdict = entering.proof.verdict(bytes(entering.answer))
            _send_whole(stream, verdict)
            if verdict == REFUSAL:
                self._turn_away(descriptor)
                return None
        is_channel = entering.proof.proved == _CHANNELS
        admitted = guest.admit(bytes(entering.answer[:NAME_BYTES]), is_channel)
        del self._entering[descriptor]
        self._poll.unregister(descriptor)
        if isinstance(admitted, Lane):
            admitted.open()
            return None
        return Admitted(admitted, is_channel)

    def _turn_away_late(self) -> None:
        now = monotonic()
        kept = max(0.0, now - self._looked_at - _LOOK_SECONDS)
        self._looked_at = now
        for descriptor, entering in list(self._entering.items()):
            entering.until += kept
            if entering.until < now:
                self._turn_away(descriptor)

    def _turn_away(self, descriptor: int) -> None:
        self._poll.unregister(descriptor)
        self._entering.pop(descriptor).guest.stream.close()

    def close(self) -> None:
        """Turn everybody away and accept no more."""
        for descriptor in list(self._entering):
            self._turn_away(descriptor)
        self._poll.close()
        for door in self._doors.values():
            door.close()


def _room_of_its_own() -> Room | None:
    try:
        return joining.make()
    except OSError as error:
        log.warning("there is no memory to share with another executor: %s", error)
        return None


def _fill(heard: bytearray, size: int, stream: Stream) -> None:
    """Read on until ``size`` bytes were ``heard``."""
    while missing := size - len(heard):
        piece = memoryview(bytearray(missing))
        taken = stream.recv_into(piece)
        if not taken:
            raise ConnectionResetError("the peer closed the connection")
        heard += piece[:taken]


def _send_whole(stream: Stream, message: bytes) -> None:
    """Send what any connection takes at once; one that does not is none to wait for."""
    try:
        sent = stream.send(message)
    except BlockingIOError:
        sent = 0
    if sent != len(message):
        raise ConnectionAbortedError("the peer reads nothing")
