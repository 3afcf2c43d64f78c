"""Arrays from host to device and back: small ones inside the op stream, large ones in pieces, several at a time."""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from gpu_backend.opstream.devices import OF_DEVICE
from gpu_backend.opstream.layout import DType, Layout, Shape, contiguous
from gpu_backend.transport.copying import Bytes, copy, fault_in
from gpu_backend.transport.shared_frames import BLOCK_BYTES
from gpu_backend.wire import values as wire
from gpu_backend.wire.codec import Frame
from gpu_backend.wire.errors import ProtocolError
from gpu_backend.wire.messages import Want
from kernelproxy.calls import array_core
from kernelproxy.calls.argument_types import HostArray
from kernelproxy.calls.array_core import ArrayCore, window_of_bytes
from kernelproxy.calls.decoding import buffer_to_array
from kernelproxy.calls.later_layout import LaterLayout
from kernelproxy.calls.supported_dtypes import require_supported
from kernelproxy.client import Client
from kernelproxy.session.signs import Transfer
from kernelproxy.stream import work
from kernelproxy.stream.counters import Trip
from kernelproxy.stream.kept_uploads import own
from kernelproxy.stream.mirrored import MirroredPipeline

#: Most bytes of one piece. Several may be under way: of writes, as the executor's credit allows; of reads, so many.
CHUNK_BYTES = BLOCK_BYTES
_PIECES_AHEAD = 4
#: New memory is made at a time for so many bytes: an interrupt is heard in between.
_NEW_AT_A_TIME = 256 << 20


def upload(client: Client, host: HostArray, is_copied: bool = False) -> Any:
    """Return a remote array with the contents that ``host`` has now. Costs no round trip unless it is large.

    It has the very bits of one that ``is_copied`` from a device. Raises as `require_supported`.
    """
    require_supported(host.dtype)
    order = "F" if host.flags.f_contiguous and not host.flags.c_contiguous else "C"
    layout = _native(host.shape, host.dtype, order)
    native = host.astype(layout.dtype, copy=False)
    native = native if is_copied else _as_filled(native)
    pipeline, array = client.pipeline, empty(client, layout, order)
    if native.nbytes > CHUNK_BYTES:
        write(array, native)
    elif native.nbytes:
        data = _copied(pipeline, native, "C" if layout.c_contiguous else "F")
        _write_chunk(pipeline, array._ref, 0, data)
        pipeline.mirror.keep(array._ref.handle, layout, data)  # nobody else has it yet
    return array


@lru_cache(maxsize=1_024)
def _native(shape: Shape, dtype: DType, order: str) -> Layout:
    """Return how a device array of ``shape`` lies in ``order``, with the elements in this machine's order of bytes."""
    return contiguous(shape, dtype.newbyteorder("="), order)


def empty(client: Client, layout: Layout, order: str = "C") -> Any:
    """Return a remote array of ``layout``, which is contiguous in ``order``, on the current device of ``client``."""
    how = (wire.Tuple(layout.shape), wire.DType(layout.dtype_text), order)
    stream = client.streams.default_handle()
    return array_core.fresh(
        client, layout, client.pipeline.record("cupy.empty", how, stream=stream, orders=layout.orders)
    )


def _as_filled(host: HostArray) -> HostArray:
    """Return ``host``; of one zero without axes one without a sign: CuPy fills such an array, and clears its memory."""
    is_zero = not host.ndim and host.dtype.kind in "fc" and not host
    return np.zeros((), host.dtype) if is_zero else host


def _copied(pipeline: MirroredPipeline, host: HostArray, order: Literal["C", "F"]) -> Frame:
    """Return the bytes of ``host``: as nobody can change them, or where the executor sees them already."""
    lent = pipeline.connection.lend(host.nbytes) if host.nbytes > wire.SMALL_BYTES else None
    if lent is None:
        return host.tobytes(order)
    plain = np.asarray(host)
    if plain.flags.c_contiguous if order == "C" else plain.flags.f_contiguous:
        copy(lent, plain.ravel("K").view(np.uint8))
    else:
        np.copyto(lent.view(plain.dtype).reshape(plain.shape, order=order), plain)
    return lent.data


