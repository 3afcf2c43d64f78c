"""Arrays of another device than the current one: whether a call is given any, where a session has several."""

from __future__ import annotations

from gpu_backend.opstream.layout import Layout
from gpu_backend.wire.values import Value
from kernelproxy.calls.array_core import ArrayCore, device_of
from kernelproxy.client import Client

__all__ = ["FETCHING", "is_copied_whole", "is_here", "is_stored_whole", "lies_alike", "reaches_over"]

#: What brings an array to the current device: of one that is there already it may be a mere view.
FETCHING = frozenset(f"cupy.{name}" for name in "array asarray asanyarray atleast_1d atleast_2d atleast_3d".split())

_COPIES = FETCHING | {"cupy.copy", "cupy.ndarray.copy"}


def is_here(value: object) -> bool:
    """Tell whether ``value`` is on the current device, if it is an array."""
    return not isinstance(value, ArrayCore) or device_of(value) == value._client.streams.device


def reaches_over(client: Client, args: tuple[Value, ...], kwargs: dict[str, Value] | None = None) -> bool:
    """Tell whether an op that is asked for now is given anything on another device than the current one."""
    streams = client.streams
    return streams.is_used and client.pipeline.reaches_over(args, kwargs, streams.current_handle())


def lies_alike(array: object, layout: object) -> bool:
    """Tell whether ``array`` has no gaps and lies as ``layout``: CUDA itself copies it from device to device."""
    return (
        isinstance(array, ArrayCore)
        and type(layout) is Layout
        and array._layout == layout
        and (layout.c_contiguous or layout.f_contiguous)
    )


def is_copied_whole(qualname: str, args: tuple[object, ...], result: object) -> bool:
    """Tell whether a call with ``result`` only copies its first argument, from whatever device that is on."""
    return qualname in _COPIES and bool(args) and lies_alike(args[0], result)


def is_stored_whole(value: object, target: Layout) -> bool:
    """Tell whether CuPy stores ``value`` into ``target`` by a copy, from whatever device that is on; else by a kernel.

    It takes leading axes of one element from the value, which lies otherwise then, and looks for C's order alone.
    """
    return lies_alike(value, target) and target.c_contiguous and target.shape[:1] != (1,)
