"""The device seam: what an executor needs of the thing that computes.

Two devices stand behind it: ``cuda`` (real CuPy) and ``cpu`` (NumPy, SciPy and compiled kernels). One conformance
suite, ``tests/conformance/test_device.py``, runs over both. Of an array the executor sees how it lies, `Array`; where
that is and what is in it, only the device can tell. Objects are opaque to the executor.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, Self

import numpy as np

from gpu_backend.devices.arrays import Array
from gpu_backend.devices.blocks import Blocks
from gpu_backend.devices.launching import Launcher
from gpu_backend.devices.products import Products
from gpu_backend.devices.python_source import PythonSource
from gpu_backend.devices.reductions import Reductions
from gpu_backend.devices.replays import Replays
from gpu_backend.devices.segments import Segments
from gpu_backend.devices.sparse_products import SparseProducts
from gpu_backend.opstream.layout import DType, Shape


class DeviceInfo(NamedTuple):
    """What a device is, for people and for placement."""

    kind: str  #: "cuda" or "cpu"
    name: str  #: as the vendor calls it
    total_bytes: int  #: memory that could ever be had
    library: str  #: the array library and its version
    compute_capability: str  #: "90" for Hopper; "" on the CPU


class MemoryUse(NamedTuple):
    """Memory of this executor on a device, in bytes."""

    used_bytes: int  #: held by live arrays
    limit_bytes: int  #: most that may be held; 0 for no limit
    free_bytes: int  #: free on the whole device
    total_bytes: int  #: of the whole device


class ArrayLayout(NamedTuple):
    """How an array lies in memory; strides are in bytes."""

    shape: Shape
    strides: Shape
    dtype: DType


class Marker(Protocol):
    """A place in the device's queue."""

    def is_done(self) -> bool:
        """Tell whether all work given before it is done. True on a device that is lost: nothing runs there any more."""

    def seconds_since(self, earlier: Self) -> float:
        """Return the device's seconds since ``earlier``, a marker of its own; both are done. 0 on a lost device."""


class Pinned(Protocol):
    """Host memory that the device knows."""

    def release(self) -> None:
        """Have the device forget it, before it goes."""


#: Returns host memory of so many bytes, page-aligned, for contents that leave; None for memory of the device's choice.
Landing = Callable[[int], "np.ndarray | None"]


