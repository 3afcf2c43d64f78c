"""Raw memory: pools, pointers and allocations, as ``cupy.cuda`` has them, on the process's own memory."""

from __future__ import annotations

import ctypes
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_backend.devices.cpu.arrays import Array, owner_of
from gpu_backend.devices.cpu.cuda_device import Device, memory_info
from gpu_backend.devices.cpu.memory import LEDGER, as_out_of_memory
from gpu_backend.devices.cpu.naming import describe_as, public_class
from gpu_backend.devices.cpu.pools import OutOfMemoryError, PoolBooks
from gpu_backend.devices.cpu.several import DEVICES
from gpu_backend.devices.cpu.table import define, define_value

_MODULE = "cupy.cuda.memory"


class BaseMemory:
    """An allocation: ``ptr`` is its address, ``size`` its bytes."""

    ptr: int = 0
    size: int = 0
    device_id: int = 0

    def __int__(self) -> int:
        return self.ptr

    @property
    def device(self) -> Device:
        """The device the memory is on."""
        return Device(self.device_id)

    def _bytes(self) -> Array:
        """Return the memory as an array of bytes that keeps it alive."""
        raise NotImplementedError


BaseMemory.__module__ = _MODULE


@public_class("cupy.cuda.Memory", "cupy.cuda.memory.Memory", module=_MODULE)
class Memory(BaseMemory):
    """An allocation of ``size`` bytes; freed with its last reference."""

    def __init__(self, size: int) -> None:
        self._take(size, LEDGER.unpooled)

    def _take(self, size: int, books: PoolBooks) -> None:
        LEDGER.require(size, books)
        self.size = size
        self.device_id = DEVICES.current
        try:
            self._buffer = np.empty(size, np.uint8)
        except MemoryError as error:
            raise as_out_of_memory(error) from None
        if size:
            LEDGER.hold_in(books, self._buffer)
            self.ptr = self._buffer.ctypes.data

    def _bytes(self) -> Array:
        return self._buffer


for _name in ("ManagedMemory", "SystemMemory", "MemoryAsync"):
    define_value(Memory, f"cupy.cuda.{_name}", f"{_MODULE}.{_name}")


#: Bytes of the global variables of kernels' modules, by address.
_globals: dict[int, int] = {}


def require_own(address: int, size: int) -> None:
    """Let pass what lies in memory of this device.

    Raises
    ------
    ValueError
        If any of the ``size`` bytes at ``address`` belongs to nothing that a program made here.
    """
    if size < 0 or (size and size > _globals.get(address, 0) and not DEVICES.hold(address, size)):
        raise ValueError(
            f"{size} bytes at {address:#x} do not lie in memory of this session: give the address of an array of it, "
            "such as `a.data.ptr`"
        )


class UnownedMemory(BaseMemory):
    """Memory that something else allocated; ``owner`` is kept alive.

    Parameters
    ----------
    ptr, size
        Address and bytes. The caller answers for their being there.
    owner
        Any object.
    """

    def __init__(self, ptr: int, size: int, owner: object, device_id: int = -1) -> None:
        self.ptr, self.size, self._owner = int(ptr), int(size), owner
        self.device_id = device_id if device_id >= 0 else DEVICES.current

    def _bytes(self) -> Array:
        if not self.size:
            return np.empty(0, np.uint8)
        window: Any = (ctypes.c_uint8 * self.size).from_address(self.ptr)
        window.owner = self._owner  # lives as long as the window does
        return np.frombuffer(window, np.uint8)


def unowned_memory(ptr: int, size: int, owner: object, device_id: int = -1) -> UnownedMemory:
    """Return `UnownedMemory` of what lies in this device's: stands for the class of that name."""
    require_own(int(ptr), int(size))
    return UnownedMemory(ptr, size, owner, device_id)


def memory_of_global(address: int, size: int, owner: object) -> UnownedMemory:
    """Return the memory of a global variable of a module, which is the program's own from now on."""
    _globals[address] = size
    return UnownedMemory(address, size, owner)


class PooledMemory(Memory):
    """An allocation from a pool, on whose books it is."""

    def __init__(self, size: int, books: PoolBooks) -> None:
        self._take(size, books)

    def free(self) -> None:
        """Give the memory back to the pool; arrays that lie there keep it until they are gone."""
        self._buffer, self.ptr = np.empty(0, np.uint8), 0


