"""Memory of a GPU by its address, from CuPy's pool."""

from __future__ import annotations

import ctypes

import cupy
from cupy.cuda import memory, runtime

from gpu_backend.devices.blocks import MOST_READ_BYTES, Block
from gpu_backend.opstream.layout import Layout


class CudaBlocks:
    """Blocks of the session's own pool; see the seam."""

    def __init__(self) -> None:
        self._stage = cupy.cuda.alloc_pinned_memory(MOST_READ_BYTES)

    def address(self, array: cupy.ndarray) -> int:
        """Return where the first element of ``array`` lies."""
        return int(array.data.ptr)

    def block(self, size_bytes: int) -> Block:
        """Return new memory."""
        pointer = memory.alloc(size_bytes)
        return Block(pointer.ptr, pointer, size_bytes)

    def array(self, block: Block, layout: Layout) -> cupy.ndarray:
        """Return the array that has the memory of ``block`` for its own."""
        return cupy.ndarray(layout.shape, layout.dtype, memptr=block.memory, strides=layout.strides)

    def read(self, address: int, size_bytes: int) -> bytes:
        """Return what stands in memory, by way of the default stream, which is never captured."""
        runtime.memcpyAsync(self._stage.ptr, address, size_bytes, runtime.memcpyDeviceToHost, 0)
        runtime.streamSynchronize(0)
        return ctypes.string_at(self._stage.ptr, size_bytes)
