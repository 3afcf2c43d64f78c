"""Kernels of our own whose parameters are words: launched without CuPy's handling of arguments."""

from __future__ import annotations

import struct
from typing import Final

import cupy
import numpy as np
from cupy.cuda import driver

#: Bytes of a parameter.
WORD: Final = 8


class WordKernel:
    """A kernel whose parameters are words.

    Parameters
    ----------
    parameters
        How many it has.
    """

    def __init__(self, module: cupy.RawModule, name: str, parameters: int) -> None:
        self._held = module.get_function(name).kernel
        self._words = bytearray(WORD * parameters)
        start = np.frombuffer(self._words, np.uint8).ctypes.data
        self._table = np.array([start + WORD * number for number in range(parameters)], np.uint64)
        self._pack = struct.Struct(f"<{parameters}Q").pack_into

    def launch(self, blocks: int, threads: int, *words: int) -> None:
        """Launch it in the default stream."""
        self._pack(self._words, 0, *words)
        driver.launchKernel(self._held.ptr, blocks, 1, 1, threads, 1, 1, 0, 0, self._table.ctypes.data, 0)