class ArrayMemory(BaseMemory):
    """The memory of an array, as its ``data.mem``."""

    def __init__(self, owner: Array) -> None:
        self._owner = owner
        self.device_id = DEVICES.of(owner)
        self.ptr = owner.ctypes.data if owner.nbytes else 0
        self.size = owner.nbytes

    def _bytes(self) -> Array:
        flat = self._owner.T if self._owner.flags.f_contiguous else self._owner
        return flat.reshape(-1).view(np.uint8)

    def free(self) -> None:
        """Let go of the memory; the array keeps it until it is gone."""
        self._owner, self.ptr = np.empty(0, np.uint8), 0


describe_as(f"{_MODULE}.PooledMemory", PooledMemory, ArrayMemory)
UnownedMemory.__module__ = PooledMemory.__module__ = ArrayMemory.__module__ = _MODULE
ArrayMemory.__qualname__ = ArrayMemory.__name__ = "PooledMemory"


@public_class("cupy.cuda.MemoryPointer", "cupy.cuda.memory.MemoryPointer", module=_MODULE)
class MemoryPointer:
    """A place in an allocation: ``mem`` and an offset in bytes."""

    def __init__(self, mem: BaseMemory, offset: int) -> None:
        if mem.ptr == 0 and offset:
            raise ValueError("an offset into memory of no bytes")
        self.mem = mem
        self.ptr = mem.ptr + offset
        self.device_id = mem.device_id

    def __int__(self) -> int:
        return self.ptr

    def __repr__(self) -> str:
        return f"<MemoryPointer 0x{self.ptr:x} device={self.device_id} mem={self.mem!r}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemoryPointer) and self.ptr == other.ptr and self.mem is other.mem

    def __hash__(self) -> int:
        return hash(self.ptr)

    @property
    def device(self) -> Device:
        """The device the memory is on."""
        return self.mem.device

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.ptr - self.mem.ptr + offset)

    __radd__ = __add__

    def __sub__(self, offset: int) -> MemoryPointer:
        return self + -offset

    def _window(self, size: int) -> Array:
        start = self.ptr - self.mem.ptr
        if start < 0 or start + size > self.mem.size:
            raise ValueError(f"{size} bytes at offset {start} reach beyond an allocation of {self.mem.size} bytes")
        return self.mem._bytes()[start : start + size]

    def copy_from_device(self, src: MemoryPointer, size: int) -> None:
        """Copy ``size`` bytes from another pointer."""
        if size:
            self._window(size)[...] = src._window(size)

    def copy_from_device_async(self, src: MemoryPointer, size: int, stream: object = None) -> None:
        """Copy, done when this returns."""
        self.copy_from_device(src, size)

    def memset(self, value: int, size: int) -> None:
        """Set ``size`` bytes to ``value``."""
        if size:
            self._window(size).fill(value & 0xFF)

    def memset_async(self, value: int, size: int, stream: object = None) -> None:
        """Set, done when this returns."""
        self.memset(value, size)


@define("cupy.cuda.malloc_managed", f"{_MODULE}.malloc_managed", "cupy.cuda.malloc_async", f"{_MODULE}.malloc_async",
        f"{_MODULE}.malloc_system")  # fmt: skip
def unpooled(size: int) -> MemoryPointer:
    """Return new memory that no pool keeps."""
    return MemoryPointer(Memory(int(size)), 0)


@public_class("cupy.cuda.MemoryPool", "cupy.cuda.memory.MemoryPool", "cupy.cuda.MemoryAsyncPool",
              f"{_MODULE}.MemoryAsyncPool", f"{_MODULE}.SingleDeviceMemoryPool", module=_MODULE)  # fmt: skip
