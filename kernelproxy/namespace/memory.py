"""``cupy.cuda``'s device memory: pools, allocators and pointers. The memory itself is in the executor."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TextIO, TypeAlias

import numpy as np

from gpu_backend.opstream.proof import Made
from kernelproxy.calls import dispatch, transfer
from kernelproxy.calls.argument_types import StreamLike
from kernelproxy.calls.each_device import OfEachDevice, on_each_device
from kernelproxy.calls.foreign_arrays import hand_out
from kernelproxy.calls.remote_members import RemoteMethod
from kernelproxy.calls.remote_object import RemoteObject
from kernelproxy.client import Client, current
from kernelproxy.namespace.lasting import Kept
from kernelproxy.namespace.names import make
from kernelproxy.namespace.refusing import refusing

_HOW_ELSE = (
    "Arrays of remote CuPy come from the pool of their session, which keeps to the memory that the session was given. "
    "Leave the allocator as it is, or set `cupy.cuda.MemoryPool().malloc`."
)


#: What hands out memory: the ``malloc`` of a pool. Functions of this process are refused by name.
Allocator: TypeAlias = Callable[[int], object]
#: An address of this process.
HostAddress: TypeAlias = "int | ctypes.c_void_p | None"


class _Pool(OfEachDevice):
    #: Whether it is the one that arrays come from unless something else is said.
    _is_default = False

    def _made_again(self) -> Any:
        return get_default_memory_pool() if self._is_default else type(self)._make()

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """Set the most bytes that the pool may hold, or that part of the device's memory; 0 or nothing for none."""
        if (here := self._here()) is not self:
            here.set_limit(size, fraction)
            return
        client = self._client or current()
        dispatch.ask_object(".method", self, "set_limit", size, fraction)
        limits: dict[int, int] = self.__dict__.setdefault("_limits", {})
        limits[client.streams.device] = self.get_limit()
        _agree_limit(client)


def _agree_limit(client: Client) -> None:
    """Have the notebook know what is sure to be had, whichever pool in use and device it comes from."""
    known = client.part(_Pools).of_this_executor().get(_DEFAULT)
    pools = [known, *[getattr(one, "__self__", None) for one in client.part(_Allocators).of_this_executor().values()]]
    here = [one._here() for one in pools if one is not None]
    limits = [limit for one in here for limit in one.__dict__.get("_limits", {}).values()]
    client.memory.set_limit(min(filter(None, (client.session.memory_limit_bytes, *limits)), default=0))


class MemoryPool(_Pool):
    """A pool of device memory. A limit set here is known to the notebook, so that OutOfMemoryError comes in time."""

    _qualname = "cupy.cuda.MemoryPool"

    @classmethod
    def _make(cls, allocator: Allocator | None = None) -> Any:
        """Make a pool in the executor; it allocates as the session's own pool does."""
        known = ("alloc", "_malloc", "malloc", "malloc_managed")
        if allocator is not None and getattr(allocator, "__name__", "") not in known:
            raise RuntimeError(f"A pool of memory got by {allocator!r} is not possible here. {_HOW_ELSE}")
        return dispatch.call(cls._qualname, (), {})


class MemoryAsyncPool(_Pool):
    """A pool as `MemoryPool` is: remote memory comes from the session's own, in the order of the ops in any case."""

    _qualname = "cupy.cuda.MemoryAsyncPool"

    @classmethod
    def _make(cls, pool_handles: str | Sequence[int] = "current") -> Any:
        """Make a pool in the executor."""
        made = object.__new__(cls)
        made._take_over(dispatch.call("cupy.cuda.MemoryPool", (), {}))
        return made


class _Pools(Kept):
    """The pool that an executor's arrays come from."""


def get_default_memory_pool() -> MemoryPool:
    """Return the pool that arrays come from. It is the same object each time, as in CuPy."""
    known, proof = current().part(_Pools), Made(MemoryPool._qualname)
    pool: MemoryPool = known.get(_DEFAULT, lambda: dispatch.run_proved(_DEFAULT, (), {}, proof))
    object.__setattr__(pool, "_is_default", True)
    return pool


class _Allocators(Kept):
    """What arrays come from, as far as somebody has said: of a thread by its number, of all others by `_ALL`."""


_DEFAULT, _ALL, _NOBODY = "cupy.get_default_memory_pool", 0, object()


def _malloc(size: int) -> Any:
    """Return ``size`` bytes: stands for memory that no pool keeps, where that is what arrays come from."""
    return dispatch.ask_object("cupy.cuda.alloc", size)


