"""Channels to the executors of a notebook's other devices, by which what is copied from one to the other passes.

An executor connects to nothing. Its agent hands over a connection; the proof that both are one user's takes a moment,
and a thread of its own. What passes are pieces, each with a number: the notebook tells one side to send it and the
other where it belongs. An op that lacks something, be it the channel, room or a piece, waits without being run.
"""

from __future__ import annotations

import logging
import os
import select
import socket
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from time import monotonic
from typing import Final, NamedTuple

from gpu_backend.transport.copying import Bytes
from gpu_backend.transport.lost import ConnectionLost
from gpu_backend.transport.message_socket import MessageSocket
from gpu_backend.transport.reaching import Expected, ProofFailed, reach_by
from gpu_backend.wire.channels import Meet, Met, NoPiece, OnChannel, Piece, TakeChannel
from gpu_backend.wire.codec import Codec, Frame, encode
from gpu_backend.wire.errors import NotCopied, WireError

__all__ = ["Awaits", "Channel", "Channels"]

log = logging.getLogger("executor.channels")

#: How long the proof and the greeting may take, seconds; and how long the notebook is kept waiting for a channel.
_PROOF_SECONDS: Final = 10.0
_COMING_SECONDS: Final = 12.0
#: Pieces that wait for the system to take them, beyond which no more are made; and pieces that have come and that
#: nobody has asked for, beyond which no more are read.
_MOST_UNSENT: Final = 4
_MOST_UNASKED: Final = 4
#: Channels at a time; a new one takes the place of the eldest. And failures that are remembered.
_MOST_CHANNELS: Final = 32
_LOST: Final = (
    "What was copied from one device to another has not come, and the array that it was for is not what it should be: "
    "{}. Run the cell again."
)

_codec: Final[Codec[OnChannel]] = Codec(OnChannel)


class Awaits(Exception):
    """Raised by an op that has done nothing yet and lacks something; ``has_come`` tells when it can be run again."""

    def __init__(self, has_come: Callable[[], bool]) -> None:
        super().__init__("It waits for what has not come yet.")
        self.has_come = has_come


class Channel:
    """A connection to another executor. ``peer`` is by what that one is known, "" until it has said so."""

    def __init__(self, connected: MessageSocket, peer: str = "") -> None:
        self.connected = connected
        self.peer = peer
        self.is_met = False
        #: Why it is of no use any more; "" while it is.
        self.lost = ""
        self._unsent: deque[list[Frame]] = deque()
        self._arrived: dict[int, Frame | NoPiece] = {}
        self._first = 0  # pieces below it are nobody's any more

    def fileno(self) -> int:
        """Return the descriptor, for a poller."""
        return self.connected.fileno()

    @property
    def has_room(self) -> bool:
        """Whether another piece may be sent."""
        return len(self._unsent) < _MOST_UNSENT

    def lend(self, size: int) -> Bytes | None:
        """Return memory for a buffer of ``size`` bytes that is sent as it is; None if there is none now."""
        return self.connected.lend(size)

    def send(self, message: OnChannel, *buffers: Frame) -> None:
        """Send a message, now or as soon as the peer reads."""
        self._unsent.append(encode(message, buffers))
        self.push()

    def push(self) -> None:
        """Send what still waits, as far as that goes."""
        try:
            self.connected.push()
            while self._unsent and self.connected.send(self._unsent[0]):
                self._unsent.popleft()
        except ConnectionLost as error:
            self.lose(str(error))

    @property
    def is_full(self) -> bool:
        """Whether no more is read until some of what has come is taken."""
        return len(self._arrived) >= _MOST_UNASKED

    def has_news(self) -> bool:
        """Tell whether something has come that would be read; the cheap question."""
        return not self.lost and not self.is_full and self.connected.has_news()

    def hear(self) -> None:
        """Take in what has come."""
        try:
            while not self.lost and not self.is_full and (frames := self.connected.receive()) is not None:
                self._note(_codec.decode(frames), frames[1:])
        except (ConnectionLost, WireError) as error:
            self.lose(str(error))

    def _note(self, message: OnChannel, buffers: list[Frame]) -> None:
        if isinstance(message, Piece | NoPiece) and self.is_met and len(buffers) == isinstance(message, Piece):
            if message.number >= self._first:
                self._arrived[message.number] = message if isinstance(message, NoPiece) else buffers[0]
        elif isinstance(message, Meet) and not self.peer and message.name:
            self.peer, self.is_met = message.name, True
            self.send(Met())
        elif isinstance(message, Met) and self.peer and not self.is_met:
            self.is_met = True
        else:
            raise ConnectionLost("it said what it had no reason to")

    def is_there(self, number: int) -> bool:
        """Tell whether a piece has come, or is known never to come.

        Those before it are nobody's any more: a notebook asks for pieces in the order of their numbers.
        """
        if number > self._first:
            self._first = number
            for gone in [one for one in self._arrived if one < number]:
                del self._arrived[gone]
        return number in self._arrived or bool(self.lost) or number < self._first

    def take(self, number: int) -> Frame:
        """Return a piece that has come, which is nobody else's from now on.

        Raises
        ------
        ConnectionLost
            If it never will.
        """
        piece = self._arrived.pop(number, None)
        self._first = max(self._first, number + 1)
        if piece is None:
            raise ConnectionLost(self.lost or "the notebook asked for it too late")
        if isinstance(piece, NoPiece):
            raise ConnectionLost(piece.reason)
        return piece

    def lose(self, why: str) -> None:
        """Hang up; what has come can still be taken. Idempotent."""
        if not self.lost:
            self.lost = why or "it ended"
            self.connected.close()
            self._unsent.clear()


