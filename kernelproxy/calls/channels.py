"""Copies between devices of several sessions, past the notebook: from executor to executor, by a channel of theirs.

It is opened with the first such copy. From then on nothing is waited for: one executor is told to send, the other where
to put what comes, and that one waits for it as a stream waits for an event.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from itertools import count
from time import monotonic
from typing import NamedTuple

from gpu_backend.opstream.devices import OF_DEVICE
from gpu_backend.transport.shared_frames import BLOCK_BYTES
from gpu_backend.wire.channels import CHANNEL, RECEIVE, SEND
from gpu_backend.wire.errors import WorkbenchError
from gpu_backend.wire.messages import Want
from kernelproxy.calls.array_core import ArrayCore, handle_of, window_of_bytes
from kernelproxy.client import Client

__all__ = ["Channels", "copied"]

#: The minor version of executors from which on they know channels.
_KNOWS_CHANNELS = 2
#: Pieces of which both executors are told at a time: no more than they hold between them.
_AT_A_TIME = 4
#: Where there was no channel, one is asked for again after so long, each time after twice as long up to the second,
#: seconds: between machines that do not hear each other that takes a while.
_AGAIN_SECONDS, _MOST_PAUSE = 30.0, 600.0
#: Of a channel's name, which nobody else can guess.
_NAME_BYTES = 16


class Known(NamedTuple):
    """What is known of the channel between two executors: its name, or "" and when to ask for one again (monotonic).

    ``failures`` counts those that either executor had told of by then: one that came since may be of a lost channel.
    ``pause`` is for how long none is asked for, seconds.
    """

    name: str
    failures: int
    again_at: float
    pause: float


class Channels:
    """The channels between the executors of a notebook's devices; ``client`` is the first device's."""

    def __init__(self, client: Client) -> None:
        #: One copy after another: pieces come in the order of their numbers.
        self.turn = threading.Lock()
        self.numbers = count(1)
        #: By both sessions and their epochs; whoever asks for one holds its lock.
        self._known: dict[frozenset[tuple[str, int]], Known] = {}
        self._asking: defaultdict[frozenset[tuple[str, int]], threading.Lock] = defaultdict(threading.Lock)
        self._process = os.getpid()

    def of_this_process(self) -> Channels:
        """Return it with locks that no thread of a parent process holds."""
        if self._process != os.getpid():
            self._process, self.turn = os.getpid(), threading.Lock()
            self._asking.clear()
        return self

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
                pause = _AGAIN_SECONDS if known is None or known.name else min(2 * known.pause, _MOST_PAUSE)
                name = _opened(source, target)
                known = self._known[both] = Known(name, failures, monotonic() + pause, pause)
            elif known.failures != failures:
                self._known[both] = known._replace(failures=failures)
            return known.name

    @staticmethod
    def _is_so(known: Known, failures: int, target: Client) -> bool:
        """Tell whether what is known holds still."""
        if not known.name:
            return monotonic() < known.again_at
        return known.failures == failures or not _why_not(target, known.name, is_coming=False)


def copied(source: ArrayCore, target: ArrayCore) -> bool:
    """Copy the bytes of ``source`` into ``target`` of another session; both have no gaps, and lie alike.

    That is recorded, and not waited for. Returns False, and does nothing, where there is no channel.
    """
    channels = source._client.first.part(Channels).of_this_process()
    name = channels.name(source._client, target._client)
    if name:
        with channels.turn:
            _copy(name, channels.numbers, source, target)
    return bool(name)


def _copy(channel: str, numbers: Iterator[int], source: ArrayCore, target: ArrayCore) -> None:
    size = source._layout.nbytes
    starts = range(0, size, BLOCK_BYTES)
    for first in range(0, len(starts), _AT_A_TIME):
        sent: deque[tuple[int, int]] = deque()
        try:
            _send(channel, [(next(numbers), offset) for offset in starts[first : first + _AT_A_TIME]], source, sent)
        finally:  # what is sent is received, also after an interrupt: it would take the room of others
            _receive(channel, sent, target)
        if first + _AT_A_TIME < len(starts):
            target._client.pipeline.flush()
    source._client.pipeline.counters.direct_bytes += size


def _send(channel: str, numbered: Iterable[tuple[int, int]], source: ArrayCore, sent: deque[tuple[int, int]]) -> None:
    client, size = source._client, source._layout.nbytes
    for number, offset in numbered:
        piece = window_of_bytes(source, offset, min(BLOCK_BYTES, size - offset))
        client.pipeline.record(SEND, (piece, channel, number), 0, stream=client.streams.current_handle())
        sent.append((number, offset))
    # Who receives waits for this one, and this one for room there: neither is told of more than the other.
    client.pipeline.flush()


def _receive(channel: str, sent: deque[tuple[int, int]], target: ArrayCore) -> None:
    stream = handle_of(target._ref) & OF_DEVICE
    while sent:
        number, offset = sent.popleft()
        target._client.pipeline.record(RECEIVE, (target._ref, offset, channel, number), 0, stream=stream)


def _opened(source: Client, target: Client) -> str:
    """Have the executor of ``target`` reach that of ``source``; return the name of the channel, "" if there is none."""
    name = secrets.token_hex(_NAME_BYTES)
    try:
        target.session.open_channel(source.session, name)
    except (WorkbenchError, OSError):  # whatever it is: copies pass the notebook
        return ""
    return "" if _why_not(target, name, is_coming=True) else name


def _why_not(client: Client, name: str, is_coming: bool) -> str:
    """Return why the executor of ``client`` has no such channel; "" if it has."""
    return str(client.pipeline.call(CHANNEL, (name, is_coming), Want.CONTENTS).value)


def _place(client: Client) -> tuple[str, int]:
    ticket = client.session.ticket
    return ticket.session, ticket.epoch
