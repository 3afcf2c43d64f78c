"""Pinned memory, which is ordinary memory of this process: the remote device reads none of it by itself."""

from __future__ import annotations

import ctypes
import operator
import threading
import weakref
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

from gpu_backend.transport.endings import at_end
from kernelproxy.calls.argument_types import DTypeLike, HostArray, ShapeLike
from kernelproxy.calls.array_core import ArrayCore

#: Blocks are at least this large, and powers of two, as in CuPy's pool; bytes.
_SMALLEST_BLOCK = 512


class PinnedMemory:
    """An allocation of host memory: ``ptr`` is its address once something points to it, ``size`` its bytes."""

    __module__ = "cupy.cuda.pinned_memory"

    def __init__(self, size: int, flags: int = 0) -> None:
        self.size = size
        self.ptr = 0

    def __int__(self) -> int:
        return self.ptr


class PooledPinnedMemory(PinnedMemory):
    """An allocation that a pool keeps count of."""

    __module__ = "cupy.cuda.pinned_memory"

    def free(self) -> None:
        """Do nothing: the block is free once nothing refers to it."""


class PinnedMemoryPointer(bytearray):
    """A place in pinned memory. NumPy reads and writes it as a buffer."""

    __module__ = "cupy.cuda.pinned_memory"

    def __init__(self, mem: PinnedMemory, offset: int = 0) -> None:
        super().__init__(mem.size - offset)
        self.mem = mem
        self.ptr = ctypes.addressof(ctypes.c_uint8.from_buffer(self)) if len(self) else 0
        mem.ptr = self.ptr

    def __int__(self) -> int:
        return self.ptr

    def size(self) -> int:
        """Return the bytes from here to the end of the allocation."""
        return len(self)


class PinnedMemoryPool:
    """Keeps count of host blocks as CuPy's pool does; the memory itself is Python's."""

    __module__ = "cupy.cuda.pinned_memory"

    def __init__(self, allocator: Callable[[int], PinnedMemoryPointer] | None = None) -> None:
        self._free: dict[int, int] = {}
        self._lent: dict[int, weakref.ref[PinnedMemory]] = {}
        self._returned: deque[tuple[int, int]] = deque()  # of those lent: which, and the size of its block
        self._numbers = count()
        self._lock = threading.RLock()

    def malloc(self, size: int) -> PinnedMemoryPointer:
        """Return ``size`` bytes; their block counts as free once nothing refers to them."""
        size = operator.index(size)
        pointer = PinnedMemoryPointer(PooledPinnedMemory(size))
        if size:
            block = _block(size)
            with self._lock:
                self._take_back()
                if self._free.get(block):
                    self._free[block] -= 1
            number = next(self._numbers)
            self._lent[number] = at_end(pointer.mem, self._returned.append, (number, block))
        return pointer

    def _note_upload(self, size: int) -> None:
        """Count the block through which an upload of ``size`` bytes passes."""
        with self._lock:
            self._take_back()
            if size and not self._free.get(_block(size)):
                self._free[_block(size)] = 1

    def _take_back(self) -> None:
        while self._returned:
            number, block = self._returned.popleft()
            self._lent.pop(number, None)
            self._free[block] = self._free.get(block, 0) + 1

    def free_all_blocks(self) -> None:
        """Forget the free blocks."""
        with self._lock:
            self._take_back()
            self._free.clear()

    def n_free_blocks(self) -> int:
        """Return how many blocks are free."""
        with self._lock:
            self._take_back()
            return sum(self._free.values())


def _block(size: int) -> int:
    return max(_SMALLEST_BLOCK, 1 << (size - 1).bit_length())


POOL = PinnedMemoryPool()
_allocator: list[Any] = [POOL.malloc]


def get_default_pinned_memory_pool() -> PinnedMemoryPool:
    """Return the pool of host memory."""
    return POOL


def alloc_pinned_memory(size: int) -> Any:
    """Return ``size`` bytes of host memory."""
    return _allocator[0](size)


def set_pinned_memory_allocator(allocator: Callable[[int], PinnedMemoryPointer] | None = None) -> None:
    """Let `alloc_pinned_memory` ask ``allocator``; None for memory that no pool keeps."""
    _allocator[0] = allocator or (lambda size: PinnedMemoryPointer(PinnedMemory(size)))


# --- arrays in it ----------------------------------------------------------------------------------------------------


def empty_pinned(shape: ShapeLike, dtype: DTypeLike = float, order: str = "C") -> np.ndarray[Any, Any]:
    """Return an uninitialised NumPy array in ordinary memory."""
    return np.empty(shape, dtype, order)  # type: ignore[call-overload,no-any-return]


def zeros_pinned(shape: ShapeLike, dtype: DTypeLike = float, order: str = "C") -> np.ndarray[Any, Any]:
    """Return a NumPy array of zeros, in ordinary memory."""
    return np.zeros(shape, dtype, order)  # type: ignore[call-overload,no-any-return]


def empty_like_pinned(
    a: ArrayCore | HostArray,
    dtype: DTypeLike = None,
    order: str = "K",
    subok: bool | None = None,
    shape: ShapeLike | None = None,
) -> np.ndarray[Any, Any]:
    """Return an uninitialised NumPy array like ``a``, which may be remote, in ordinary memory."""
    form = "F" if order in ("K", "A") and a.flags.f_contiguous and not a.flags.c_contiguous else "C"
    wanted = a.shape if shape is None else shape
    return np.empty(wanted, dtype or a.dtype, form if order in ("K", "A") else order)  # type: ignore[call-overload,no-any-return]


def zeros_like_pinned(
    a: ArrayCore | HostArray,
    dtype: DTypeLike = None,
    order: str = "K",
    subok: bool | None = None,
    shape: ShapeLike | None = None,
) -> np.ndarray[Any, Any]:
    """Return a NumPy array of zeros like ``a``, which may be remote, in ordinary memory."""
    made = empty_like_pinned(a, dtype, order, subok, shape)
    made[...] = 0
    return made
