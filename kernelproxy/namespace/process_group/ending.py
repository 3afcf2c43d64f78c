"""The end of a process that is in groups: what it has asked for is done before, as others wait for what it sends."""

from __future__ import annotations

import atexit
from contextlib import suppress
from multiprocessing import util
from time import monotonic
from weakref import WeakSet

from gpu_backend.wire.errors import WorkbenchError
from kernelproxy.client import Client, clients
from kernelproxy.namespace.process_group.exchange import Exchange
from kernelproxy.stream.mirrored import MirroredPipeline

__all__ = ["finish", "finish_at_end"]

#: How long what was asked for may take yet, seconds: who is not heard by then is not coming.
_MOST_SECONDS = 10.0
_LOOK_SECONDS = 0.05
#: Of what `multiprocessing` does at the end of a process that it has started, this comes first.
_FIRST = 1000


class _Exchanges:
    """Those of a client that are in use."""

    def __init__(self, client: Client) -> None:
        self.all: WeakSet[Exchange] = WeakSet()


def finish_at_end(exchange: Exchange) -> None:
    """Finish what a group is asked for as the process ends, before its session does."""
    exchange.client.part(_Exchanges).all.add(exchange)
    atexit.unregister(_finish_all)
    atexit.register(_finish_all)
    # Processes that `multiprocessing` starts end without what is registered above, before Python 3.13.
    util.Finalize(None, _finish_all, exitpriority=_FIRST)


def finish(exchange: Exchange) -> None:
    """Have all that was asked for carried out, as far as that is done within some seconds; say nothing of the rest."""
    with suppress(WorkbenchError):  # the session is lost: nobody is sent anything any more
        exchange.check()
        _drain(exchange.client.pipeline)


def _drain(pipeline: MirroredPipeline) -> None:
    pipeline.drain()
    until = monotonic() + _MOST_SECONDS
    while pipeline.is_draining and monotonic() < until:
        pipeline.read(_LOOK_SECONDS)


def _finish_all() -> None:
    for client in clients():
        for one in list(client.part(_Exchanges).all):
            finish(one)