def write(array: ArrayCore, host: HostArray) -> None:
    """Copy ``host`` into the contiguous remote ``array`` of the same shape and dtype; a large one before this returns.

    The user may change ``host`` as soon as we return. So what is sent later is a copy. What is large is sent from where
    it lies, and of that what is not done when we return, as after an interrupt, or is kept beyond that, is copied then.
    """
    pipeline = array._client.pipeline
    order: Literal["C", "F"] = "C" if array._layout.c_contiguous else "F"
    if host.nbytes <= CHUNK_BYTES:
        if host.nbytes:
            _write_chunk(pipeline, array._ref, 0, _copied(pipeline, host, order))
        return
    content = np.asarray(host, order=order).ravel("K").view(np.uint8).data
    with pipeline.signs.moving("Upload", len(content)) as transfer:
        try:
            with pipeline.uploading(len(content)):
                _write_pieces(pipeline, array._ref, content, transfer)
                # A byte of it and not nothing: whose contents are told is done, and need not be kept and copied below.
                pipeline.counters.expect(Trip.SYNCHRONIZE)
                pipeline.call(".same", (window_of_bytes(array, 0, 1),), Want.CONTENTS)
            transfer.done = len(content)
        finally:
            own(pipeline)


def _write_pieces(
    pipeline: MirroredPipeline, target: wire.Ref | wire.View, content: memoryview, transfer: Transfer
) -> None:
    for offset in range(0, len(content), CHUNK_BYTES):
        _write_chunk(pipeline, target, offset, content[offset : offset + CHUNK_BYTES])
        transfer.done = max(0, offset - pipeline.credit.bytes_in_flight)
        pipeline.signs.look(transfer.since, lambda: work.sign(pipeline, pipeline.signs.transfer))


def _write_chunk(pipeline: MirroredPipeline, target: wire.Ref | wire.View, offset: int, data: Frame) -> None:
    def make(frame: int) -> tuple[str, tuple[wire.Value, ...]]:
        return ".write", (target, offset, wire.Buffer(frame, "|u1", (len(data),), bytes(data) if frame < 0 else b""))

    stream = array_core.handle_of(target) & OF_DEVICE
    if not offset and len(data) <= wire.SMALL_BYTES:  # a frame costs more than the copy
        pipeline.record_within(make, data, stream)
    else:
        pipeline.record_with_buffer(make, data, offset, stream)


def read(array: ArrayCore, stream: int, into: HostArray | None = None) -> np.ndarray[Any, Any]:
    """Return the contents of ``array``, when all that computes it on ``stream`` is done.

    What is large is put ``into`` an array of the same shape and dtype, if that is given and lies so that it can be:
    then that is returned.
    """
    __tracebackhide__ = True
    pipeline, layout = array._client.pipeline, array._layout
    is_short = type(layout) is LaterLayout and not layout.is_known and layout.most_bytes <= CHUNK_BYTES
    is_large = not is_short and layout.nbytes > CHUNK_BYTES
    if is_large and layout.c_contiguous:  # contents of one piece tell their shape
        host = into if into is not None and _takes(into, layout) else np.empty(layout.shape, layout.dtype)
        content = np.asarray(host).reshape(-1).view(np.uint8)
        with pipeline.signs.moving("Download", len(content)) as transfer:
            _read_pieces(pipeline, array, stream, content, transfer, host is not into)
        return host
    if is_large:  # the executor sends it in pieces of its own
        number = pipeline.ask(".same", (array._ref,), Want.CONTENTS, stream=stream)
        with pipeline.inbox.bounded(number, layout.nbytes):
            answer = pipeline.answer(number)
    else:
        answer = pipeline.call(".same", (array._ref,), Want.CONTENTS, None, None, stream)
    return buffer_to_array(answer.value, answer.buffers)


def _takes(host: object, layout: Layout | LaterLayout) -> bool:
    """Tell whether ``host`` can be filled with an array of ``layout``, byte by byte."""
    if not isinstance(host, np.ndarray) or host.dtype != layout.dtype or host.shape != layout.shape:
        return False
    is_plain = type(host).__setitem__ is np.ndarray.__setitem__  # or, as of masked arrays, more than bytes is set
    return bool(is_plain and host.flags.c_contiguous and host.flags.writeable)


