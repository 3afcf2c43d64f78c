"""What passes between the ranks of a group: pieces of arrays, by a channel between each two executors.

An executor carries out one op after another, and who sends waits while there is no room, who receives while nothing has
come. Nobody waits for ever, if all ranks exchange the same things in the same order. Each exchange goes in steps that
all ranks go through in one order, and in a step a rank sends one peer no more pieces than are held between them, and
only then receives. Of all that wait look at one that is in the earliest step. Does it wait for room, its peer has taken
all of the steps before, so no more lies between them than it may send in this one, and that has room. Does it wait for
a piece, the peer is in this step, where it sends before it waits for anything but room, or has left it, and has sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from typing import NamedTuple

from gpu_backend.transport.shared_frames import BLOCK_BYTES
from gpu_backend.wire.channels import RECEIVE, SEND
from gpu_backend.wire.errors import SessionLost
from kernelproxy.calls.array_core import ArrayCore, window_of_bytes
from kernelproxy.client import Client

__all__ = ["Arrays", "Call", "Exchange"]

#: For each rank, the arrays that go there or come from there: contiguous ones of this group's device.
Arrays = Mapping[int, Sequence[ArrayCore]]
#: Pieces that a rank sends to another in one step: no more than executors hold between them.
_AT_A_TIME = 4
#: A piece's number: which call it is of, which exchange of that call, and which piece of that exchange.
_EXCHANGE_BITS, _PIECE_BITS = 14, 16
_ENDED = "The session in which this process group was made is over: make the group again, in all its processes."


class _Piece(NamedTuple):
    """Bytes of an array, and the number under which they pass."""

    array: ArrayCore
    offset: int
    length: int
    number: int


class Exchange:
    """One rank's end of a group. ``channels`` are to each rank, "" for its own."""

    def __init__(self, client: Client, rank: int, channels: tuple[str, ...]) -> None:
        self.client, self.rank, self.size = client, rank, len(channels)
        self._channels = channels
        self._session = client.session
        self._epoch = self._session.epoch
        #: Calls of all ranks so far, and beside them those of two, by whom something goes to or comes from. They are
        #: counted before anything of them is done, so one that fails or is interrupted in the middle is counted alike.
        self._of_all = 0
        self._sent_to: Counter[int] = Counter()
        self._had_from: Counter[int] = Counter()

    @property
    def others(self) -> list[int]:
        """All ranks but this one."""
        return [rank for rank in range(self.size) if rank != self.rank]

    def check(self) -> None:
        """Raise SessionLost if the session is not the one any more that has the channels."""
        if self.client.opened is not self._session or self._session.epoch != self._epoch:
            raise SessionLost(_ENDED)

    def of_all(self) -> Call:
        """Begin a call that all ranks make."""
        self._of_all += 1
        return Call(self)

    def of_two(self, to: int | None = None, since: int | None = None) -> Call:
        """Begin a call that two ranks make, in which something goes ``to`` one, comes ``since`` one, or both."""
        if to is not None:
            self._sent_to[to] += 1
        if since is not None:
            self._had_from[since] += 1
        return Call(self)

    def send(self, arrays: Sequence[ArrayCore], peer: int) -> None:
        """Send arrays to one rank, which receives them."""
        self.of_two(to=peer).exchange({peer: arrays}, {})

    def receive(self, arrays: Sequence[ArrayCore], peer: int) -> None:
        """Put what one rank sends into arrays."""
        self.of_two(since=peer).exchange({}, {peer: arrays})

    def send_and_receive(self, outgoing: Sequence[ArrayCore], incoming: Sequence[ArrayCore], peer: int) -> None:
        """Do both, which the other rank does as well."""
        self.of_two(peer, peer).exchange({peer: outgoing}, {peer: incoming})

    def calls(self) -> tuple[dict[int, int], dict[int, int]]:
        """Return how many calls there were, this one too, in which something may go to each rank, or come from it."""
        ranks = range(self.size)
        to, since = ({one: self._of_all + of[one] for one in ranks} for of in (self._sent_to, self._had_from))
        return to, since

    def pass_on(self, going: Mapping[int, list[_Piece]], coming: Mapping[int, list[_Piece]]) -> None:
        """Send and receive pieces, step by step. Nothing is waited for."""
        self.check()
        most = max(map(len, (*going.values(), *coming.values())), default=0)
        for first in range(0, most, _AT_A_TIME):
            step = slice(first, first + _AT_A_TIME)
            # All is sent before anything is received: who waits for what we did not send, as we were interrupted,
            # hears that by what comes now, and perhaps it is who we are about to wait for.
            for apart in range(1, self.size):
                to = (self.rank + apart) % self.size
                self._send(to, going.get(to, [])[step])
            for apart in range(1, self.size):
                since = (self.rank - apart) % self.size
                self._receive(since, coming.get(since, [])[step])
            self.client.pipeline.flush()  # others wait for it

    def _send(self, peer: int, pieces: list[_Piece]) -> None:
        channel, stream = self._channels[peer], self.client.streams.current_handle()
        for array, offset, length, number in pieces:
            piece = window_of_bytes(array, offset, length)
            self.client.pipeline.record(SEND, (piece, channel, number), 0, stream=stream)
            self.client.pipeline.counters.direct_bytes += length

    def _receive(self, peer: int, pieces: list[_Piece]) -> None:
        channel, stream = self._channels[peer], self.client.streams.current_handle()
        for array, offset, length, number in pieces:
            room = window_of_bytes(array, offset, length)
            self.client.pipeline.record(RECEIVE, (room, 0, channel, number), 0, stream=stream)


class Call:
    """One call of a method that ranks make together, in the same order: of one exchange, or of several.

    What of it was not done, as it failed here or was interrupted, nothing later is taken for: its pieces have numbers
    that no other call's have. The others hear that they never came.
    """

    def __init__(self, whole: Exchange) -> None:
        self.whole = whole
        self._to, self._since = whole.calls()
        self._count = count()

    def exchange(self, outgoing: Arrays, incoming: Arrays) -> None:
        """Send arrays to others, and put what comes into arrays. Nothing is waited for.

        Raises
        ------
        SessionLost
            If the session has ended that has the channels.
        OverflowError
            If it is more than there are numbers for.
        """
        at = next(self._count)
        going = {peer: _pieces(arrays, self._to[peer], at) for peer, arrays in outgoing.items()}
        coming = {peer: _pieces(arrays, self._since[peer], at) for peer, arrays in incoming.items()}
        self.whole.pass_on(going, coming)


def _pieces(arrays: Sequence[ArrayCore], call: int, exchange: int) -> list[_Piece]:
    """Cut arrays into what passes at a time."""
    cut = [
        (array, offset, min(BLOCK_BYTES, array._layout.nbytes - offset))
        for array in arrays
        for offset in range(0, array._layout.nbytes, BLOCK_BYTES)
    ]
    if exchange >> _EXCHANGE_BITS or len(cut) >> _PIECE_BITS:
        raise OverflowError(f"So much is not passed on at once: {len(cut)} pieces, after {exchange} times others.")
    first = (call << _EXCHANGE_BITS | exchange) << _PIECE_BITS
    return [_Piece(*one, first | at) for at, one in enumerate(cut)]
