"""Copies between devices of several sessions, past the notebook: from executor to executor, by a channel of theirs.

It is opened with the first such copy. From then on nothing is waited for: one executor is told to send, the other where
to put what comes, and that one waits for it as a stream waits for an event.
"""

from __future__ import annotations

import threading
from itertools import count
from typing import NamedTuple

from gpu_backend.opstream.devices import OF_DEVICE
from gpu_backend.transport.shared_frames import BLOCK_BYTES
from gpu_backend.wire.channels import CHANNEL, RECEIVE, SEND, channel_name
from gpu_backend.wire.errors import PoolError
from gpu_backend.wire.messages import Want
from kernelproxy.calls.array_core import ArrayCore, handle_of, window_of_bytes
from kernelproxy.client import Client

__all__ = ["Channels", "copied"]

#: The minor version of executors from which on they know channels.
_KNOWS_CHANNELS = 2
#: Pieces of which both executors are told at a time: no more than they hold between them.
_AT_A_TIME = 4


class Known(NamedTuple):
    """What is known of the channel between two executors: why there is none, and when that was so.

    ``failures`` counts those that either executor had told of by then: one that came since may be of a lost channel.
    """

    why_not: str
    failures: int


class Channels:
    """The channels between the executors of a notebook's devices; ``client`` is the first device's."""

    def __init__(self, client: Client) -> None:
        #: One copy after another: pieces come in the order of their numbers.
        self.turn = threading.Lock()
        self.numbers = count(1)
        #: By the names of both executors.
        self.known: dict[frozenset[str], Known] = {}

    def is_open(self, source: Client, target: Client) -> bool:
        """Tell whether there is a channel; one is asked for if it is not known that there can be none."""
        if min(one.pipeline.connection.welcome.minor for one in (source, target)) < _KNOWS_CHANNELS:
            return False
        both = frozenset((_name(source), _name(target)))
        failures = source.pipeline.inbox.failed + target.pipeline.inbox.failed
        known = self.known.get(both)
        if known is None or (not known.why_not and known.failures != failures):
            known = self.known[both] = Known(_opened(source, target), failures)
        return not known.why_not


def copied(source: ArrayCore, target: ArrayCore) -> bool:
    """Copy the bytes of ``source`` into ``target`` of another session; both have no gaps, and lie alike.

    That is recorded, and not waited for. Returns False, and does nothing, where there is no channel.
    """
    channels = source._client.first.part(Channels)
    with channels.turn:
        is_open = channels.is_open(source._client, target._client)
        if is_open:
            _copy(channels, source, target)
    return is_open


def _copy(channels: Channels, source: ArrayCore, target: ArrayCore) -> None:
    whence, whither, size = source._client, target._client, source._layout.nbytes
    come_from, go_to = _name(whence), _name(whither)
    stream, of_target = whence.streams.current_handle(), handle_of(target._ref) & OF_DEVICE
    starts = range(0, size, BLOCK_BYTES)
    for first in range(0, len(starts), _AT_A_TIME):
        numbered = [(next(channels.numbers), offset) for offset in starts[first : first + _AT_A_TIME]]
        for number, offset in numbered:
            piece = window_of_bytes(source, offset, min(BLOCK_BYTES, size - offset))
            whence.pipeline.record(SEND, (go_to, number, piece), 0, stream=stream)
        # Who receives waits for this one, and this one for room there: neither is told of more than the other.
        whence.pipeline.flush()
        for number, offset in numbered:
            whither.pipeline.record(RECEIVE, (come_from, number, target._ref, offset), 0, stream=of_target)
        if first + _AT_A_TIME < len(starts):
            whither.pipeline.flush()
    whence.pipeline.counters.direct_bytes += size


def _opened(source: Client, target: Client) -> str:
    """Have the executor of ``target`` reach that of ``source``; return why it does not."""
    try:
        target.session.open_channel(source.session)
    except PoolError as error:
        return str(error)
    answer = target.pipeline.call(CHANNEL, (_name(source),), Want.CONTENTS)
    return str(answer.value)


def _name(client: Client) -> str:
    ticket = client.session.ticket
    return channel_name(ticket.session, ticket.epoch)
