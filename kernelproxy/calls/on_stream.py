"""Calls that are told on which stream to run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from kernelproxy.calls.common_client import common
from kernelproxy.calls.stand_ins import StandIn
from kernelproxy.client import Client

_AS_IT_IS = nullcontext()


def on_stream(client: Client, stream: StandIn | None) -> AbstractContextManager[None]:
    """Return a context in which what this thread asks of ``client`` runs on ``stream``; None for the current one.

    Raises
    ------
    MixedClients
        If the stream is another client's.
    """
    return _AS_IT_IS if stream is None else _on(client, stream)


@contextmanager
def _on(client: Client, stream: StandIn) -> Iterator[None]:
    common(client, getattr(stream, "_client", None))
    before = client.streams.set_current(stream)
    try:
        yield
    finally:
        client.streams.set_current(before)