class MemoryPool:
    """A pool of memory: it has books of its own on each device, within the session's limit."""

    def __init__(self, allocator: object = None) -> None:
        self._allocator = allocator
        self._books: dict[int, PoolBooks] = {}  #: by the device's number

    def books_on(self, number: int) -> PoolBooks:
        """Return what is booked of the device ``number``."""
        if self is _POOL:
            return DEVICES.books(number).usual
        books = self._books.get(number)
        if books is None:
            ledger = DEVICES.books(number)
            books = self._books[number] = ledger.new_pool()
            weakref.finalize(self, ledger.end_pool, books).atexit = False
        return books

    @property
    def _here(self) -> PoolBooks:
        return LEDGER.settled(self.books_on(DEVICES.current))

    def malloc(self, size: int) -> MemoryPointer:
        """Return new memory."""
        size = int(size)
        return MemoryPointer(PooledMemory(size, self._here) if size else Memory(0), 0)

    def free_all_blocks(self, stream: object = None) -> None:
        """Forget cached blocks."""
        self._here.free_all_blocks()

    def free_all_free(self) -> None:
        """Forget cached blocks."""
        warnings.warn("free_all_free is deprecated. Use free_all_blocks instead.", DeprecationWarning, stacklevel=2)
        self.free_all_blocks()

    def n_free_blocks(self) -> int:
        """How many blocks are cached."""
        return self._here.n_free_blocks

    def used_bytes(self) -> int:
        """Bytes that live arrays hold."""
        return self._here.used_bytes

    def free_bytes(self) -> int:
        """Bytes cached."""
        return self._here.total_bytes - self._here.used_bytes

    def total_bytes(self) -> int:
        """Bytes held and cached."""
        return self._here.total_bytes

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """Set the most bytes to hold, or the part of the device's memory. The operator's limit stays above it."""
        if size is not None and fraction is not None:
            raise ValueError("size and fraction cannot be specified at one time")
        if size is None:
            if fraction is not None and not 0 <= fraction <= 1:
                raise ValueError(f"memory limit fraction out of range: {fraction}")
            size = 0 if fraction is None else int(fraction * memory_info()[1])
        if size < 0:
            raise ValueError(f"memory limit size out of range: {size}")
        LEDGER.set_limit(self._here, size)

    def get_limit(self) -> int:
        """Return the limit in bytes, 0 for none."""
        return self._here.limit_bytes


#: What arrays come from where no program has chosen another: its books are the ledgers' own.
_POOL = MemoryPool()


def get_default_memory_pool() -> MemoryPool:
    """Return the pool of arrays."""
    return _POOL


class _Allocator:
    """What arrays come from."""

    def __init__(self) -> None:
        self.malloc: Callable[[int], MemoryPointer] = _POOL.malloc


_allocator = _Allocator()


@define("cupy.cuda.alloc", f"{_MODULE}.alloc")
def alloc(size: int) -> MemoryPointer:
    """Return new memory, from where arrays come from."""
    return _allocator.malloc(int(size))


def set_allocator(allocator: Any = None) -> None:
    """Let arrays come from a pool's ``malloc``, or from no pool at all.

    Raises
    ------
    NotImplementedError
        For allocators of one's own: NumPy allocates by its own ways.
    """
    pool = getattr(allocator, "__self__", None)
    if isinstance(pool, MemoryPool):
        malloc = allocator
    elif allocator is None or getattr(allocator, "__name__", "") in ("alloc", "unpooled"):
        malloc = unpooled
    else:
        raise NotImplementedError("the CPU device allocates by NumPy; an allocator of one's own needs a CUDA device")
    for number in range(DEVICES.count):
        ledger = DEVICES.books(number)
        ledger.book_in(pool.books_on(number) if isinstance(pool, MemoryPool) else ledger.unpooled)
    _allocator.malloc = malloc


def get_allocator() -> Any:
    """Return the function that allocates."""
    return _allocator.malloc


def is_available() -> bool:
    """Return True: there is a device to compute on."""
    return True


@define("cupy.ndarray.data")
def data(array: Array) -> MemoryPointer:
    """Return where ``array`` lies."""
    owner = owner_of(array)
    if not array.size:
        return MemoryPointer(ArrayMemory(owner[:0] if owner.ndim else owner), 0)
    memory = ArrayMemory(owner)
    return MemoryPointer(memory, array.ctypes.data - memory.ptr)


define_value(unowned_memory, "cupy.cuda.UnownedMemory", f"{_MODULE}.UnownedMemory")
define_value(BaseMemory, "cupy.cuda.BaseMemory", f"{_MODULE}.BaseMemory")
define_value(ArrayMemory, f"{_MODULE}.PooledMemory")
define_value(OutOfMemoryError, f"{_MODULE}.OutOfMemoryError")
define_value(get_default_memory_pool, "cupy.get_default_memory_pool")
define_value(set_allocator, "cupy.cuda.set_allocator", f"{_MODULE}.set_allocator")
define_value(get_allocator, "cupy.cuda.get_allocator", f"{_MODULE}.get_allocator")
define_value(is_available, "cupy.is_available", "cupy.cuda.is_available")
