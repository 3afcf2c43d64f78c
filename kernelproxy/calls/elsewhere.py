"""Arrays of another device than the current one: whether a call is given any, where a session has several."""

from __future__ import annotations

from gpu_backend.opstream.devices import device_of
from gpu_backend.wire.values import Value
from kernelproxy.calls.array_core import ArrayCore, handle_of
from kernelproxy.client import Client

__all__ = ["FETCHING", "is_here", "reaches_over"]

#: What brings an array to the current device: of one that is there already it may be a mere view.
FETCHING = frozenset(f"cupy.{name}" for name in "array asarray asanyarray atleast_1d atleast_2d atleast_3d".split())


def is_here(value: object) -> bool:
    """Tell whether ``value`` is on the current device, if it is an array."""
    return not isinstance(value, ArrayCore) or device_of(handle_of(value._ref)) == value._client.streams.device


def reaches_over(client: Client, args: tuple[Value, ...], kwargs: dict[str, Value] | None = None) -> bool:
    """Tell whether an op that is asked for now is given anything on another device than the current one."""
    streams = client.streams
    return streams.is_used and client.pipeline.reaches_over(args, kwargs, streams.current_handle())
