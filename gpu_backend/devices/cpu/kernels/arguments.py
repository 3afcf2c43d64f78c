"""The argument list of a raw kernel, laid out in memory as a launch needs it.

What is passed decides the width, not what the kernel declares: a Python ``int`` has 8 bytes, ``float`` 8, ``bool`` 1,
``complex`` 16, a NumPy scalar its own size, an array the 8 of its address. As on the GPU nothing is converted.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu_backend.devices.cpu.dtypes import require_64_bits


class ByValue:
    """A host array of one element that a raw kernel takes by value; a plain ``numpy.ndarray`` is device memory here.

    Parameters
    ----------
    array
        Of size 1, of any dtype, structured ones included.

    Raises
    ------
    TypeError
        If ``array`` has any other size.
    """

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        if array.size != 1:
            raise TypeError(
                f"You are trying to pass a numpy.ndarray of shape {array.shape} as a kernel parameter. Only "
                "numpy.ndarrays of size one can be passed by value. If you meant to pass a pointer to __global__ "
                "memory, you need to pass a cupy.ndarray instead."
            )
        self.data = array.tobytes()

    @classmethod
    def of_bytes(cls, data: bytes) -> ByValue:
        """Return a parameter that consists of ``data``."""
        made = cls.__new__(cls)
        made.data = data
        return made


def value_bytes(value: object) -> bytes:
    """Return the bytes that stand for ``value`` in a raw kernel's argument list.

    Raises
    ------
    TypeError
        If a kernel cannot take such a value.
    OverflowError
        If a Python int does not fit into 64 bits.
    """
    if isinstance(value, np.ndarray):
        return struct.pack("=Q", value.ctypes.data)
    if value is None:
        return bytes(8)
    if isinstance(value, bool):
        return struct.pack("=?", value)
    if isinstance(value, np.generic):
        return value.tobytes()
    if isinstance(value, int):
        require_64_bits(value)
        return struct.pack("=Q" if value >= 1 << 63 else "=q", value)
    if isinstance(value, float):
        return struct.pack("=d", value)
    if isinstance(value, complex):
        return struct.pack("=dd", value.real, value.imag)
    if isinstance(value, ByValue):
        return value.data
    pointer = getattr(value, "ptr", None)
    if isinstance(pointer, int):
        return struct.pack("=Q", pointer)
    raise TypeError(f"Unsupported type {type(value)}")


class ArgumentBlock:
    """The values of one launch and the table of their addresses."""

    def __init__(self, name: str, values: Sequence[object], sizes: Sequence[int]) -> None:
        if len(values) < len(sizes):
            raise TypeError(f"Kernel '{name}' takes {len(sizes)} arguments, but {len(values)} were given.")
        chunks = []
        offsets = []
        position = 0
        for value, size in zip(values, sizes, strict=False):  # CUDA ignores arguments beyond the last parameter
            data = value_bytes(value)
            # A parameter wider than its argument reads zeros here, not the next argument.
            room = -(-max(size, len(data)) // 64) * 64
            chunks.append(data.ljust(room, b"\0"))
            offsets.append(position)
            position += room
        # 64 to spare, so that the values can start at a multiple of 64 as over-aligned structs need.
        self._memory = ctypes.create_string_buffer(position + 64)
        start = -(-ctypes.addressof(self._memory) // 64) * 64
        ctypes.memmove(start, b"".join(chunks), position)
        self._table = (ctypes.c_void_p * max(1, len(offsets)))(*[start + offset for offset in offsets])

    @property
    def address(self) -> int:
        """Address of the table."""
        return ctypes.addressof(self._table)
