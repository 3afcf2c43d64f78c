"""``DistributedArray``: an array whose chunks are on several devices, and how one is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, NoReturn, Protocol, TypeVar

import numpy as np

from gpu_backend.opstream import surface
from gpu_backend.opstream.layout import contiguous
from kernelproxy.array.remote_array import ndarray
from kernelproxy.calls import dispatch
from kernelproxy.calls.argument_types import ArrayLike, DTypeLike, HostArray, StreamLike
from kernelproxy.client import current
from kernelproxy.namespace import creation
from kernelproxy.namespace.cuda import Device
from kernelproxy.namespace.distributed import elementwise, indices, products, reductions
from kernelproxy.namespace.distributed.chunks import Chunk, ChunksMap, all_reduce, made, on_this_device
from kernelproxy.namespace.distributed.indices import Index, IndexMap, IndexMapLike
from kernelproxy.namespace.distributed.modes import REPLICA, SUM, Mode

_Item = TypeVar("_Item")


class _Change(Protocol):
    """Adds or takes away an item; ``one`` is what there is to add."""

    def __call__(self, items: tuple[_Item, ...], one: _Item) -> tuple[_Item, ...]: ...


_OUT_OF_REACH = (
    "A distributed array is on several devices, and this function takes arrays of one. Elementwise functions, sum, "
    "prod, max and min along an axis, and matmul take it as it is; .get() brings all of it to the notebook, and "
    ".all_chunks() gives the arrays that it is made of."
)


class DistributedArray(ndarray):
    """An array whose chunks are on several devices. `distributed_array` makes one; parameters are CuPy's."""

    __slots__ = ("__dict__", "_chunks_map", "_mode")
    __module__ = "cupyx.distributed.array._array"

    _chunks_map: ChunksMap
    _mode: Mode

    def __new__(
        cls, shape: tuple[int, ...], dtype: DTypeLike, chunks_map: ChunksMap, mode: Mode = REPLICA, comms: object = None
    ) -> DistributedArray:  # fmt: skip
        """Make the array of these chunks; ``comms`` are CuPy's own and not needed."""
        array: DistributedArray = object.__new__(cls)
        array._layout = contiguous(tuple(shape), np.dtype(dtype))
        array._root, array._dropped, array._client = None, None, current()
        array._chunks_map, array._mode = chunks_map, mode
        return array

    @property
    def _ref(self) -> NoReturn:  # type: ignore[override]  # no op can name what is in several places
        raise RuntimeError(_OUT_OF_REACH)

    @property
    def mode(self) -> Mode:
        """How overlapping chunks are read: `REPLICA`, `MIN`, `MAX`, `SUM` or `PROD`."""
        return self._mode

    @property
    def devices(self) -> Iterable[int]:
        """The numbers of the devices that have chunks."""
        return self._chunks_map.keys()

    @property
    def index_map(self) -> IndexMap:
        """Which elements the chunks of each device are."""
        return {device: [chunk.index for chunk in chunks] for device, chunks in self._chunks_map.items()}

    def all_chunks(self) -> dict[int, list[Any]]:
        """Return the chunks of each device, as arrays."""
        return {device: [chunk.array for chunk in chunks] for device, chunks in self._chunks_map.items()}

    def change_mode(self, mode: Mode) -> DistributedArray:
        """Return the same array with chunks that are to be read by ``mode``; itself if they are."""
        if mode is self._mode:
            return self
        copied = {device: [chunk.copy() for chunk in chunks] for device, chunks in self._chunks_map.items()}
        if self._mode is not None:
            all_reduce(self._mode, self.shape, copied)
        if mode is not None:
            chunks = list(chain.from_iterable(copied.values()))
            identity = mode.identity_of(self.dtype)
            for place, chunk in enumerate(chunks):
                for later in chunks[place + 1 :]:
                    chunk.fill(later.index, self.shape, identity)
        return DistributedArray(self.shape, self.dtype, copied, mode)

    _to_op_mode = change_mode

    def reshard(self, index_map: IndexMapLike) -> DistributedArray:
        """Return the same array with its chunks where ``index_map`` says, in the same mode; itself if they are.

        Parameters
        ----------
        index_map
            By device a tuple of slices and numbers, or a list of such tuples.
        """
        wanted = indices.normal_map(self.shape, index_map)
        if wanted == self.index_map:
            return self
        chunks_map: ChunksMap = {}
        for device, places in wanted.items():
            with Device(device):
                chunks_map[device] = [made(self._blank(indices.extents(self.shape, one)), one) for one in places]
        for chunk in chain.from_iterable(self._chunks_map.values()):
            source = chunk.copy() if self._mode is not None and not self._mode.idempotent else chunk
            for other in chain.from_iterable(chunks_map.values()):
                source.bring_to(other, self._mode, self.shape)
        return DistributedArray(self.shape, self.dtype, chunks_map, self._mode)

    def _blank(self, shape: tuple[int, ...]) -> Any:
        """Return an array of the current device into which others are brought."""
        if self._mode is None:
            return dispatch.call("cupy.empty", (shape, self.dtype), {})
        return dispatch.call("cupy.full", (shape, self._mode.identity_of(self.dtype), self.dtype), {})

    def get(
        self, stream: StreamLike = None, order: str = "C", out: HostArray | None = None, blocking: bool = True
    ) -> Any:
        """Return the whole as a NumPy array. A round trip for each chunk.

        Raises
        ------
        RuntimeError
            If ``stream``, another ``order`` or ``out`` is given.
        """
        if stream is not None or order != "C" or out is not None:
            given = "stream" if stream is not None else "order" if order != "C" else "out"
            raise RuntimeError(f"Argument `{given}` not supported")
        mode = self._mode
        whole = np.empty(self.shape, self.dtype)
        if mode is not None:
            whole[...] = mode.identity_of(self.dtype)
        for chunk in chain.from_iterable(self._chunks_map.values()):
            with chunk.reading():
                part = chunk.array.get()
            whole[chunk.index] = part if mode is None else mode.numpy_func(whole[chunk.index], part)
        return whole

    # --- what is computed ---------------------------------------------------------------------------------------------

    def __cupy_override_elementwise_kernel__(
        self, kernel: Callable[..., object], *args: object, **kwargs: object
    ) -> DistributedArray:
        """Carry out a ufunc or an elementwise kernel, all of whose arguments must be distributed arrays."""
        given = tuple(_distributed(one).change_mode(REPLICA) for one in args)
        named = {name: _distributed(one).change_mode(REPLICA) for name, one in kwargs.items()}
        chunks_map, dtype = elementwise.chunks_of(kernel, given, named)
        return DistributedArray((*given, *named.values())[0].shape, dtype, chunks_map)

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: object, **kwargs: object) -> Any:
        """Carry out NumPy's ufunc on chunks, and ``matmul``."""
        if function is np.matmul and method == "__call__":
            return matmul(*inputs, **kwargs)
        return super().__array_ufunc__(function, method, *inputs, **kwargs)

    def __matmul__(self, other: object) -> Any:
        return matmul(self, other) if isinstance(other, DistributedArray) else NotImplemented

    def sum(self, axis: int | None = None, dtype: DTypeLike = None, out: None = None, keepdims: bool = False) -> Any:
        """Return the sums along ``axis``, which must be given."""
        return self._reduced("sum", axis, dtype, out, keepdims)

    def prod(self, axis: int | None = None, dtype: DTypeLike = None, out: None = None, keepdims: bool = False) -> Any:
        """Return the products along ``axis``, which must be given."""
        return self._reduced("prod", axis, dtype, out, keepdims)

    def max(self, axis: int | None = None, out: None = None, keepdims: bool = False) -> Any:
        """Return the maxima along ``axis``, which must be given."""
        return self._reduced("max", axis, None, out, keepdims)

    def min(self, axis: int | None = None, out: None = None, keepdims: bool = False) -> Any:
        """Return the minima along ``axis``, which must be given."""
        return self._reduced("min", axis, None, out, keepdims)

    def _reduced(self, name: str, axis: int | None, dtype: DTypeLike, out: object, keepdims: bool) -> Any:
        if axis is None:
            raise RuntimeError("axis must be specified")
        if out is not None:
            raise RuntimeError("Argument `out` is not supported")
        if keepdims:
            raise RuntimeError("Argument `keepdims` is not supported")
        if not -self.ndim <= axis < self.ndim:
            raise np.exceptions.AxisError(axis, self.ndim)
        axis = int(axis) % self.ndim
        read = self.change_mode(reductions.mode_to_read_in(name, self._mode))
        chunks_map, made_dtype = reductions.chunks_of(name, read, axis, dtype)
        shape = self.shape[:axis] + self.shape[axis + 1 :]
        return DistributedArray(shape, made_dtype, chunks_map, reductions.MODES[name])