def set_allocator(allocator: Allocator | None = None) -> None:
    """Let arrays come from ``allocator``: the ``malloc`` of a pool, or None for memory that no pool keeps.

    Raises
    ------
    RuntimeError
        For a function of this process: it cannot hand out memory of the remote device.
    """

    def use(client: Client) -> None:
        dispatch.ask_object("cupy.cuda.set_allocator", _remote(allocator))
        client = dispatch.whose((getattr(allocator, "__self__", None),)) if not client.members else client
        client.part(_Allocators).of_this_executor()[_ALL] = allocator
        _agree_limit(client)

    on_each_device(use)


def get_allocator() -> Any:
    """Return what arrays come from."""
    said = current().part(_Allocators).of_this_executor()
    found = said.get(threading.get_ident(), said.get(_ALL, _NOBODY))
    if found is _NOBODY:
        return get_default_memory_pool().malloc
    return _malloc if found is None else found


@contextmanager
def using_allocator(allocator: Allocator | None = None) -> Iterator[None]:
    """Let arrays come from ``allocator`` inside the context."""
    undo: dict[Client, Callable[[], None]] = {}

    def use(client: Client) -> None:
        undo[client] = _use_in_thread(client, allocator)

    try:
        on_each_device(use)
        yield
    finally:
        on_each_device(lambda client: undo[client]() if client in undo else None)


def _use_in_thread(client: Client, allocator: Allocator | None) -> Callable[[], None]:
    """Let arrays of this thread come from ``allocator``; return what has them come from where they came before."""
    thread = threading.get_ident()
    before, said = get_allocator(), client.part(_Allocators).of_this_executor()
    dispatch.ask_object("cupy.cuda.set_allocator", _remote(allocator))
    outer, said[thread] = said.get(thread, _NOBODY), allocator
    _agree_limit(client)

    def undo() -> None:
        if outer is _NOBODY:
            said.pop(thread, None)
        else:
            said[thread] = outer
        if client.part(_Allocators).is_of_this_executor(said):  # another one starts with a pool of its own
            dispatch.ask_object("cupy.cuda.set_allocator", _remote(before))
            _agree_limit(client)

    return undo


def _remote(allocator: Allocator | None) -> Any:
    if allocator is None or getattr(allocator, "__name__", "") in ("alloc", "_malloc", "malloc_managed"):
        return None
    if isinstance(getattr(allocator, "__func__", None), RemoteMethod):
        return allocator
    raise RuntimeError(f"{allocator!r} cannot hand out memory of the remote device. {_HOW_ELSE}")


def _why(name: str, what: str) -> str:
    return f"cupy.cuda.{name} gives {what}, which a session of a shared GPU may not take. {_HOW_ELSE}"


def malloc_managed(size: int) -> Any:
    """Return ``size`` bytes of the session's memory.

    Programs ask for managed memory so that they may have more than the GPU holds. They run; what they get is within the
    limit of their session all the same, and ends with OutOfMemoryError.
    """
    return dispatch.ask_object("cupy.cuda.alloc", size)


malloc_system = refusing("malloc_system", _why("memory.malloc_system", "memory of the host"))


class _Refused(RemoteObject):
    """A class whose objects nobody can have; programs ask whether something is one, or derive from it."""

    _gives = ""

    @classmethod
    def _make(cls, *args: object, **kwargs: object) -> Any:
        raise RuntimeError(_why(cls._qualname.removeprefix("cupy.cuda."), cls._gives))


class ManagedMemory(_Refused, make("cupy.cuda.BaseMemory")):  # type: ignore[misc]
    """Memory that the host and the device share: refused."""

    _qualname = "cupy.cuda.ManagedMemory"
    _gives = "managed memory beyond what the session was given"


class SystemMemory(_Refused, make("cupy.cuda.BaseMemory")):  # type: ignore[misc]
    """Memory of the host: refused."""

    _qualname = "cupy.cuda.memory.SystemMemory"
    _gives = "memory of the host"


class PythonFunctionAllocator(_Refused):
    """An allocator that calls functions of this process: refused."""

    _qualname = "cupy.cuda.PythonFunctionAllocator"
    _gives = "memory that functions of this process choose"


class CFunctionAllocator(_Refused):
    """An allocator that calls functions of this process: refused."""

    _qualname = "cupy.cuda.CFunctionAllocator"
    _gives = "memory that functions of this process choose"