def _read_pieces(
    pipeline: MirroredPipeline, array: ArrayCore, stream: int, content: Bytes, transfer: Transfer, is_new: bool
) -> None:
    """Fill ``content`` with the bytes of ``array``: one piece is taken while the next ones are on their way."""
    asked: deque[tuple[int, int]] = deque()
    try:
        _take_pieces(pipeline, array, stream, content, transfer, is_new, asked)
        transfer.done = len(content)
    finally:
        for _, number in asked:
            pipeline.inbox.forget(number)


def _take_pieces(
    pipeline: MirroredPipeline,
    array: ArrayCore,
    stream: int,
    content: Bytes,
    transfer: Transfer,
    is_new: bool,
    asked: deque[tuple[int, int]],
) -> None:
    for offset in range(0, len(content), CHUNK_BYTES):
        first = offset - _PIECES_AHEAD * CHUNK_BYTES  # asked for, as all behind it, and not put there yet
        if is_new and first >= 0 and not first % _NEW_AT_A_TIME:
            fault_in(content[first : first + _NEW_AT_A_TIME])
        if len(asked) == _PIECES_AHEAD:
            _take_piece(pipeline, content, *asked.popleft())
            transfer.done = offset - (_PIECES_AHEAD - 1) * CHUNK_BYTES
            pipeline.signs.look(transfer.since, lambda: work.sign(pipeline, pipeline.signs.transfer))
        piece = window_of_bytes(array, offset, min(CHUNK_BYTES, len(content) - offset))
        ask = pipeline.ask_for_more if offset else pipeline.ask
        asked.append((offset, ask(".same", (piece,), Want.CONTENTS, stream=stream)))
    while asked:
        _take_piece(pipeline, content, *asked.popleft())


def _take_piece(pipeline: MirroredPipeline, content: Bytes, offset: int, number: int) -> None:
    wanted = min(CHUNK_BYTES, len(content) - offset)
    copy(content[offset : offset + wanted], _piece(pipeline, number, wanted))


def _piece(pipeline: MirroredPipeline, number: int, wanted: int) -> Bytes:
    """Return the bytes that were asked for by the op ``number``, which are there until the next piece is waited for."""
    answer = pipeline.answer(number)
    value = answer.value
    pieces = [value.data] if isinstance(value, wire.Buffer) and value.frame < 0 else answer.buffers
    if [len(piece) for piece in pieces] != [wanted]:
        raise ProtocolError(f"The executor sent other contents than the {wanted} bytes that were asked for.")
    return np.frombuffer(pieces[0], np.uint8)


def pass_on(source: ArrayCore, target: ArrayCore) -> None:
    """Copy the bytes of ``source`` into ``target`` of another session; both have no gaps, and lie alike.

    A piece is handed on while the next ones are on their way here; no more of them than that are ever here.
    """
    with source._client.pipeline.signs.moving("Copy", source._layout.nbytes) as transfer:
        _pass_pieces(source, target, transfer)


def _pass_pieces(source: ArrayCore, target: ArrayCore, transfer: Transfer) -> None:
    asked: deque[tuple[int, int]] = deque()
    try:
        _ask_and_hand_on(source, target, transfer, asked)
    finally:
        for _, number in asked:
            source._client.pipeline.inbox.forget(number)


def _ask_and_hand_on(source: ArrayCore, target: ArrayCore, transfer: Transfer, asked: deque[tuple[int, int]]) -> None:
    pipeline, size = source._client.pipeline, source._layout.nbytes
    stream = source._client.streams.current_handle()
    for offset in range(0, size, CHUNK_BYTES):
        if len(asked) == _PIECES_AHEAD:
            transfer.done = _hand_on(pipeline, target, size, *asked.popleft())
            pipeline.signs.look(transfer.since, lambda: work.sign(pipeline, pipeline.signs.transfer))
        piece = window_of_bytes(source, offset, min(CHUNK_BYTES, size - offset))
        ask = pipeline.ask_for_more if offset else pipeline.ask
        asked.append((offset, ask(".same", (piece,), Want.CONTENTS, stream=stream)))
    while asked:
        transfer.done = _hand_on(pipeline, target, size, *asked.popleft())


def _hand_on(pipeline: MirroredPipeline, target: ArrayCore, size: int, offset: int, number: int) -> int:
    """Put a piece of so many bytes in all into ``target``; return how many it has then."""
    piece, to = _piece(pipeline, number, min(CHUNK_BYTES, size - offset)), target._client.pipeline
    _write_chunk(to, target._ref, offset, _copied(to, piece, "C"))
    return offset + len(piece)
