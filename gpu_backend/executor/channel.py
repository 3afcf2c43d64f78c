"""One channel to another executor: pieces with numbers, each way, and no more of them than either side takes."""

from __future__ import annotations

import logging
import select
from collections import deque
from time import monotonic
from typing import Final

from gpu_backend.transport.copying import Bytes
from gpu_backend.transport.lost import ConnectionLost
from gpu_backend.transport.message_socket import MessageSocket
from gpu_backend.wire.channels import MOST_NAME, Last, Meet, Met, NoPiece, OnChannel, Piece
from gpu_backend.wire.codec import Codec, Frame, encode
from gpu_backend.wire.errors import WireError

__all__ = ["MOST_UNASKED", "Channel"]

log = logging.getLogger("executor.channels")

#: Pieces that wait for the system to take them, beyond which no more are made; and pieces that have come and that
#: nobody has asked for, beyond which no more are read.
_MOST_UNSENT: Final = 4
MOST_UNASKED: Final = 4
#: Above all numbers that a message can have.
_NO_NUMBER: Final = 1 << 64
#: How often to look for room while pieces wait for some, seconds.
_ROOM_SECONDS: Final = 1e-3

_codec: Final[Codec[OnChannel]] = Codec(OnChannel)


class Channel:
    """A connection to another executor. ``name`` is that of the channel, "" until who came has said it."""

    def __init__(self, connected: MessageSocket, name: str = "") -> None:
        self.connected = connected
        self.name = name
        self.is_met = False
        #: Why it is of no use any more; "" while it is.
        self.lost = ""
        #: When it was last of use (monotonic).
        self.used_at = monotonic()
        #: Whether the poller tells of what comes.
        self.is_watched = False
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
        return len(self._arrived) >= MOST_UNASKED

    def has_news(self) -> bool:
        """Tell whether something has come that would be read; the cheap question.

        What was read already is none: it is a part of a message, or waits until another piece is taken.
        """
        return not self.lost and not self.is_full and self.connected.has_news()

    def doze(self) -> bool:
        """Say that this side is about to sleep; False if it should not."""
        return self.is_full or self.connected.doze()

    def most_sleep(self, seconds: float) -> float:
        """Return how much of ``seconds`` to sleep before `push` is to be called: not everything tells of room."""
        return min(self.connected.most_sleep(seconds), _ROOM_SECONDS if self._unsent else seconds)

    @property
    def awaited(self) -> int:
        """What to have a poller look for, as a mask of its events: 0 for nothing."""
        awaited = self.connected.awaited
        return awaited & ~select.POLLIN if self.is_full else awaited

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
        elif isinstance(message, Meet) and not self.name and 0 < len(message.channel) <= MOST_NAME:
            self.name, self.is_met = message.channel, True
            self.send(Met())
        elif isinstance(message, Met) and self.name and not self.is_met:
            self.is_met = True
        elif isinstance(message, Last) and self.is_met:
            raise ConnectionLost("its executor has ended")
        else:
            raise ConnectionLost("it said what it had no reason to")

    def is_there(self, number: int) -> bool:
        """Tell whether a piece has come, or is known never to come.

        Those before it are nobody's any more: a notebook asks for pieces in the order of their numbers. In that order
        they are sent, too: where a later one is there, this one never was.
        """
        self.pass_over(number - 1)
        return bool(self._arrived) or bool(self.lost) or number < self._first

    def pass_over(self, number: int) -> None:
        """Let a piece go, and all before it, be they still to come: nobody will ask for them."""
        if number >= self._first:
            self._first = number + 1
            for gone in [one for one in self._arrived if one <= number]:
                del self._arrived[gone]
            self.hear()  # what was not read for want of room

    def take(self, number: int) -> Frame:
        """Return a piece that has come, which is nobody else's from now on.

        Raises
        ------
        ConnectionLost
            If it never will.
        """
        piece = self._arrived.get(number)
        if piece is None:
            raise ConnectionLost(self.lost or "it was never sent, or asked for too late")
        self.pass_over(number)
        if isinstance(piece, NoPiece):
            raise ConnectionLost(piece.reason)
        return piece

    def ask_no_more(self) -> None:
        """Let go of all pieces that have come, and of all that come from now on: what else is said is heard yet."""
        self._first = _NO_NUMBER
        self._arrived.clear()

    @property
    def untaken_bytes(self) -> int:
        """How much has come that nobody has asked for; what is said of a piece that will not come counts as one."""
        return sum(1 if isinstance(one, NoPiece) else 1 + memoryview(one).nbytes for one in self._arrived.values())

    def lose(self, why: str) -> None:
        """Hang up; what has come can still be taken. Idempotent."""
        if not self.lost:
            self.lost = why or "it ended"
            log.info("a channel ended: %s", self.lost)
            self.connected.close()
            self._unsent.clear()