class Device(Protocol):
    """Computes, on one device or on several of one kind. One per executor process; called from its op loop only.

    Of several, one is current: it is meant wherever nothing else is said. The first is, until `use` is called.
    Every array it returns is an array of the device even when it is 0-d: results never turn into host scalars.
    """

    info: DeviceInfo
    #: How many devices it computes on; they have the numbers from 0 on.
    count: int
    #: The class of its arrays.
    array_type: type
    #: Whether every result lies in memory as CuPy's does. The executor lays out anew what another device gives.
    lays_out_as_cupy: bool
    #: Carries out small ops many at a time; None on a device that has no faster way than one by one.
    segments: Segments | None
    #: Captures ops, so that what was launched for one is launched again; None on a device that launches nothing.
    replays: Replays | None
    #: Carries out matrix products past its array library; None on a device that gains nothing by it.
    products: Products | None
    #: Likewise those of sparse matrices and vectors.
    sparse_products: SparseProducts | None
    #: Likewise reductions of whole arrays.
    reductions: Reductions | None
    #: Memory by its address; None on a device that has none of these.
    blocks: Blocks | None
    #: What launches are left to while many follow each other; None on a device that has no such thing.
    launcher: Launcher | None
    #: Where contents go that are downloaded. Set by the executor.
    landing: Landing

    def resolve(self, qualname: str) -> object:
        """Return the object with the public name ``qualname`` ("cupy.linalg.svd", "cupy.ndarray.sum", ...).

        Called once per name; the executor caches the answer.

        Raises
        ------
        AttributeError
            If this device has nothing of that name; the message says so in one sentence.
        """

    def is_array(self, value: object) -> bool:
        """Tell whether ``value`` is an array of this device."""

    def class_name(self, kind: type) -> str | None:
        """Return the name by which the surface describes ``kind`` itself, None if it does not; ancestors do not count.

        It is told by what the class is, never by what it calls itself.
        """

    def attribute(self, array: Array, name: str) -> object:
        """Return the attribute ``name`` of ``array``, such as ``data`` or ``flat``, which the surface describes."""

    def by_value(self, host: np.ndarray) -> object:
        """Return what a raw kernel takes by value for an array of the host; its one element is the parameter."""

    def python_kernel(self, kind: str, source: PythonSource, options: dict[str, object]) -> object:
        """Return the object of class ``kind`` ("cupyx.jit.rawkernel", "cupy.vectorize") for a checked ``source``."""

    def use(self, number: int) -> None:
        """Make the device ``number`` the current one, with its default stream.

        Raises
        ------
        Exception
            CuPy's ``CUDARuntimeError``, if there is none.
        """

    def in_order_with(self, others: Collection[int]) -> AbstractContextManager[None]:
        """Return a context whose work on the current device comes after all work given so far to ``others``.

        What those are given later comes after it: their memory may be read, and is not used again before that is done.
        """

    def enter_thread(self) -> None:
        """Make the calling thread one that computes on this device, in the current stream of the op loop."""

    def layout(self, array: Array) -> ArrayLayout:
        """Return the layout of ``array``."""

    def memory_order(self, array: Array) -> str:
        """Return "C" or "F" for how ``array`` lies in memory ("" if both), else the word of ``wire.memory_order``."""

    def shares_base(self, array: Array, other: Array) -> int | None:
        """Return the byte offset of ``array`` in the memory of ``other``, or None if it lies elsewhere."""

    def owns_memory(self, array: Array) -> bool:
        """Tell whether ``array`` was allocated as it is, and is no window on memory of another array."""

    def view(self, root: Array, offset: int, shape: Shape, strides: Shape, dtype: DType) -> Array:
        """Return the array that starts ``offset`` bytes into ``root``'s memory. Nothing is copied.

        Raises
        ------
        ValueError
            If any element would lie outside the memory of ``root``, or no array can be like that.
        """

    def upload(self, host: np.ndarray) -> Array:
        """Return a new device array with the contents of ``host`` (C-contiguous unless ``host`` is F-contiguous)."""

    def write(self, array: Array, offset: int, data: memoryview) -> None:
        """Copy ``data`` to ``offset`` bytes into the memory of the contiguous ``array``."""

    def download(self, array: Array) -> np.ndarray:
        """Return a C-contiguous host copy of ``array``, once everything that computes it is done.

        It lies in memory of `landing`, if there is some for it.
        """

    def pin(self, memory: np.ndarray) -> Pinned | None:
        """Learn of host memory that much will be copied from and to: whole pages. None if that makes no difference.

        Called while nobody waits: it may take some 20 ms for 4 MiB.
        """

    def on_stream(self, stream: object) -> AbstractContextManager[object]:
        """Return a context in which work goes to ``stream`` (an object resolved as ``cupy.cuda.Stream``)."""

    def synchronize(self) -> None:
        """Wait until all work given to the devices is done."""

    @property
    def is_spread(self) -> bool:
        """Whether work may be under way for which who waits for the current stream does not wait."""

    def marker(self) -> Marker:
        """Return a marker behind all work given so far. Bounds the work in flight, and times it."""

    def held_bytes(self, number: int = 0) -> int:
        """Return the bytes held by live arrays of the device ``number``, as `memory` does, at the price of a look."""

    def memory(self) -> MemoryUse:
        """Return the present use of memory."""

    def set_memory_limit(self, limit_bytes: int) -> None:
        """Refuse from now on, by CuPy's ``OutOfMemoryError``, what would hold more than this in all on one device."""

    def free_unused(self) -> None:
        """Give cached memory back to the device."""

    def error_name(self, error: BaseException) -> str:
        """Return the public name of the class of ``error`` ("cupy.cuda.memory.OutOfMemoryError", ...)."""

    def is_fatal(self, error: BaseException) -> bool:
        """Tell whether ``error`` leaves the device unusable for this process (a sticky CUDA error)."""


def no_landing(size: int) -> None:
    """Return None: what is downloaded lies in memory of the device's choice."""


#: Warnings that CuPy takes from SciPy, or defines in a private module, and where it makes them public.
_WARNINGS = {
    "BadCoefficients": "cupyx.scipy.signal",
    "SparseEfficiencyWarning": "cupyx.scipy.sparse",
    "SparseWarning": "cupyx.scipy.sparse",
}


def public_warning(kind: type) -> str | None:
    """Return the public name of ``kind`` if it is a warning of SciPy's that CuPy gives too."""
    module = _WARNINGS.get(kind.__name__)
    if module is None or kind.__module__.partition(".")[0] not in ("scipy", "cupyx"):
        return None
    return f"{module}.{kind.__name__}"
