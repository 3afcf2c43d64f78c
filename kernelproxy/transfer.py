"""Host arrays to the device: small ones travel inside the op stream, large ones as a series of writes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_backend.wire import values as wire
from gpu_backend.wire.codec import Frame
from gpu_backend.wire.dtypes import dtype_to_text
from kernelproxy import array_core
from kernelproxy.array_core import ArrayCore
from kernelproxy.layout import contiguous
from kernelproxy.pipeline import Pipeline

#: Most bytes of one write. Several may be under way, bounded by the executor's credit.
CHUNK_BYTES = 8 << 20
#: dtype kinds that a device array may hold.
_NUMERIC = frozenset("biufcV")


def upload(pipeline: Pipeline, host: np.ndarray[Any, Any]) -> Any:
    """Return a remote array with the contents that ``host`` has now. Costs no round trip.

    Raises
    ------
    ValueError
        If the dtype is one that no device array can have.
    """
    if host.dtype.kind not in _NUMERIC or host.dtype.hasobject:
        raise ValueError(f"Unsupported dtype {host.dtype}")
    order = "F" if host.flags.f_contiguous and not host.flags.c_contiguous else "C"
    layout = contiguous(host.shape, host.dtype.newbyteorder("="), order)
    native = host.astype(layout.dtype, copy=False)
    empty = (wire.Tuple(tuple(host.shape)), wire.DType(dtype_to_text(layout.dtype)), order)
    array = array_core.fresh(layout, pipeline.record("cupy.empty", empty))
    write(pipeline, array, native)
    return array


def write(pipeline: Pipeline, array: ArrayCore, host: np.ndarray[Any, Any]) -> None:
    """Copy ``host`` into the contiguous remote ``array`` of the same shape and dtype."""
    f_ordered = array._layout.f_contiguous and not array._layout.c_contiguous
    # The user may change the array as soon as we return, so what is sent later must be a copy.
    content = memoryview(host.tobytes("F" if f_ordered else "C"))
    for offset in range(0, len(content), CHUNK_BYTES):
        _write_chunk(pipeline, array._ref, offset, content[offset : offset + CHUNK_BYTES])


def _write_chunk(pipeline: Pipeline, target: wire.Ref | wire.View, offset: int, data: Frame) -> None:
    def make(frame: int) -> tuple[str, tuple[wire.Value, ...]]:
        return ".write", (target, offset, wire.Buffer(frame, "|u1", (len(data),)))

    pipeline.record_with_buffer(make, data)
