"""Sums, products, maxima and minima along an axis of a distributed array: of each chunk, to be read together."""

from __future__ import annotations

from typing import Any

from kernelproxy.calls import dispatch
from kernelproxy.calls.argument_types import DTypeLike
from kernelproxy.namespace.distributed import modes
from kernelproxy.namespace.distributed.chunks import ChunksMap, Distributed, made

#: What is reduced, and how the results of chunks are read.
MODES = {"max": modes.MAX, "min": modes.MIN, "sum": modes.SUM, "prod": modes.PROD}


def mode_to_read_in(name: str, mode: modes.Mode) -> modes.Mode:
    """Return the mode in which chunks must be to be reduced by ``name``, if they are in ``mode``."""
    wanted = MODES[name]
    if wanted.idempotent and mode is not wanted:
        return modes.REPLICA  # an element that several chunks have does no harm
    return wanted


def chunks_of(name: str, array: Distributed, axis: int, dtype: DTypeLike) -> tuple[ChunksMap, Any]:
    """Return the chunks of ``array``, reduced along ``axis``, and their dtype."""
    options: dict[str, object] = {"axis": axis} if dtype is None else {"axis": axis, "dtype": dtype}
    found: ChunksMap = {}
    made_dtype = None
    for device, chunks in array._chunks_map.items():
        found[device] = []
        for chunk in chunks:
            with chunk.reading():
                result = dispatch.call(f"cupy.ndarray.{name}", (chunk.array,), options)
                found[device].append(made(result, chunk.index[:axis] + chunk.index[axis + 1 :]))
                made_dtype = result.dtype
    return found, made_dtype
