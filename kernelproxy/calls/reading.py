"""The values of remote arrays: from what the notebook knows, else by a trip that may bring more than was asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_backend.opstream.layout import Layout
from gpu_backend.wire import values as wire
from gpu_backend.wire.messages import Want
from kernelproxy.calls import sync_detection, transfer
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.decoding import buffer_to_array, inline_number
from kernelproxy.errors import MirrorDiffers
from kernelproxy.stream.counters import Trip

Host = np.ndarray[Any, Any]
_ARRAY, _SCALAR, _CONTENTS = Trip.ARRAY, Trip.SCALAR, Want.CONTENTS  # a member is found in its class by much searching


def contents(array: ArrayCore, into: Host | None = None) -> Host:
    """Return a copy of what ``array`` holds when all before is computed; ``into`` is as of `transfer.read`."""
    __tracebackhide__ = True
    found = known(array)
    if found is None and (worth := _worth_knowing(array, _ARRAY)) is not None:
        found = _fetched(*worth, array)
    return found if found is not None else transfer.read(array, array._client.streams.current_handle(), into)


def number(array: ArrayCore) -> Any:
    """Return the one element of ``array`` as a Python number; other sizes as an array."""
    __tracebackhide__ = True
    sync_detection.check()
    layout, pipeline = array._layout, array._client.pipeline
    if type(layout) is Layout and not layout.shape and not pipeline.mirror.is_checked:
        found, handle = pipeline.known(array._ref, layout, True), 0
        if found is not None:
            pipeline.counters.answered_here += 1
            return found
    else:
        found, handle = known(array), 0
    if found is None and (worth := _worth_knowing(array, _SCALAR)) is not None:
        root, handle = worth
        if root is not array:
            found, handle = _fetched(root, handle, array), 0
    if found is None:
        return _told(array, handle)
    return found.item() if found.size == 1 else found


def _told(array: ArrayCore, handle: int) -> Any:
    """Return what the device says the one element of ``array`` is; unless ``handle`` is 0, it is known as that then."""
    __tracebackhide__ = True
    client = array._client
    pipeline, layout, stream = client.pipeline, array._layout, client.streams.current_handle()
    if handle:
        with pipeline.recording:
            awaited = pipeline.mirror.await_(handle, layout)
    # As `pipeline.call`, with one function less between: whose line it is that asks is found by going up through all.
    answer = pipeline.answer(pipeline.ask(".same", (array._ref,), _CONTENTS, None, None, stream))
    value = answer.value
    if isinstance(value, wire.Buffer) and value.frame < 0 and value.shape == ():  # what is asked for most
        if handle and value.dtype == layout.dtype_text:
            with pipeline.recording:
                pipeline.mirror.note_told(handle, awaited, value.data)
        return inline_number(value.dtype, value.data)
    content = buffer_to_array(value, answer.buffers)
    if handle:
        with pipeline.recording:
            pipeline.mirror.note_fetched(handle, awaited, content, True)
    return content.item() if content.size == 1 else content


def known(array: ArrayCore) -> Host | None:
    """Return what ``array`` holds, if that is known now."""
    __tracebackhide__ = True
    layout, pipeline = array._layout, array._client.pipeline
    if type(layout) is not Layout:  # of a shape that depends on values
        return None
    found: Host | None = pipeline.known(array._ref, layout)
    if found is None:
        return None
    pipeline.counters.answered_here += 1
    return found if not pipeline.mirror.is_checked else _compared(array, found)


def _worth_knowing(array: ArrayCore, trip: Trip) -> tuple[ArrayCore, int] | None:
    """Return the array whose whole memory is worth the ``trip`` for ``array``, and its handle; None if none is."""
    if type(array._layout) is not Layout:
        return None
    pipeline = array._client.pipeline
    pipeline.counters.expect(trip)
    root = array if array._root is None else array._root
    reference, layout = root._ref, root._layout
    if type(reference) is not wire.Ref or type(layout) is not Layout:
        return None
    return (root, reference.handle) if pipeline.mirror.should_fetch(reference.handle, layout, root is array) else None


def _fetched(root: ArrayCore, handle: int, array: ArrayCore) -> Host | None:
    """Return what ``array`` shows of ``root``, all of which is read and known from now on."""
    pipeline, layout = root._client.pipeline, root._layout
    with pipeline.recording:
        awaited = pipeline.mirror.await_(handle, layout)
    content = transfer.read(root, root._client.streams.current_handle())
    with pipeline.recording:
        pipeline.mirror.note_fetched(handle, awaited, content, root is array)
    # Another thread may have written it since, so it is the content that is shown, and not what is known.
    return content if root is array else pipeline.mirror.shown(array._ref, layout, content)


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
