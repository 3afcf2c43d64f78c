"""The array class itself: its constructor, and iterators over arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from gpu_backend.devices.cpu.arrays import Array, as_order
from gpu_backend.devices.cpu.call import guarded_methods
from gpu_backend.devices.cpu.creation import as_shape, new_array
from gpu_backend.devices.cpu.dtypes import as_dtype, store
from gpu_backend.devices.cpu.index import wrapped
from gpu_backend.devices.cpu.naming import public_class
from gpu_backend.devices.cpu.table import define

_MOST_AXES = 32


@define("cupy.ndarray")
def ndarray(
    shape: Any, dtype: DTypeLike = float, memptr: Any = None, strides: Any = None, order: str | None = "C"
) -> Array:
    """Return an array of uninitialised memory, or of the memory at ``memptr``."""
    shape = as_shape(shape)
    if len(shape) > _MOST_AXES:
        raise ValueError(f"maximum supported dimension for an ndarray is {_MOST_AXES}, found {len(shape)}")
    chosen = np.dtype(dtype) if memptr is not None else as_dtype(dtype)
    if memptr is not None:
        memory = memptr.mem._bytes()
        return np.ndarray(shape, chosen, memory, memptr.ptr - memptr.mem.ptr, strides, as_order(order or "C"))
    flat = new_array(shape, chosen, order)
    if strides is None:
        return flat
    reach = [stride * (extent - 1) for stride, extent in zip(strides, shape, strict=True) if extent]
    if any(part < 0 for part in reach):
        raise ValueError("ndarray() with strides currently does not allow negative strides")
    needed = sum(reach) + chosen.itemsize if flat.size else 0
    if needed > flat.nbytes:
        raise ValueError(
            f"ndarray() with strides must stay withing a contiguous size of {flat.nbytes} but got {needed}."
        )
    return np.ndarray(shape, chosen, flat.reshape(-1, order="A").view(np.uint8), 0, strides)


@public_class("cupy.broadcast", module="cupy")
@guarded_methods
class broadcast:
    """Arrays broadcast against each other: ``values``, ``shape``, ``nd`` and ``size``."""

    def __init__(self, *arrays: object) -> None:
        found = [a if isinstance(a, np.ndarray) else None for a in arrays]
        self.shape = np.broadcast_shapes(*(a.shape for a in found if a is not None))
        self.values = tuple(
            raw if a is None else np.broadcast_to(a, self.shape) for raw, a in zip(arrays, found, strict=True)
        )
        self.nd = len(self.shape)
        self.size = int(np.prod(self.shape, dtype=np.int64))


@public_class("cupy.flatiter", module="cupy._indexing.iterate")
@guarded_methods
class flatiter:
    """The elements of an array one after the other, as ``a.flat``."""

    def __init__(self, a: Array) -> None:
        self._base = a
        self._next = 0

    @property
    def base(self) -> Array:
        """The array."""
        return self._base

    def __len__(self) -> int:
        return int(self._base.size)

    def __iter__(self) -> flatiter:
        return self

    def __next__(self) -> Array:
        if self._next >= self._base.size:
            raise StopIteration
        self._next += 1
        return self._base.reshape(-1)[self._next - 1, ...].copy()

    def copy(self) -> Array:
        """Return a flat copy."""
        return self._base.flatten()

    def _index(self, ind: object) -> Any:
        if ind is Ellipsis:
            return slice(None)
        if isinstance(ind, (tuple, list)) or ind is None:
            raise IndexError("unsupported iterator index")
        if isinstance(ind, np.ndarray):
            if ind.dtype.kind not in "iu":
                raise IndexError("unsupported iterator index")
            return wrapped(ind, self._base.size)
        if isinstance(ind, slice):
            return ind
        if isinstance(ind, (int, np.integer)) and not isinstance(ind, bool):
            if not -self._base.size <= ind < self._base.size:
                raise IndexError(f"index {ind} is out of bounds for size {self._base.size}")
            return ind
        raise IndexError("unsupported iterator index")

    def __getitem__(self, ind: object) -> Array:
        index = self._index(ind)
        return np.asarray(self._base.reshape(-1)[index]).copy()

    def __setitem__(self, ind: object, value: object) -> None:
        index = self._index(ind)
        places = np.arange(self._base.size)[index]
        if not isinstance(value, np.ndarray):
            if isinstance(value, (list, tuple)):
                raise TypeError(f"Unsupported type {type(value)}")
            value = np.asarray(value)
        cast = np.empty(value.size, self._base.dtype)
        store(cast, value.reshape(-1))
        if np.size(places) and cast.size:
            self._base.flat[places] = np.resize(cast, np.shape(places))


@define("cupy.ndarray.flat")
def flat(a: Array) -> flatiter:
    """Return an iterator over the elements."""
    return flatiter(a)
