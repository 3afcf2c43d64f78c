"""The CUDA device: real CuPy behind the seam. Only this module and those called ``cuda_...`` import CuPy."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import cupy
import numpy as np
from cupy.cuda import memory, runtime

from gpu_backend.devices import cuda_addresses, cuda_callbacks, cuda_compiler, cuda_guards, cuda_kernels
from gpu_backend.devices.base import ArrayLayout, DeviceInfo, Landing, MemoryUse, no_landing, public_warning
from gpu_backend.devices.blocks import Blocks
from gpu_backend.devices.cuda_bins import counted_in_bins
from gpu_backend.devices.cuda_blocks import CudaBlocks
from gpu_backend.devices.cuda_events import Events, TimedEvent
from gpu_backend.devices.cuda_launches import Lost, make_launcher
from gpu_backend.devices.cuda_memory import BookedMemory
from gpu_backend.devices.cuda_names import find, name_of_class
from gpu_backend.devices.cuda_peers import Peers
from gpu_backend.devices.cuda_pinning import PinnedMemory
from gpu_backend.devices.cuda_prepared import note_of, read_prepared
from gpu_backend.devices.cuda_products import CudaProducts
from gpu_backend.devices.cuda_reductions import CudaReductions, whole_reductions
from gpu_backend.devices.cuda_replays import CudaReplays
from gpu_backend.devices.cuda_segments import CudaSegments
from gpu_backend.devices.cuda_selections import chosen_by_masks
from gpu_backend.devices.cuda_sparse_products import CudaSparseProducts
from gpu_backend.devices.extents import reach, require_within
from gpu_backend.devices.launching import Launcher
from gpu_backend.devices.products import Products
from gpu_backend.devices.python_source import PythonSource
from gpu_backend.devices.reductions import Reductions
from gpu_backend.devices.replays import Replays
from gpu_backend.devices.segments import Segments
from gpu_backend.devices.sparse_products import SparseProducts
from gpu_backend.opstream.layout import DType, Shape
from gpu_backend.wire.memory_order import permuted_order

#: Modules in which a class of an exception is public, most wanted first.
_PUBLIC_MODULES = (
    "builtins",
    "cupy.cuda.runtime",
    "cupy.cuda.driver",
    "cupy.cuda.memory",
    "cupy.cuda.compiler",
    "cupy.exceptions",
    "numpy.exceptions",
    "numpy.linalg",
)

#: Statuses after which every later call of the process fails: the context is lost.
_STICKY = frozenset(
    {
        "cudaErrorAssert", "cudaErrorECCUncorrectable", "cudaErrorHardwareStackError", "cudaErrorIllegalAddress",
        "cudaErrorIllegalInstruction", "cudaErrorInvalidAddressSpace", "cudaErrorInvalidPc", "cudaErrorLaunchFailure",
        "cudaErrorLaunchTimeout", "cudaErrorMisalignedAddress", "cudaErrorNvlinkUncorrectable",
        "cudaErrorTensorMemoryLeak", "cudaErrorContained", "cudaErrorMpsClientTerminated", "cudaErrorMpsRpcFailure",
    }
)  # fmt: skip


#: Names that take memory past the count.
_UNCOUNTED = tuple(
    f"cupy.cuda.{name}"
    for name in (
        *("malloc_managed", "malloc_async", "ManagedMemory", "MemoryAsync", "MemoryAsyncPool", "Memory"),
        *("using_allocator", "memory.malloc_managed", "memory.malloc_async", "memory.malloc_system"),
        *("memory.ManagedMemory", "memory.SystemMemory", "memory.MemoryAsync", "memory.MemoryAsyncPool"),
        *("memory.SingleDeviceMemoryPool", "memory.Memory", "memory.using_allocator"),
    )
)


def _refuse_uncounted(*args: object, **kwargs: object) -> NoReturn:
    raise RuntimeError(
        "This would take memory past what the session was given. Make arrays, or a cupy.cuda.MemoryPool."
    )


#: Downloads of at most so many bytes go by way of pinned memory.
_STAGED_BYTES = 32 << 10
#: cudaErrorInvalidDevice.
_INVALID_DEVICE = 101


class _Stage:
    """Host memory that the GPU writes to directly: for what is small, by a good part faster than to any other."""

    def __init__(self) -> None:
        self._memory = cupy.cuda.alloc_pinned_memory(_STAGED_BYTES)

    def download(self, array: cupy.ndarray) -> np.ndarray:
        """Return a copy of the C-contiguous ``array`` by way of the default stream, which is never captured."""
        runtime.memcpyAsync(self._memory.ptr, array.data.ptr, array.nbytes, runtime.memcpyDeviceToHost, 0)
        runtime.streamSynchronize(0)
        return np.frombuffer(self._memory, array.dtype, array.size).reshape(array.shape).copy()


class CudaDevice:
    """Computes with CuPy on one GPU, or on several.

    On several all goes CuPy's own way: what goes past it knows memory by its address, and not on which GPU that is.

    Parameters
    ----------
    ordinal
        The first of the GPUs that this process can see.
    prepared
        The folder of the kernels that the pool compiles beforehand; None if it does not.
    count
        How many GPUs, one after the other.

    Raises
    ------
    cupy.cuda.runtime.CUDARuntimeError
        If there is no such GPU or no driver.
    """

    array_type: type = cupy.ndarray
    lays_out_as_cupy = True

    #: Ways past CuPy, where there is one GPU.
    segments: Segments | None = None
    replays: Replays | None = None
    products: Products | None = None
    sparse_products: SparseProducts | None = None
    reductions: Reductions | None = None
    blocks: Blocks | None = None
    launcher: Launcher | None = None

    def __init__(self, ordinal: int = 0, prepared: Path | None = None, count: int = 1) -> None:
        self.count = count
        self._devices = [cupy.cuda.Device(ordinal + number) for number in range(count)]
        self._device = self._devices[0]
        for device in reversed(self._devices):  # all of them are there, and the first is current
            device.use()
        read_prepared(prepared)
        self._memory = BookedMemory(self._devices)
        if count == 1:
            self.launcher = make_launcher()
            self._memory.before = self._await_launches
        self._memory.install()
        cuda_callbacks.install()
        self._pool = self._memory.pool
        cuda_compiler.install()
        #: What stands here for names through which a program could pass its limit, or that can be had faster.
        self._own = self._own_names()
        self._stream: Any = cupy.cuda.Stream.null
        self._events_of = [Events() for _ in self._devices]
        self._events = self._events_of[0]
        self._peers = Peers(self._devices) if count > 1 else None
        self._stage = _Stage()
        self.landing: Landing = no_landing
        if count == 1:
            self.segments = CudaSegments(self._device, note_of(prepared, self._device), self.launcher)
            self.replays = CudaReplays(self._device, self.launcher)
            self.products = CudaProducts(self._device, self.launcher)
            self.sparse_products = CudaSparseProducts()
            self.reductions = CudaReductions(self._device)
            self.blocks = CudaBlocks(self.launcher)
        properties = runtime.getDeviceProperties(ordinal)
        name = properties["name"]
        self.info = DeviceInfo(
            kind="cuda",
            name=name.decode() if isinstance(name, bytes) else str(name),
            total_bytes=int(properties["totalGlobalMem"]),
            library=f"CuPy {cupy.__version__}",
            compute_capability=str(self._device.compute_capability),
        )

    def _await_launches(self) -> None:
        if self.launcher is not None:
            self.launcher.wait()

    def _own_names(self) -> dict[str, Any]:
        return {
            "cupy.cuda.MemoryPool": self._memory.new_pool,
            "cupy.cuda.memory.MemoryPool": self._memory.new_pool,
            "cupy.cuda.alloc": memory.alloc,
            "cupy.cuda.set_allocator": self._memory.set_allocator,
            "cupy.cuda.memory.set_allocator": self._memory.set_allocator,
            **dict.fromkeys(_UNCOUNTED, _refuse_uncounted),
            # these do not ask on which GPU an array lies
            **({**whole_reductions(), **chosen_by_masks(), **counted_in_bins()} if self.count == 1 else {}),
            **cuda_addresses.checked_names(),
            **cuda_compiler.checked_names(),
            **cuda_guards.checked_names(),
        }

    def resolve(self, qualname: str) -> object:
        """Return the object with the public name ``qualname`` under ``cupy`` or ``cupyx``; see the seam."""
        if qualname.partition(".")[0] not in ("cupy", "cupyx"):
            raise AttributeError(f"{qualname!r} is not under cupy or cupyx")
        return self._own[qualname] if qualname in self._own else find(qualname)

    def is_array(self, value: object) -> bool:
        """Tell whether ``value`` is a CuPy array."""
        return isinstance(value, cupy.ndarray)

    def class_name(self, kind: type) -> str | None:
        """Return the name by which the surface describes ``kind`` itself; see the seam."""
        return name_of_class(kind)

    def attribute(self, array: cupy.ndarray, name: str) -> object:
        """Return the attribute ``name`` of ``array``."""
        return getattr(array, name)

    def by_value(self, host: np.ndarray) -> object:
        """Return ``host``: CuPy tells arrays of the host by their class."""
        return host

    def python_kernel(self, kind: str, source: PythonSource, options: dict[str, object]) -> object:
        """Return CuPy's object of class ``kind`` for ``source``."""
        return cuda_kernels.make_kernel(kind, source, options)

    def use(self, number: int) -> None:
        """Make the GPU ``number`` the current one, with its default stream."""
        if not 0 <= number < self.count:
            raise runtime.CUDARuntimeError(_INVALID_DEVICE)
        self._device = self._devices[number]
        self._device.use()
        self._events, self._stream = self._events_of[number], cupy.cuda.Stream.null

    @contextmanager
    def in_order_with(self, others: Collection[int]) -> Iterator[None]:
        """Have work wait for that of ``others``, and theirs for it; see the seam."""
        assert self._peers is not None
        with self._peers.in_order(self._devices.index(self._device), self._stream, others):
            yield

    def enter_thread(self) -> None:
        """Make the calling thread use this device and the stream that the op loop is on; CUDA keeps both by thread."""
        self._device.use()
        self._stream.use()

    def layout(self, array: cupy.ndarray) -> ArrayLayout:
        """Return the layout of ``array``."""
        return ArrayLayout(array.shape, array.strides, array.dtype)

    def memory_order(self, array: cupy.ndarray) -> str:
        """Return the word for how ``array`` lies in memory; see the seam."""
        # The fields behind ``array.flags``, without making that object: this is asked for every view.
        if array._c_contiguous:
            return "" if array._f_contiguous else "C"
        return "F" if array._f_contiguous else permuted_order(array.shape, array.strides, array.itemsize)

    def shares_base(self, array: cupy.ndarray, other: cupy.ndarray) -> int | None:
        """Return the byte offset of ``array`` in the memory of ``other``, or None if it lies elsewhere."""
        if array.data.mem is not other.data.mem:
            return None
        return int(array.data.ptr - other.data.ptr)

    def owns_memory(self, array: cupy.ndarray) -> bool:
        """Tell whether ``array`` was allocated as it is, and is no window on memory of another array."""
        return array.base is None

    def view(self, root: cupy.ndarray, offset: int, shape: Shape, strides: Shape, dtype: DType) -> cupy.ndarray:
        """Return the array that starts ``offset`` bytes into ``root``'s memory. Nothing is copied.

        Raises
        ------
        ValueError
            If any element would lie outside the memory of ``root``, or no array can be like that.
        """
        require_within(offset, shape, strides, dtype, _memory(root))
        pointer = root.data + offset if 0 not in shape else root.data
        return cupy.ndarray(shape, dtype, memptr=pointer, strides=strides)

    def upload(self, host: np.ndarray) -> cupy.ndarray:
        """Return a new device array with the contents of ``host``; the copy is done when this returns."""
        self._await_launches()
        order = "F" if host.flags.f_contiguous and not host.flags.c_contiguous else "C"
        return cupy.array(host, order=order, blocking=True)

    def write(self, array: cupy.ndarray, offset: int, data: memoryview) -> None:
        """Copy ``data`` to ``offset`` bytes into the memory of the contiguous ``array``; done when this returns."""
        first, end = _memory(array)
        if offset < first or offset + data.nbytes > end:
            raise ValueError(f"{data.nbytes} bytes at byte {offset} do not fit into {end - first} bytes")
        if not data.nbytes:
            return
        self._await_launches()
        source = np.frombuffer(data, np.uint8)
        with array.device:
            # On its current stream: the memory may still be read there by work given before it was freed and reused.
            stream = cupy.cuda.get_current_stream()
            (array.data + offset).copy_from_host_async(source.ctypes.data, data.nbytes, stream)
            stream.synchronize()

    def download(self, array: cupy.ndarray) -> np.ndarray:
        """Return a C-contiguous host copy of ``array``, once everything that computes it is done."""
        self._await_launches()
        is_here = self.count == 1 or array.data.device_id == self._device.id
        if is_here and 0 < array.nbytes <= _STAGED_BYTES and array._c_contiguous and self._stream.ptr == 0:
            return self._stage.download(array)
        landing = self.landing(array.nbytes) if array._c_contiguous else None
        out = None if landing is None else landing.view(array.dtype).reshape(array.shape)
        host: np.ndarray = cupy.asnumpy(array, order="C", out=out)
        return host

    def pin(self, memory: np.ndarray) -> PinnedMemory | None:
        """Have copies from and to ``memory`` made by the GPU itself; None if the driver will not."""
        return PinnedMemory.of(memory)

    @contextmanager
    def on_stream(self, stream: cupy.cuda.Stream) -> Iterator[None]:
        """Return a context in which work goes to ``stream``."""
        before, events = self._stream, self._events
        events.note_left(before)
        with stream:
            self._stream = stream
            try:
                yield
            finally:
                self._stream = before
                events.note_left(stream)

    def synchronize(self) -> None:
        """Wait until all work given to the devices is done."""
        self._await_launches()
        for device, events in zip(self._devices, self._events_of, strict=True):
            device.synchronize()
            events.note_done(events.turns)

    @property
    def is_spread(self) -> bool:
        """Whether work may be under way on other streams than the current one."""
        return bool(self._events.left)

    def marker(self) -> TimedEvent:
        """Return an event behind all work given so far, on whatever stream."""
        self._await_launches()
        return TimedEvent(self._events, self._stream)

    def held_bytes(self, number: int = 0) -> int:
        """Return the bytes held by live arrays of the GPU ``number``."""
        return self._memory.used_bytes(number)

    def memory(self) -> MemoryUse:
        """Return the present use of memory."""
        free, total = runtime.memGetInfo()
        return MemoryUse(self._pool.used_bytes(), self._memory.limit_bytes, free, total)

    def set_memory_limit(self, limit_bytes: int) -> None:
        """Refuse from now on what would hold more than this in all on one GPU; 0 lifts the limit."""
        self._memory.set_limit(limit_bytes)

    def free_unused(self) -> None:
        """Give cached blocks of device and pinned memory back."""
        self._await_launches()
        self._memory.free_all_blocks()
        cupy.get_default_pinned_memory_pool().free_all_blocks()

    def error_name(self, error: BaseException) -> str:
        """Return the public name of the class of ``error``, or of its nearest public ancestor."""
        for kind in type(error).__mro__:
            if known := public_warning(kind):
                return known
            for module in _PUBLIC_MODULES:
                if getattr(_module(module), kind.__name__, None) is kind:
                    return f"{module}.{kind.__name__}"
            if kind.__module__.partition(".")[0] in ("cupy", "cupyx", "cupy_backends"):
                return f"{kind.__module__}.{kind.__qualname__}"
        return "builtins.Exception"

    def is_fatal(self, error: BaseException) -> bool:
        """Tell whether ``error`` leaves the device unusable for this process (a sticky CUDA error)."""
        if isinstance(error, Lost):
            return True
        if not isinstance(error, (runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError)):
            return False
        text = str(error)
        name = text.partition(":")[0].strip()
        return name in _STICKY or name.replace("CUDA_ERROR_", "cudaError").replace("_", "").lower() in _STICKY_LOWER


_STICKY_LOWER = frozenset(name.lower() for name in _STICKY)


def _module(name: str) -> Any:
    # cupy.cuda.driver is an attribute, not a module of that name
    return cupy.cuda.driver if name == "cupy.cuda.driver" else importlib.import_module(name)


def _memory(array: cupy.ndarray) -> tuple[int, int]:
    """Return where the memory of ``array`` begins and ends, in bytes relative to its first element."""
    if array._c_contiguous or array._f_contiguous:
        return 0, array.nbytes
    return reach(array.shape, array.strides, array.dtype.itemsize)