class _Reached(NamedTuple):
    """What became of a connection that was handed over."""

    order: TakeChannel
    connected: MessageSocket | None
    failure: str = ""


class Channels:
    """All channels of one executor. ``poll`` is told of what wakes a sleeper."""

    def __init__(self, poll: select.epoll) -> None:
        self._poll = poll
        self._named: dict[str, Channel] = {}
        self._unmet: list[Channel] = []
        #: Why there is none, by the peer's name.
        self._failed: dict[str, str] = {}
        #: Until when the notebook waits for one, by the peer's name (monotonic).
        self._due: dict[str, float] = {}
        self._reached: SimpleQueue[_Reached] = SimpleQueue()
        self._bell = -1
        #: Whether there are any, or may be soon: else nobody need look.
        self.is_used = False

    # --- as they come -------------------------------------------------------------------------------------------------

    def take(self, order: TakeChannel, descriptor: int | None) -> None:
        """Prove to the other end of a connection that was handed over who is here; the descriptor is ours now."""
        self.is_used = True
        if self._bell < 0:
            self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._poll.register(self._bell, select.EPOLLIN)
        if descriptor is None:
            self._fail(order.peer, order.failure)
            return
        connected = socket.socket(fileno=descriptor)
        threading.Thread(target=self._reach, args=(order, connected), name="channel", daemon=True).start()

    def _reach(self, order: TakeChannel, connected: socket.socket) -> None:
        try:
            expected = Expected(bytes.fromhex(order.secret), order.certificate)
            self._reached.put(_Reached(order, reach_by(connected, expected, _PROOF_SECONDS)))
        except (ConnectionLost, ProofFailed, ValueError) as error:
            self._reached.put(_Reached(order, None, str(error)))
        os.eventfd_write(self._bell, 1)

    def admit(self, connected: MessageSocket) -> None:
        """Let another executor in, which is about to say who it is."""
        self.is_used = True
        self._follow(Channel(connected))

    def _follow(self, channel: Channel) -> None:
        if len(self._unmet) + len(self._named) >= _MOST_CHANNELS:
            self._forget((*self._unmet, *self._named.values())[0], "others came since")
        self._unmet.append(channel)
        self._poll.register(channel.fileno(), select.EPOLLIN)

    def _fail(self, peer: str, why: str) -> None:
        self._failed[peer] = why or "it was not said why"
        while len(self._failed) > _MOST_CHANNELS:
            del self._failed[next(iter(self._failed))]

    # --- as they are heard --------------------------------------------------------------------------------------------

    def has_news(self) -> bool:
        """Tell whether something has come; the cheap question."""
        return any(channel.has_news() for channel in self._all())

    def _all(self) -> tuple[Channel, ...]:
        return (*self._unmet, *self._named.values())

    def look(self, ready: set[int]) -> None:
        """Take in what has come, and send what can be; ``ready`` are the descriptors that the poller has named."""
        if self._bell in ready:
            os.eventfd_read(self._bell)
            while not self._reached.empty():
                self._note_reached(self._reached.get())
        for channel in self._all():
            if not channel.lost:
                channel.connected.wake(channel.fileno() in ready)
                self._tend(channel)

    def _note_reached(self, reached: _Reached) -> None:
        if reached.connected is None:
            self._fail(reached.order.peer, reached.failure)
            return
        channel = Channel(reached.connected, reached.order.peer)
        self._follow(channel)
        channel.send(Meet(reached.order.own))

    def _tend(self, channel: Channel) -> None:
        channel.hear()
        channel.push()
        if channel.lost:  # what it has brought stays: the notebook may be about to ask for it
            log.info("the channel to %s ended: %s", channel.peer or "who came", channel.lost)
        if channel not in self._unmet or not (channel.lost or channel.is_met):
            return
        self._unmet.remove(channel)
        if channel.lost:
            self._fail(channel.peer, channel.lost)
            return
        if channel.peer in self._named:
            self._forget(self._named[channel.peer], "another came since")
        self._named[channel.peer] = channel
        self._failed.pop(channel.peer, None)

    def _forget(self, channel: Channel, why: str) -> None:
        channel.lose(why)
        if channel in self._unmet:
            self._unmet.remove(channel)
        if self._named.get(channel.peer) is channel:
            del self._named[channel.peer]

    # --- sleep --------------------------------------------------------------------------------------------------------

    def push(self) -> None:
        """Send what still waits, and have the poller tell of room for the rest."""
        for channel in self._all():
            if not channel.lost:
                channel.push()
            if not channel.lost:
                awaited = channel.connected.awaited
                self._poll.modify(channel.fileno(), awaited & ~select.POLLIN if channel.is_full else awaited)

    def most_sleep(self, seconds: float) -> float:
        """Return how much of ``seconds`` to sleep before `look` is to be called."""
        return min([one.connected.most_sleep(seconds) for one in self._all() if not one.lost], default=seconds)

    def doze(self) -> bool:
        """Say that this side is about to sleep; False if it should not."""
        return all(one.connected.doze() for one in self._all() if not one.lost and not one.is_full)

    def close(self) -> None:
        """Hang up on all."""
        for channel in self._all():
            channel.lose("the executor ends")
        if self._bell >= 0:
            os.close(self._bell)
            self._bell = -1

    # --- what the notebook says ---------------------------------------------------------------------------------------

    def failure(self, peer: str) -> str:
        """Return why there is no channel to ``peer``; "" if there is one.

        Raises
        ------
        Awaits
            While that is not known.
        """
        found = self._named.get(peer)
        if found is not None and found.lost:  # it was asked for anew since
            self._forget(found, found.lost)
            found = None
        due = self._due.setdefault(peer, monotonic() + _COMING_SECONDS)
        if found is None and peer not in self._failed and monotonic() < due:
            raise Awaits(lambda: peer in self._named or peer in self._failed or monotonic() >= due)
        del self._due[peer]
        return "" if found is not None else self._failed.pop(peer, "the other side was not heard in time")

    def to(self, peer: str) -> Channel | None:
        """Return the channel to ``peer``, by which another piece can be sent; None if it was lost.

        Raises
        ------
        Awaits
            While it has no room.
        """
        channel = self._named.get(peer)
        if channel is None or channel.lost:
            return None
        if not channel.has_room:
            raise Awaits(lambda: channel.has_room or bool(channel.lost))
        return channel

    def give_up(self, peer: object, number: object, reason: str) -> None:
        """Tell ``peer`` that a piece will not come, of which the notebook has told it."""
        channel = self._named.get(peer) if isinstance(peer, str) else None
        if channel is not None and not channel.lost and isinstance(number, int):
            channel.send(NoPiece(number, reason))

    def taken(self, peer: str, number: int) -> Frame:
        """Return a piece that ``peer`` has sent.

        Raises
        ------
        Awaits
            While it is on its way.
        NotCopied
            If it will not come.
        """
        channel = self._named.get(peer)
        if channel is None:
            raise NotCopied(_LOST.format("it is not there"))
        if not channel.is_there(number):
            raise Awaits(lambda: channel.is_there(number))
        try:
            return channel.take(number)
        except ConnectionLost as error:
            raise NotCopied(_LOST.format(error)) from None
