"""The face of the CPU device: the seam ``Device`` over NumPy arrays."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter

import numpy as np

from gpu_backend.devices import arrays
from gpu_backend.devices.base import ArrayLayout, DeviceInfo, Landing, MemoryUse, no_landing, public_warning
from gpu_backend.devices.blocks import Blocks
from gpu_backend.devices.cpu import table
from gpu_backend.devices.cpu.arrays import Array, own, owner_of
from gpu_backend.devices.cpu.call import guarded
from gpu_backend.devices.cpu.dtypes import require_supported
from gpu_backend.devices.cpu.kernels import python_functions
from gpu_backend.devices.cpu.kernels.arguments import ByValue
from gpu_backend.devices.cpu.memory import LEDGER, bound_process
from gpu_backend.devices.cpu.naming import name_of_class
from gpu_backend.devices.cpu.processor import processor_name
from gpu_backend.devices.cpu.several import DEVICES
from gpu_backend.devices.extents import require_within
from gpu_backend.devices.launching import Launcher
from gpu_backend.devices.products import Products
from gpu_backend.devices.python_source import PythonSource
from gpu_backend.devices.reductions import Reductions
from gpu_backend.devices.replays import Replays
from gpu_backend.devices.segments import Segments
from gpu_backend.devices.sparse_products import SparseProducts
from gpu_backend.metering.machine import machine_bytes
from gpu_backend.opstream.layout import DType, Shape
from gpu_backend.wire.memory_order import permuted_order


class Moment:
    """A marker on a device that computes while it is called."""

    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at = perf_counter()

    def is_done(self) -> bool:
        """Return True."""
        return True

    def seconds_since(self, earlier: Moment) -> float:
        """Return the time between the two."""
        return self.at - earlier.at


class CpuDevice:
    """Computes with NumPy, SciPy and compiled kernels. Arrays are plain ``numpy.ndarray``, 0-d ones included.

    Work is synchronous: when a call returns, its result is there. The books of memory are the process's, so there
    should be one of these per process, which stands for ``count`` devices.
    """

    array_type: type = np.ndarray
    lays_out_as_cupy = False
    segments: Segments | None = None
    replays: Replays | None = None
    products: Products | None = None
    sparse_products: SparseProducts | None = None
    reductions: Reductions | None = None
    blocks: Blocks | None = None
    launcher: Launcher | None = None

    def __init__(self, count: int = 1) -> None:
        _, total = machine_bytes()
        DEVICES.open(count)
        self.count = count
        self.info = DeviceInfo(
            kind="cpu",
            name=processor_name(),
            total_bytes=total,
            library=f"NumPy {np.__version__}",
            compute_capability="",
        )
        self._upload = guarded(_upload)
        # All that most programs use comes with it: now, while an executor has no session yet, and not in the first op.
        table.lookup("cupy.ndarray")
        self.landing: Landing = no_landing

    def resolve(self, qualname: str) -> object:
        """Return the object with the public name ``qualname``; see the seam."""
        found = table.lookup(qualname)
        is_confined = self.count > 1 and callable(found) and not isinstance(found, type)
        return DEVICES.confined(qualname, found) if is_confined else found

    def use(self, number: int) -> None:
        """Have all that is made from now on be in the books of the device ``number``."""
        DEVICES.use(number)

    def in_order_with(self, others: Collection[int]) -> AbstractContextManager[None]:
        """Return a context that does nothing: all is done when it is said to be."""
        return nullcontext()

    def is_array(self, value: object) -> bool:
        """Tell whether ``value`` is an array of this device."""
        return isinstance(value, np.ndarray)

    def class_name(self, kind: type) -> str | None:
        """Return the name by which the surface describes ``kind`` itself; see the seam."""
        return name_of_class(kind)

    def attribute(self, array: arrays.Array, name: str) -> object:
        """Return the attribute ``name`` of ``array``."""
        read: object = table.lookup(f"cupy.ndarray.{name}")(array)
        return read

    def by_value(self, host: Array) -> object:
        """Return ``host`` marked as what goes by value; any other array is device memory here."""
        return ByValue(host)

    def python_kernel(self, kind: str, source: PythonSource, options: dict[str, object]) -> object:
        """Return the object of class ``kind`` for ``source``, which is compiled when it is first called."""
        return python_functions.make_kernel(kind, source, options)

    def enter_thread(self) -> None:
        """Do nothing: every thread can compute."""

    def layout(self, array: arrays.Array) -> ArrayLayout:
        """Return the layout of ``array``."""
        return ArrayLayout(array.shape, array.strides, array.dtype)

    def memory_order(self, array: arrays.Array) -> str:
        """Return the word for how ``array`` lies in memory; see the seam."""
        flags = array.flags
        if flags.c_contiguous:
            return "" if flags.f_contiguous else "C"
        return "F" if flags.f_contiguous else permuted_order(array.shape, array.strides, array.itemsize)

    def shares_base(self, array: arrays.Array, other: arrays.Array) -> int | None:
        """Return the byte offset of ``array`` in the memory of ``other``, or None if it lies elsewhere."""
        asked, whole = own(array), own(other)
        if owner_of(asked) is not owner_of(whole):
            return None
        return int(asked.ctypes.data - whole.ctypes.data)

    def owns_memory(self, array: arrays.Array) -> bool:
        """Tell whether ``array`` was allocated as it is, and is no window on memory of another array."""
        return array.base is None

    def view(self, root: arrays.Array, offset: int, shape: Shape, strides: Shape, dtype: DType) -> Array:
        """Return the array that starts ``offset`` bytes into ``root``'s memory. Nothing is copied.

        Raises
        ------
        ValueError
            If any element would lie outside the memory of ``root``, or no array can be like that.
        """
        low, memory = _memory(own(root))
        require_within(offset, shape, strides, dtype, (low, low + memory.size))  # NumPy's own look overflows
        return np.ndarray(shape, dtype, memory, offset - low, strides)

    def upload(self, host: Array) -> Array:
        """Return a new device array with the contents of ``host``.

        Raises
        ------
        OutOfMemoryError
            If it does not fit.
        ValueError
            If CuPy does not support its dtype.
        """
        array: Array = self._upload(host)
        return array

    def write(self, array: arrays.Array, offset: int, data: memoryview) -> None:
        """Copy ``data`` to ``offset`` bytes into the memory of the contiguous ``array``."""
        source = np.frombuffer(data, np.uint8)
        low, target = _memory(own(array))
        offset -= low
        if offset < 0 or offset + source.size > target.size:
            raise ValueError(f"{source.size} bytes at byte {offset} do not fit into {target.size} bytes")
        target[offset : offset + source.size] = source

    def download(self, array: arrays.Array) -> Array:
        """Return a C-contiguous host copy of ``array``, in memory of `landing` if there is some."""
        held = own(array)
        landing = None if held.dtype.hasobject else self.landing(held.nbytes)
        if landing is None:
            return np.array(held, order="C", copy=True, subok=False)
        host = landing.view(held.dtype).reshape(held.shape)
        np.copyto(host, held)
        return host

    def pin(self, memory: Array) -> None:
        """Return None: all memory of the host is as near."""

    def on_stream(self, stream: object) -> AbstractContextManager[object]:
        """Return ``stream`` as a context if it is one; work is in order on any stream of this device."""
        return stream if isinstance(stream, AbstractContextManager) else nullcontext()

    def synchronize(self) -> None:
        """Return at once: work is done when its call returns."""

    @property
    def is_spread(self) -> bool:
        """False: work is done when its call returns."""
        return False

    def marker(self) -> Moment:
        """Return the present moment: work is done when its call returns, so the processor's clock times it."""
        return Moment()

    def held_bytes(self, number: int = 0) -> int:
        """Return the bytes held by live arrays of the device ``number``."""
        return DEVICES.books(number).used_bytes

    def memory(self) -> MemoryUse:
        """Return the present use of memory."""
        free, total = machine_bytes()
        return MemoryUse(LEDGER.used_bytes, LEDGER.quota_bytes, free, total)

    def set_memory_limit(self, limit_bytes: int) -> None:
        """Refuse from now on what would hold more than this in all on one device; 0 lifts the limit."""
        if limit_bytes < 0:
            raise ValueError(f"memory limit size out of range: {limit_bytes}")
        for number in range(self.count):
            DEVICES.books(number).set_quota(limit_bytes)
        bound_process(limit_bytes * self.count)

    def free_unused(self) -> None:
        """Forget cached blocks."""
        for number in range(self.count):
            DEVICES.books(number).free_all_blocks()

    def error_name(self, error: BaseException) -> str:
        """Return the public name of the class of ``error``, or of its nearest public ancestor."""
        for kind in type(error).__mro__:
            own = kind.__dict__.get("public_name") or public_warning(kind)
            if isinstance(own, str):
                return own
            if kind.__module__ in _PUBLIC_MODULES and not kind.__name__.startswith("_"):
                return f"{kind.__module__}.{kind.__qualname__}"
        return "builtins.Exception"

    def is_fatal(self, error: BaseException) -> bool:
        """Return False: no error leaves the CPU unusable."""
        return False


_PUBLIC_MODULES = frozenset({"builtins", "numpy.exceptions", "numpy.linalg"})


def _upload(host: Array) -> Array:
    require_supported(host.dtype)
    LEDGER.require(host.nbytes)
    fortran = host.flags.f_contiguous and not host.flags.c_contiguous
    return np.array(host, order="F" if fortran else "C", copy=True, subok=False)


def _memory(root: Array) -> tuple[int, Array]:
    """Return the memory of ``root`` as bytes, and where it begins relative to the first element of ``root``."""
    flags = root.flags
    if flags.c_contiguous:
        return 0, root.reshape(-1).view(np.uint8)
    if flags.f_contiguous:
        return 0, root.T.reshape(-1).view(np.uint8)
    low, high = np.lib.array_utils.byte_bounds(root)
    lowest = root[tuple(slice(None, None, -1) if stride < 0 else slice(None) for stride in root.strides)]
    first = lowest[(slice(0, 1),) * root.ndim].reshape(-1).view(np.uint8)
    return low - root.ctypes.data, np.lib.stride_tricks.as_strided(first, (high - low,), (1,))