def memGetInfo() -> tuple[int, int]:  # noqa: N802 (CUDA's name)
    """Return the free and total bytes that this session can use: the device's, within the session's limit."""
    client = current()
    _ = client.session  # where its devices come from is known once they are there
    client, device = client.having(client.streams.device)
    memory = client.session.memory(device)
    free, total, limit = memory["free_bytes"], memory["total_bytes"], memory["limit_bytes"]
    if limit:
        free, total = min(free, max(0, limit - memory["used_bytes"])), min(total, limit)
    return free, total


class MemoryHook:
    """Calls functions of a program around each allocation; it may be defined here, and refuses to be used."""

    __module__ = "cupy.cuda.memory_hook"
    name = "MemoryHook"

    def __enter__(self) -> Any:
        raise RuntimeError(
            f"cupy.cuda.{type(self).__name__} would have to run where memory is allocated, in the executor. "
            "Ask cupy.get_default_memory_pool().used_bytes() around the lines in question."
        )

    def __exit__(self, *_: object) -> None:
        """Do nothing: no block is ever entered."""

    def _pass(self, **kwargs: object) -> None:
        """Do nothing; subclasses may."""

    alloc_preprocess = alloc_postprocess = _pass
    malloc_preprocess = malloc_postprocess = _pass
    free_preprocess = free_postprocess = _pass


class DebugPrintHook(MemoryHook):
    """Would print each allocation."""

    __module__ = "cupy.cuda.memory_hooks.debug_print"
    name = "DebugPrintHook"

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Take what CuPy takes."""


class LineProfileHook(MemoryHook):
    """Would say which line has allocated how much."""

    __module__ = "cupy.cuda.memory_hooks.line_profile"
    name = "LineProfileHook"

    def __init__(self, max_depth: int = 0) -> None:
        """Take what CuPy takes."""

    def print_report(self, file: TextIO = sys.stdout) -> None:
        """Refuse, as entering the block does."""
        self.__enter__()


class MemoryPointer(RemoteObject):
    """A place in device memory. Copies from and to host memory take addresses of this process."""

    _qualname = "cupy.cuda.MemoryPointer"
    #: The array whose first element is there, if it is one's.
    _array: Any = None

    @cached_property
    def ptr(self) -> int:
        """The address on the device; asked once."""
        address = int(dispatch.ask_object(".getattr", self, "ptr"))
        if self._array is not None:
            hand_out(self._array, address)
        return address

    def __int__(self) -> int:
        return self.ptr

    @property
    def device_id(self) -> int:
        """The number of the device that holds the memory."""
        if self._client is None or self._client.members or not self._client.streams.is_used:
            return 0 if self._client is None else self._client.number
        return int(dispatch.ask_object(".getattr", self, "device_id"))

    @property
    def device(self) -> Any:
        """The device that holds the memory."""
        return make("cupy.cuda.Device")(self.device_id)

    def _window(self, size: int) -> Any:
        return dispatch.ask_object("cupy.ndarray", (size,), "|u1", self)

    def copy_from_host(self, mem: HostAddress, size: int) -> None:
        """Copy ``size`` bytes from the address ``mem`` of this process."""
        if size:
            content = np.frombuffer(ctypes.string_at(_address(mem), size), np.uint8)
            transfer.write(self._window(size), content)

    def copy_from_host_async(self, mem: HostAddress, size: int, stream: StreamLike = None) -> None:
        """Copy as `copy_from_host`; the host memory may be changed as soon as this returns."""
        self.copy_from_host(mem, size)

    def copy_to_host(self, mem: HostAddress, size: int) -> None:
        """Copy ``size`` bytes to the address ``mem`` of this process."""
        if size:
            content = self._window(size).get()
            ctypes.memmove(_address(mem), content.ctypes.data, size)

    def copy_to_host_async(self, mem: HostAddress, size: int, stream: StreamLike = None) -> None:
        """Copy as `copy_to_host`; done when this returns."""
        self.copy_to_host(mem, size)

    def copy_from(self, mem: MemoryPointer | HostAddress, size: int) -> None:
        """Copy ``size`` bytes from another `MemoryPointer`, or from an address of this process."""
        if isinstance(mem, MemoryPointer):
            dispatch.ask_object(".method", self, "copy_from_device", mem, size)
        else:
            self.copy_from_host(mem, size)

    def copy_from_async(self, mem: MemoryPointer | HostAddress, size: int, stream: StreamLike = None) -> None:
        """Copy as `copy_from`, in the order of the ops."""
        self.copy_from(mem, size)


def _address(mem: HostAddress) -> int:
    value = mem.value if isinstance(mem, ctypes.c_void_p) else mem
    return int(value or 0)
