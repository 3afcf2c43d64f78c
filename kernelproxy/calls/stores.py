"""Stores that surely succeed: recorded by the form that they have, with nothing to be proved or encoded."""

from __future__ import annotations

from gpu_backend.wire import values as wire
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.common_client import common

#: How many frames of ours there are at least between the pipeline and who stores something.
_DEPTH = 4
#: The key of a whole array.
_ALL = wire.Ellipsis()


def store(target: ArrayCore, value: ArrayCore) -> None:
    """Record that ``value`` is put into ``target``, which has its shape and dtype. Raises `MixedClients`."""
    client = target._client
    if value._client is not client:
        common(client, value._client)
    form = client.pipeline.forms[".store", 0, None, target._layout.nbytes, None, None, False]
    client.pipeline.note(form, (target._ref, value._ref), _DEPTH, None, client.streams.current_handle())


def fill(target: ArrayCore, value: float) -> None:
    """Record that ``value``, which fits and travels as it is, is put into all of ``target``."""
    client = target._client
    form = client.pipeline.forms["cupy.ndarray.__setitem__", 0, None, target._layout.nbytes, None, None, False]
    client.pipeline.note(form, (target._ref, _ALL, value), _DEPTH, None, client.streams.current_handle())
