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
from typing import NamedTuple

from gpu_backend.transport.shared_frames import BLOCK_BYTES
from gpu_backend.wire.channels import RECEIVE, SEND
from gpu_backend.wire.errors import SessionLost
from kernelproxy.calls.array_core import ArrayCore, window_of_bytes
from kernelproxy.client import Client

__all__ = ["Arrays", "Exchange"]

#: For each rank, the arrays that go there or come from there: contiguous ones of this group's device.
Arrays = Mapping[int, Sequence[ArrayCore]]
#: Pieces that a rank sends to another in one step: no more than executors hold between them.
_AT_A_TIME = 4
#: A piece's number: which exchange it is of, and which piece there.
_PIECE_BITS = 24
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
        #: Exchanges of all ranks so far, and beside them those of two, by whom it went to or came from. What a rank did
        #: not do, as it was interrupted, is passed over by that: the others hear that it never came.
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

    def among_all(self, outgoing: Arrays, incoming: Arrays) -> None:
        """Send arrays to others, and put what comes into arrays: all ranks do this together. Nothing is waited for."""
        self._of_all += 1
        self._exchange(outgoing, incoming)

    def send(self, arrays: Sequence[ArrayCore], peer: int) -> None:
        """Send arrays to one rank, which receives them."""
        self._sent_to[peer] += 1
        self._exchange({peer: arrays}, {})

    def receive(self, arrays: Sequence[ArrayCore], peer: int) -> None:
        """Put what one rank sends into arrays."""
        self._had_from[peer] += 1
        self._exchange({}, {peer: arrays})

    def send_and_receive(self, outgoing: Sequence[ArrayCore], incoming: Sequence[ArrayCore], peer: int) -> None:
        """Do both, which the other rank does as well."""
        self._sent_to[peer] += 1
        self._had_from[peer] += 1
        self._exchange({peer: outgoing}, {peer: incoming})

    def _exchange(self, outgoing: Arrays, incoming: Arrays) -> None:
        self.check()
        going = {peer: _pieces(arrays, self._of_all + self._sent_to[peer]) for peer, arrays in outgoing.items()}
        coming = {peer: _pieces(arrays, self._of_all + self._had_from[peer]) for peer, arrays in incoming.items()}
        most = max(map(len, (*going.values(), *coming.values())), default=0)
        for first in range(0, most, _AT_A_TIME):
            step = slice(first, first + _AT_A_TIME)
            for apart in range(1, self.size):
                to, since = (self.rank + apart) % self.size, (self.rank - apart) % self.size
                self._send(to, going.get(to, [])[step])
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


def _pieces(arrays: Sequence[ArrayCore], number: int) -> list[_Piece]:
    """Cut arrays into what passes at a time."""
    cut = [
        (array, offset, min(BLOCK_BYTES, array._layout.nbytes - offset))
        for array in arrays
        for offset in range(0, array._layout.nbytes, BLOCK_BYTES)
    ]
    return [_Piece(*one, number << _PIECE_BITS | at) for at, one in enumerate(cut)]