def _distributed(value: object) -> DistributedArray:
    if not isinstance(value, DistributedArray):
        raise RuntimeError("Mixing a distributed array with a non-distributed one is not supported")
    return value


def _missing(name: str) -> Any:
    """Return what stands for the member ``name`` of arrays, which distributed ones do not have."""

    def refuse(self: DistributedArray, *args: object, **kwargs: object) -> NoReturn:
        raise NotImplementedError(f"DistributedArray currently does not support {name}.")

    refuse.__name__ = name
    refuse.__doc__ = "Not supported."
    return refuse if callable(getattr(ndarray, name)) else property(refuse, refuse)


#: Members of arrays that say no more than the shape and the dtype.
_OF_LAYOUT = ("dtype", "itemsize", "nbytes", "ndim", "shape", "size")
_PUBLIC = [name for name in surface.load().below("cupy.ndarray") if not name.startswith("_")]
for _name in (*_PUBLIC, "__getitem__", "__setitem__", "__len__", "__iter__", "__copy__"):
    if _name not in vars(DistributedArray) and _name not in _OF_LAYOUT:
        setattr(DistributedArray, _name, _missing(_name))


def matmul(a: object, b: object, out: object = None, **kwargs: object) -> DistributedArray:
    """Return the matrix product of two distributed arrays, in the mode `SUM`.

    Raises
    ------
    RuntimeError
        If one is not distributed, if no device has both blocks of a product, or for ``out``, ``subok``, ``axes``,
        ``axis``.
    ValueError
        If shapes do not match.
    """
    for name in ("out", "subok", "axes", "axis"):
        if name in kwargs or (name == "out" and out is not None):
            raise RuntimeError(f"Argument `{name}` is not supported")
    if not isinstance(a, DistributedArray) or not isinstance(b, DistributedArray):
        raise RuntimeError("Mixing a distributed array with a non-distributed array is not supported")
    left, right = a.change_mode(REPLICA), b.change_mode(REPLICA)
    if a.ndim == 1:
        left = _reshaped(left, lambda items, one: (one, *items))
    if b.ndim == 1:
        right = _reshaped(right, lambda items, one: (*items, one))
    chunks_map, dtype = products.chunks_of(left, right, kwargs)
    result = DistributedArray((*left.shape[:-1], right.shape[-1]), dtype, chunks_map, SUM)
    if a.ndim == 1:
        result = _reshaped(result, lambda items, one: (*items[:-2], items[-1]))
    return _reshaped(result, lambda items, one: items[:-1]) if b.ndim == 1 else result


