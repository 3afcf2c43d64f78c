"""Device memory within the session's limit, whatever pools and allocators its program sets up.

CuPy's own limit is one of a pool and can be lifted by whoever holds the pool. So the limit of the session stands below:
every pool here gets its memory from one function, which counts.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import cupy
from cupy.cuda import memory, runtime

_OUT_OF_MEMORY = 2  #: cudaErrorMemoryAllocation


class BookedMemory:
    """Gets memory of ``devices`` from the driver, and counts what is held of each, in bytes."""

    def __init__(self, devices: Sequence[cupy.cuda.Device]) -> None:
        self._devices = devices
        self.limit_bytes = 0  #: on each device
        #: By the device's number in CUDA.
        self._held: Counter[int] = Counter()
        self._sizes: dict[int, int] = {}
        self._lock = threading.Lock()
        #: Called before the driver is asked for memory or given any: what was launched may still use it.
        self.before: Callable[[], None] = lambda: None
        self._allocator = memory.PythonFunctionAllocator(self._get, self._give_back)
        self.pool = memory.MemoryPool(self._allocator.malloc)

    def install(self) -> None:
        """Make the counted pool CuPy's default one."""
        cupy._default_memory_pool = self.pool
        memory.set_allocator(self.pool.malloc)

    def set_limit(self, limit_bytes: int) -> None:
        """Refuse from now on what would make more than this be held; 0 for no limit."""
        self.limit_bytes = limit_bytes
        self.free_all_blocks()  # of what a pool has cached it gives without asking
        for device in self._devices:
            with device:
                self.pool.set_limit(size=limit_bytes)

    def used_bytes(self, number: int) -> int:
        """Return what live arrays hold of the device ``number``."""
        with self._devices[number]:
            return int(self.pool.used_bytes())

    def free_all_blocks(self) -> None:
        """Give cached blocks of all devices back."""
        for device in self._devices:
            with device:
                self.pool.free_all_blocks()

    def new_pool(self, allocator: Any = None) -> Any:
        """Return a pool of counted memory: stands for ``cupy.cuda.MemoryPool``."""
        return memory.MemoryPool(self._allocator.malloc)

    def set_allocator(self, allocator: Any = None) -> None:
        """Let arrays come from a pool's ``malloc``, or from no pool at all: stands for ``cupy.cuda.set_allocator``.

        Raises
        ------
        TypeError
            If ``allocator`` is not the ``malloc`` of a pool that was made here.
        """
        if allocator is None:
            memory.set_allocator(self.unpooled)
        elif isinstance(getattr(allocator, "__self__", None), memory.MemoryPool):
            memory.set_allocator(allocator)
        else:
            raise TypeError("only the malloc of a cupy.cuda.MemoryPool can be the allocator of a session")

    def unpooled(self, size: int) -> Any:
        """Return memory that goes back to the driver with its last reference."""
        try:
            return self._allocator.malloc(size)
        except runtime.CUDARuntimeError as error:
            if error.status != _OUT_OF_MEMORY:
                raise
            raise memory.OutOfMemoryError(size, self._held[runtime.getDevice()], self.limit_bytes) from None

    def _get(self, size: int, device_id: int) -> int:
        with self._lock:
            if self.limit_bytes and self._held[device_id] + size > self.limit_bytes:
                raise runtime.CUDARuntimeError(_OUT_OF_MEMORY)
            self._held[device_id] += size
        try:
            self.before()
            pointer = int(runtime.malloc(size))
        except BaseException:  # also an interrupt: the count must not stay too high
            with self._lock:
                self._held[device_id] -= size
            raise
        self._sizes[pointer] = size
        return pointer

    def _give_back(self, pointer: int, device_id: int) -> None:
        with self._lock:
            self._held[device_id] -= self._sizes.pop(pointer, 0)
        self.before()
        runtime.free(pointer)
