"""Copies between devices of several sessions, past the notebook: from executor to executor, by a channel of theirs.

It is opened with the first such copy. From then on nothing is waited for: one executor is told to send, the other where
to put what comes, and that one waits for it as a stream waits for an event.
"""

from __future__ import annotations

import secrets
import threading
from collections import defaultdict
from collections.abc import Iterator
from itertools import count
from time import monotonic
from typing import NamedTuple

from gpu_backend.opstream.devices import OF_DEVICE
from gpu_backend.transport.shared_frames import BLOCK_BYTES
from gpu_backend.wire.channels import CHANNEL, RECEIVE, SEND
from gpu_backend.wire.errors import PoolError
from gpu_backend.wire.messages import Want
from kernelproxy.calls.array_core import ArrayCore, handle_of, window_of_bytes
from kernelproxy.client import Client

__all__ = ["Channels", "copied"]

#: The minor version of executors from which on they know channels.
_KNOWS_CHANNELS = 2
#: Pieces of which both executors are told at a time: no more than they hold between them.
_AT_A_TIME = 4
#: A channel that there was none of is asked for again after so long, seconds.
_AGAIN_SECONDS = 30.0
#: Of a channel's name, which nobody else can guess.
_NAME_BYTES = 16


class Known(NamedTuple):
    """What is known of the channel between two executors: its name, or why there is none, and since when.

    ``failures`` counts those that either executor had told of by then: one that came since may be of a lost channel.
    """

    name: str
    failures: int
    since: float


class Channels:
    """The channels between the executors of a notebook's devices; ``client`` is the first device's."""

    def __init__(self, client: Client) -> None:
        #: One copy after another: pieces come in the order of their numbers.
        self.turn = threading.Lock()
        self.numbers = count(1)
        #: By both sessions and their epochs; whoever asks for one holds its lock.
        self._known: dict[frozenset[tuple[str, int]], Known] = {}
        self._asking: defaultdict[frozenset[tuple[str, int]], threading.Lock] = defaultdict(threading.Lock)

    def name(self, source: Client, target: Client) -> str:
        """Return the name of the channel between both; "" if there is none.

        One is asked for if there may be one: not again for a while where there was none.
        """
        if min(one.pipeline.connection.welcome.minor for one in (source, target)) < _KNOWS_CHANNELS:
            return ""
        both = frozenset((_place(source), _place(target)))
        with self._asking[both]:
            failures = source.pipeline.inbox.failed + target.pipeline.inbox.failed
            known = self._known.get(both)
            if known is None or not self._is_so(known, failures, target):
                known = self._known[both] = Known(_opened(source, target), failures, monotonic())
            elif known.failures != failures:
                self._known[both] = known._replace(failures=failures)
            return known.name

    @staticmethod
    def _is_so(known: Known, failures: int, target: Client) -> bool:
        """Tell whether what is known holds still."""
        if not known.name:
            return monotonic() < known.since + _AGAIN_SECONDS
        return known.failures == failures or not _why_not(target, known.name, is_coming=False)


def copied(source: ArrayCore, target: ArrayCore) -> bool:
    """Copy the bytes of ``source`` into ``target`` of another session; both have no gaps, and lie alike.

    That is recorded, and not waited for. Returns False, and does nothing, where there is no channel.
    """
    channels = source._client.first.part(Channels)
    name = channels.name(source._client, target._client)
    if name:
        with channels.turn:
            _copy(name, channels.numbers, source, target)
    return bool(name)


def _copy(channel: str, numbers: Iterator[int], source: ArrayCore, target: ArrayCore) -> None:
    whence, whither, size = source._client.pipeline, target._client.pipeline, source._layout.nbytes
    stream, of_target = source._client.streams.current_handle(), handle_of(target._ref) & OF_DEVICE
    starts = range(0, size, BLOCK_BYTES)
    for first in range(0, len(starts), _AT_A_TIME):
        numbered = [(next(numbers), offset) for offset in starts[first : first + _AT_A_TIME]]
        for number, offset in numbered:
            piece = window_of_bytes(source, offset, min(BLOCK_BYTES, size - offset))
            whence.record(SEND, (piece, channel, number), 0, stream=stream)
        # Who receives waits for this one, and this one for room there: neither is told of more than the other.
        whence.flush()
        for number, offset in numbered:
            whither.record(RECEIVE, (target._ref, offset, channel, number), 0, stream=of_target)
        if first + _AT_A_TIME < len(starts):
            whither.flush()
    whence.counters.direct_bytes += size


def _opened(source: Client, target: Client) -> str:
    """Have the executor of ``target`` reach that of ``source``; return the name of the channel, "" if there is none."""
    name = secrets.token_hex(_NAME_BYTES)
    try:
        target.session.open_channel(source.session, name)
    except PoolError:
        return ""
    return "" if _why_not(target, name, is_coming=True) else name


def _why_not(client: Client, name: str, is_coming: bool) -> str:
    """Return why the executor of ``client`` has no such channel; "" if it has."""
    return str(client.pipeline.call(CHANNEL, (name, is_coming), Want.CONTENTS).value)


def _place(client: Client) -> tuple[str, int]:
    ticket = client.session.ticket
    return ticket.session, ticket.epoch