def _reshaped(array: DistributedArray, change: _Change) -> DistributedArray:
    """Return ``array`` with axes of one element more or less: ``change`` makes the shape, and likewise each index."""
    chunks_map: ChunksMap = {}
    for device, chunks in array._chunks_map.items():
        chunks_map[device] = []
        for chunk in chunks:
            with chunk.reading():
                view = chunk.array.reshape(change(chunk.array.shape, 1))
            chunks_map[device].append(Chunk(view, chunk.ready, change(chunk.index, slice(0, 1, 1))))
    return DistributedArray(change(array.shape, 1), array.dtype, chunks_map, array._mode)


def distributed_array(array: ArrayLike, index_map: IndexMapLike, mode: Mode = REPLICA) -> DistributedArray:
    """Return a distributed array of what ``array`` has, with chunks where ``index_map`` says.

    What no chunk has is in the result nowhere. Chunks on the device of an array may be views of it.

    Parameters
    ----------
    array
        A distributed array, a remote one, or what NumPy makes an array of.
    index_map
        By device a tuple of slices and numbers, or a list of such tuples.
    mode
        How overlapping chunks are to be read.
    """
    if isinstance(array, DistributedArray):
        return array.change_mode(mode).reshard(index_map)
    given = array if isinstance(array, (ndarray, np.ndarray)) else np.array(array)
    places = indices.normal_map(given.shape, index_map)
    if mode is not None and not mode.idempotent:
        given = given.copy() if isinstance(given, np.ndarray) else _copied(given)
    chunks_map: ChunksMap = {}
    for device, several in places.items():
        chunks_map[device] = []
        for place in several:
            with Device(device):
                chunks_map[device].append(_cut(given, place, mode))
    return DistributedArray(given.shape, given.dtype, chunks_map, mode)


def _copied(array: ndarray) -> ndarray:
    with array.device:
        copied: ndarray = array.copy()
    return copied


def _cut(array: ndarray | HostArray, place: Index, mode: Mode) -> Chunk:
    """Return what ``array`` has at ``place`` as a chunk of the current device; what may count only once goes there."""
    counts_once = mode is not None and not mode.idempotent
    if isinstance(array, np.ndarray):
        chunk = made(creation.array(np.ascontiguousarray(array[place])), place)
        if mode is not None and counts_once:
            array[place] = mode.identity_of(array.dtype)
        return chunk
    with array.device:
        part = made(array[place].copy() if counts_once else array[place], place)
        if mode is not None and counts_once:
            array[place] = mode.identity_of(array.dtype)
    return made(on_this_device(part), place)
