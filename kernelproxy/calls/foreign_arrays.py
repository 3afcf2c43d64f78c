"""Objects that stand for a remote array: what ``__cupy_get_ndarray__`` returns, or what wraps one of ours.

A wrapper says by ``__cuda_array_interface__`` where its memory is: by what an array of ours says of itself there, or by
an address that the notebook was told of one. It is a window on that array's memory. Any other address is none of ours.
"""

from __future__ import annotations

from operator import index
from typing import Any, NamedTuple, NoReturn
from weakref import WeakValueDictionary

import numpy as np

from gpu_backend.opstream.layout import DType, Layout, contiguous_strides, strided
from gpu_backend.wire.values import View
from kernelproxy.calls import array_core
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.supported_dtypes import require_supported
from kernelproxy.client import Client, clients, current

#: What is said of an array that is nobody's but this machine's; its class goes into the braces.
ELSEWHERE = (
    "This {} lies on a GPU of this machine, which the remote GPU cannot reach. Copy it to host memory first, as with "
    ".cpu(), .copy_to_host() or .get()"
)
_NO_POINTER = (
    "This array lives on a remote GPU: there is no CUDA pointer that a local library could use. "
    "Hand over x.get(), or run the other library's work as CuPy kernels."
)


class NoPointer:
    """Stands for where an array's memory is, in the place of the flag of read-only memory.

    Libraries in C read that flag without asking Python for the item, and none of them can do anything with the address.
    """

    def __init__(self, array: ArrayCore) -> None:
        self.array = array

    def __bool__(self) -> bool:
        self.refuse()

    def refuse(self) -> NoReturn:
        """Say that there is no address.

        Raises
        ------
        BufferError
            Always.
        """
        raise BufferError(_NO_POINTER)


class _HandedOut:
    """Arrays of a client of whose memory the notebook has asked for addresses, by those of their first elements."""

    def __init__(self, client: Client) -> None:
        self.arrays: WeakValueDictionary[int, ArrayCore] = WeakValueDictionary()


class Nothing(NamedTuple):
    """An array without elements, which lies nowhere."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def hand_out(array: ArrayCore, address: int) -> None:
    """Remember that the notebook was told the ``address`` of ``array``."""
    if address:
        root = _owner(array)
        arrays, start = array._client.part(_HandedOut).arrays, address - _offset(array) + _offset(root)
        arrays.pop(start, None)  # so that it is the newest
        arrays[start] = root


def behind(value: Any) -> Any:
    """Return the array that ``value`` stands for, as a polynomial does for its coefficients; `Nothing`; else itself.

    Raises
    ------
    TypeError
        If its memory is not of an array of ours.
    ValueError
        If it reaches beyond that array, is masked, or in the byte order that CuPy does not take.
    """
    array = getattr(value, "__cupy_get_ndarray__", None)
    if array is not None:
        return array()
    if isinstance(value, ArrayCore) or not hasattr(value, "__cuda_array_interface__"):
        return value
    return _wrapped(value, value.__cuda_array_interface__)


def _wrapped(value: object, described: dict[str, Any]) -> Any:
    dtype = _dtype(described)
    if dtype.byteorder == ">":
        raise ValueError("CuPy does not support the big-endian byte-order")
    if described.get("mask") is not None:
        raise ValueError("CuPy currently does not support masked arrays.")
    require_supported(dtype)
    shape, strides = tuple(map(index, described["shape"])), described.get("strides")
    if 0 in shape:
        return Nothing(shape, dtype)
    address, pointer = dict.__getitem__(described, "data")
    steps = contiguous_strides(shape, dtype.itemsize) if strides is None else tuple(map(index, strides))
    layout = strided(shape, steps, dtype)
    if isinstance(pointer, NoPointer):
        return _window(pointer.array, 0, layout)
    found = _lying_at(index(address))
    if found is None:
        raise TypeError(
            f"No array of this session lies at {address:#x}, where this {type(value).__name__} says that it does. If "
            "that is memory of a GPU of this machine, copy it to host memory first, as with .cpu(), .copy_to_host() or "
            ".get(); cupy.asarray(...) takes that copy."
        )
    return _window(*found, layout)


def _dtype(described: dict[str, Any]) -> DType:
    """Return the dtype that an interface tells; fields without a name are what lies between others."""
    dtype: DType = np.dtype(described["typestr"])
    fields = described.get("descr")
    if dtype.kind != "V" or not fields:
        return dtype
    names, formats, offsets, offset = [], [], [], 0
    for name, *form in fields:
        kind = np.dtype(form[0] if len(form) == 1 else tuple(form))
        if name:
            names.append(name)
            formats.append(kind)
            offsets.append(offset)
        offset += kind.itemsize
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": dtype.itemsize})


def _lying_at(address: int) -> tuple[ArrayCore, int] | None:
    """Return the array in whose memory an address lies, and how far behind its first element; the newest of several.

    Raises
    ------
    ValueError
        If arrays of two of the notebook's devices lie there: executors have addresses of their own.
    """
    here = current()
    alive = [one for one in (here, *clients()) if not one.over]
    found = {one: place for one in alive if (place := _lying_of(one, address)) is not None}
    if len(found.keys() & set(here.members)) > 1:
        raise ValueError(
            f"Arrays of {len(found)} devices lie at {address:#x}, each in the memory of an executor of its own. Give "
            "the array itself in place of its address."
        )
    return next(iter(found.values()), None)


def _lying_of(client: Client, address: int) -> tuple[ArrayCore, int] | None:
    arrays = client.part(_HandedOut).arrays
    if (exactly := arrays.get(address)) is not None:
        return exactly, 0
    for start, array in reversed(list(arrays.items())):
        low, high = _reach(array._layout)
        if low <= address - start < high:
            return array, address - start
    return None


def _window(array: ArrayCore, offset: int, layout: Layout) -> Any:
    """Return the window of ``layout`` that begins ``offset`` bytes behind the first element of ``array``."""
    root = _owner(array)
    start, (first, last), (low, high) = _offset(array) - _offset(root) + offset, _reach(layout), _reach(root._layout)
    if start + first < low or start + last > high:
        raise ValueError(
            f"An array of shape {layout.shape} and strides {layout.strides} that begins {start} bytes behind another "
            f"one's first element reaches beyond that one, which has {root._layout.nbytes} bytes."
        )
    return array_core.view_of(array, offset, layout, array_core.array_class)


def _owner(array: ArrayCore) -> ArrayCore:
    return array if array._root is None else array._root


def _offset(array: ArrayCore) -> int:
    """Return how many bytes behind the first element of its handle ``array`` begins."""
    return array._ref.offset if isinstance(array._ref, View) else 0


def _reach(layout: Layout) -> tuple[int, int]:
    """Return the bytes that an array has, from the first to behind the last, counted from its first element."""
    if not layout.size:
        return 0, 0
    spans = [(extent - 1) * stride for extent, stride in zip(layout.shape, layout.strides, strict=True)]
    return sum(min(span, 0) for span in spans), sum(max(span, 0) for span in spans) + layout.itemsize
