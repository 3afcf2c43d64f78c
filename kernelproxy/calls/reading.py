"""The values of remote arrays: from what the notebook knows, else by a trip that may bring more than was asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_backend.opstream.layout import Layout
from gpu_backend.wire import values as wire
from gpu_backend.wire.messages import Want
from kernelproxy.calls import transfer
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.decoding import buffer_to_array, inline_scalar
from kernelproxy.errors import MirrorDiffers
from kernelproxy.stream.counters import Trip

Host = np.ndarray[Any, Any]
_ARRAY, _SCALAR, _CONTENTS = Trip.ARRAY, Trip.SCALAR, Want.CONTENTS  # a member is found in its class by much searching


def contents(array: ArrayCore) -> Host:
    """Return a copy of what ``array`` holds when all before is computed."""
    __tracebackhide__ = True
    known = _known(array, _ARRAY)
    return known if known is not None else transfer.read(array, array._client.streams.current_handle())


def scalar(array: ArrayCore) -> Any:
    """Return the one element of ``array`` as a NumPy scalar; other sizes as an array."""
    __tracebackhide__ = True
    known = _known(array, _SCALAR)
    if known is None:
        client = array._client
        stream = client.streams.current_handle()
        answer = client.pipeline.call(".same", (array._ref,), _CONTENTS, None, None, stream)
        value = answer.value
        if isinstance(value, wire.Buffer) and value.frame < 0 and value.shape == ():  # what is asked for most
            return inline_scalar(value.dtype, value.data)
        known = buffer_to_array(value, answer.buffers)
    return known.reshape(-1)[0] if known.size == 1 else known


def _known(array: ArrayCore, trip: Trip) -> Host | None:
    """Return what ``array`` holds, if that is known now or is worth being known; else the caller takes the trip."""
    __tracebackhide__ = True
    layout, pipeline = array._layout, array._client.pipeline
    if type(layout) is not Layout:  # of a shape that depends on values
        return None
    found: Host | None = pipeline.known(array._ref, layout)
    if found is not None:
        pipeline.counters.answered_here += 1
        return found if not pipeline.mirror.is_checked else _compared(array, found)
    pipeline.counters.expect(trip)
    root = array if array._root is None else array._root
    reference = root._ref
    if type(reference) is not wire.Ref or type(root._layout) is not Layout:
        return None
    if not pipeline.mirror.should_fetch(reference.handle, root._layout, root is array):
        return None
    content = _fetched(root, reference.handle, root is array)
    # Another thread may have written it since, so it is the content that is shown, and not what is known.
    return content if root is array else pipeline.mirror.shown(array._ref, root._layout, content)


def _fetched(root: ArrayCore, handle: int, is_all: bool) -> Host:
    pipeline, layout = root._client.pipeline, root._layout
    with pipeline.recording:
        awaited = pipeline.mirror.await_(handle, layout)
    content = transfer.read(root, root._client.streams.current_handle())
    with pipeline.recording:
        pipeline.mirror.note_fetched(handle, awaited, content, is_all)
    return content


def _compared(array: ArrayCore, found: Host) -> Host:
    """Return what the device says ``array`` holds.

    Raises
    ------
    MirrorDiffers
        If that is not ``found``, bit for bit; any NaN is as good as another.
    """
    told = transfer.read(array, array._client.streams.current_handle())
    if not _are_same(told, found):
        raise MirrorDiffers(f"The notebook took an array to hold {found!r}, and on the device it holds {told!r}.")
    return told


def _are_same(one: Host, other: Host) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind == "f":
        is_nan = np.isnan(one)
        if not np.array_equal(is_nan, np.isnan(other)):
            return False
        one, other = np.where(is_nan, 0, one), np.where(is_nan, 0, other)
    return one.tobytes() == other.tobytes()
