"""Memory of a GPU by its address, from CuPy's pool."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable

import cupy
import numpy as np
from cupy.cuda import memory, runtime

from gpu_backend.devices.blocks import Block
from gpu_backend.devices.cuda_reading import make_reader
from gpu_backend.devices.launching import Launcher
from gpu_backend.opstream.layout import Layout
from gpu_backend.transport.copying import address_of
from gpu_backend.wire.values import SMALL_BYTES

log = logging.getLogger("devices")

#: By names of their own: a read is waited for.
_copy, _synchronize = runtime.memcpyAsync, runtime.streamSynchronize
_TO_HOST, _TO_DEVICE = runtime.memcpyDeviceToHost, runtime.memcpyHostToDevice
#: Pinned memory from which the GPU takes what is written: so many parts of so many bytes, by turns.
_PARTS, _PART_BYTES = 4, 4 * SMALL_BYTES
#: So many reads are worth having a kernel for them loaded; and the bytes of the word that it marks them by.
_WORTH_A_KERNEL, _MARK_BYTES = 32, 8


class CudaBlocks:
    """Blocks of the session's own pool; see the seam. Small reads are made by a kernel, if there is a ``launcher``."""

    def __init__(self, launcher: Launcher | None = None) -> None:
        self._stage = cupy.cuda.alloc_pinned_memory(SMALL_BYTES + _MARK_BYTES)
        self._staged, self._stage_at = memoryview(self._stage).cast("B"), int(self._stage.ptr)
        self._launcher, self._reads = launcher, 0
        self._reader: Callable[[int, int], bytes | None] | None = None
        self._outgoing = Outgoing()
        self._is_writing = False

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
        read = self._reader(address, size_bytes) if self._reader is not None else None
        if read is None:
            _copy(self._stage_at, address, size_bytes, _TO_HOST, 0)
            _synchronize(0)
            read = self._staged[:size_bytes].tobytes()
            self._note_copied()
        self._is_writing = False
        return read

    def _note_copied(self) -> None:
        """Note that a copy was read; when there have been enough, others are read by a kernel."""
        self._reads += 1
        if self._reads == _WORTH_A_KERNEL and self._launcher is not None:
            try:
                self._reader = make_reader(self._launcher, self._stage_at, self._stage_at + SMALL_BYTES)
            except Exception:  # whatever it is, such as no memory: copies bring the same
                log.exception("the kernel for small reads cannot be loaded")

    def write(self, address: int, data: bytes) -> None:
        """Put ``data`` into memory, in the order of the default stream."""
        self._is_writing = True
        _copy(address, self._outgoing.put(data), len(data), _TO_DEVICE, 0)

    def read_into(self, memory: np.ndarray, address: int) -> None:
        """Fill ``memory`` of this host, by way of the default stream, as `read`."""
        _copy(address_of(memory), address, memory.nbytes, _TO_HOST, 0)
        _synchronize(0)
        self._is_writing = False

    def write_from(self, memory: np.ndarray, address: int) -> None:
        """Put ``memory`` of this host into that of the GPU, in the order of the default stream, and wait for it."""
        _copy(address, address_of(memory), memory.nbytes, _TO_DEVICE, 0)
        _synchronize(0)
        self._is_writing = False

    def await_writes(self) -> None:
        """Wait until what was written is there."""
        if self._is_writing:
            self._is_writing = False
            runtime.streamSynchronize(0)


class Outgoing:
    """Memory in which small contents wait for the GPU to take them, in the order of the default stream.

    The GPU may read it when the call that asks for the copy has long returned, so a part of it is filled again only
    once all that was put there before has been taken.
    """

    def __init__(self) -> None:
        self._parts = [cupy.cuda.alloc_pinned_memory(_PART_BYTES) for _ in range(_PARTS)]
        self._taken = [cupy.cuda.Event(disable_timing=True) for _ in range(_PARTS)]
        self._part = self._filled = 0

    def put(self, data: bytes) -> int:
        """Return where a copy of ``data`` lies, until the stream has done all that it is given next."""
        if self._filled + len(data) > _PART_BYTES:
            runtime.eventRecord(self._taken[self._part].ptr, 0)
            self._part, self._filled = (self._part + 1) % _PARTS, 0
            runtime.eventSynchronize(self._taken[self._part].ptr)  # of one that was never recorded: at once
        at = int(self._parts[self._part].ptr) + self._filled
        ctypes.memmove(at, data, len(data))
        self._filled += len(data)
        return at
