"""The end of a process that is in groups: what it has asked for is done before, as others wait for what it sends."""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from multiprocessing import util
from time import monotonic

from gpu_backend.wire.errors import WorkbenchError
from kernelproxy.client import Client, clients
from kernelproxy.namespace.process_group.exchange import Exchange

__all__ = ["finish", "finish_at_end"]

#: How long what was asked for may take yet, seconds, whatever the number of groups: who is not heard by then is not
#: coming.
_MOST_SECONDS = 10.0
_LOOK_SECONDS = 0.05
#: Of what `multiprocessing` does at the end of a process that it has started, this comes first.
_FIRST = 1000


class _Groups:
    """What is known of a client's groups, which have one pipeline."""

    def __init__(self, client: Client) -> None:
        #: The one that was made last, of the session that is or was the last; not that of a process forked from.
        self.last: Exchange | None = None
        #: Up to which op all were waited for in vain, so that nobody waits for the same again.
        self.given_up = 0


class _Registered:
    """In which process `multiprocessing` is to do it: those that are forked from it have to ask anew."""

    process = 0


def finish_at_end(exchange: Exchange) -> None:
    """Finish what a group is asked for as the process ends, before its session does."""
    exchange.client.part(_Groups).last = exchange
    atexit.unregister(_finish_all)  # what is registered last is done first: before the end of the newest session
    atexit.register(_finish_all)
    if _Registered.process != os.getpid():
        # Processes that `multiprocessing` starts end without what is registered above, before Python 3.13.
        util.Finalize(None, _finish_all, exitpriority=_FIRST)
        _Registered.process = os.getpid()


def finish(exchange: Exchange) -> None:
    """Have all that was asked for carried out, as far as that is done within some seconds; say nothing of the rest."""
    _finish(exchange, monotonic() + _MOST_SECONDS)


def _finish(exchange: Exchange, until: float) -> None:
    with suppress(WorkbenchError):  # the session is lost: nobody is sent anything any more
        exchange.check()
        pipeline, groups = exchange.client.pipeline, exchange.client.part(_Groups)
        pipeline.drain()
        upto = pipeline.open_batch.first
        # Nothing is read of a connection that broke: who is on the way out makes no other.
        while pipeline.is_draining and groups.given_up != upto and pipeline.connection.is_sound:
            if monotonic() >= until:
                groups.given_up = upto
            else:
                pipeline.read(_LOOK_SECONDS)


def _finish_all() -> None:
    until = monotonic() + _MOST_SECONDS
    for client in clients():
        if (last := client.part(_Groups).last) is not None:
            _finish(last, until)
