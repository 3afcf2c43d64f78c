"""Memory of a GPU by its address, from CuPy's pool."""

from __future__ import annotations

import cupy
from cupy.cuda import memory

from gpu_backend.devices.blocks import Block
from gpu_backend.opstream.layout import Layout


class CudaBlocks:
    """Blocks of the session's own pool; see the seam."""

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
