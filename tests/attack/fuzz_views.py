"""Asks a device for views and writes of every kind, most of them impossible. Run as a process of its own.

``python fuzz_views.py KIND`` ends with 0 if each was either refused by a plain exception or lies in its array's memory.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_backend.devices import open_device
from gpu_backend.wire.dtypes import text_to_dtype

#: Bytes of the array that is looked at, and around which an overflow would wrap.
SIZE = 512
#: Elements that are read one by one; a broadcast view may have any number.
MOST_READ = 4096

powers = [sign * (1 << power) for sign in (1, -1) for power in (0, 3, 9, 31, 32, 61, 62, 63)]
edges = sorted({power + more for power in powers for more in (-8, -1, 0, 1, 8)})
numbers = st.one_of(st.integers(-SIZE, SIZE), st.sampled_from(edges))
extents = st.one_of(st.integers(0, 9), numbers)
plain = ["|u1", "<f4", "<f8", "<c16", "|b1", ">f8", "<U3", "|S0", "|V0", "|V3", "<M8[ns]"]
dtypes = st.sampled_from([*plain, '{"fields": [["a", "<f8", 8]], "itemsize": 24, "aligned": false}'])
how = st.sampled_from(["plain", "reversed", "gaps", "columns", "broadcast", "nothing"])


def arranged(root: Any, kind: str) -> Any:
    """Return the array in another arrangement, its memory the same."""
    if kind == "reversed":
        return root[::-1]
    if kind == "gaps":
        return root[3::2]
    if kind == "columns":
        return root.reshape(8, 8).T[1:]
    if kind == "broadcast":
        return device.resolve("cupy.broadcast_to")(root[:1], (40, 2))
    return root[:0] if kind == "nothing" else root


def address_of(array: Any) -> int:
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)


@given(st.data(), how, numbers, st.integers(0, 5), dtypes)
@settings(max_examples=3000, deadline=None, database=None, derandomize=True)
def ask_for_a_view(data: st.DataObject, kind: str, offset: int, ndim: int, text: str) -> None:
    shape = tuple(data.draw(st.lists(extents, min_size=ndim, max_size=ndim)))
    strides = tuple(data.draw(st.lists(numbers, min_size=ndim, max_size=ndim)))
    array = arranged(whole, kind)
    try:
        view = device.view(array, offset, shape, strides, text_to_dtype(text))
    except (ValueError, TypeError, OverflowError):
        return
    counts["views"] += 1
    assert view.shape == shape
    if 0 not in shape:
        first = address_of(view) - address_of(whole)
        last = first + sum(stride * (extent - 1) for extent, stride in zip(shape, strides, strict=True))
        lowest = first + sum(min(0, stride * (extent - 1)) for extent, stride in zip(shape, strides, strict=True))
        assert 0 <= lowest <= max(first, last) < SIZE, "the view lies outside"
    aligned = all(number % view.dtype.itemsize == 0 for number in (offset, *strides))
    if view.size <= MOST_READ and (aligned or isinstance(view, np.ndarray)):  # a GPU reads whole words or faults
        with suppress(ValueError):  # CuPy's word on a dtype that it has no contents of
            device.download(view)


@given(how, numbers, st.integers(0, 2 * SIZE))
@settings(max_examples=1000, deadline=None, database=None, derandomize=True)
def ask_for_a_write(kind: str, offset: int, count: int) -> None:
    array = arranged(whole, kind)
    device.write(guard, 0, memoryview(bytes(SIZE)))
    try:
        device.write(array, offset, memoryview(b"\xff" * count))
    except (ValueError, OverflowError):
        return
    counts["writes"] += 1
    assert not np.any(device.download(guard).view(np.uint8)), "the write reached another array"


if __name__ == "__main__":
    device: Any = open_device(sys.argv[1])
    whole = device.upload(np.arange(SIZE // 8, dtype="<f8"))
    guard = device.upload(np.zeros(SIZE // 8))
    counts = {"views": 0, "writes": 0}
    ask_for_a_view()
    ask_for_a_write()
    assert min(counts.values()) > 100, counts
