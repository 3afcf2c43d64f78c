"""Tables of instructions, launched on a GPU: by which kernel of a program, and by how many blocks."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

import numpy as np
from cupy.cuda import driver

from gpu_backend.devices.launching import Launcher
from gpu_backend.devices.segment_source import THREADS

#: Elements that a block has for each of its threads, where there is more than one block.
_PER_THREAD = 1
#: What one block does as fast as several, which take longer to wait for each other.
_ONE_BLOCK = 2048
_HEADER = Struct("<2I8x")


def tables(
    kernels: tuple[tuple[int, int], ...], most_blocks: int, launcher: Launcher | None
) -> Callable[[bytearray, int, int], None]:
    """Return what launches the first so many instructions of a table, the largest of so many elements.

    ``kernels`` has each with how many instructions it has room for, the smallest first.
    """
    shape = most_blocks, THREADS, _PER_THREAD, _ONE_BLOCK
    return _Tables(kernels, *shape).launch if launcher is None else launcher.tables(kernels, *shape)


class _Tables:
    """As `Launcher.tables`, each at once; every instruction waits for the one before it."""

    def __init__(
        self, kernels: tuple[tuple[int, int], ...], most_blocks: int, threads: int, per_thread: int, one_block: int
    ) -> None:
        self._kernels, self._most_blocks, self._threads = kernels, most_blocks, threads
        self._per_block, self._one_block = threads * per_thread, one_block
        #: What the blocks of all launches have counted so far.
        self._arrived = 0
        #: Where a launch finds its parameter, the table.
        self._parameters = np.zeros(1, np.uint64)

    def launch(self, table: bytearray, ops: int, most_elements: int) -> None:
        self._parameters[0] = np.frombuffer(table, np.uint8).ctypes.data
        blocks = 1
        if most_elements > self._one_block:
            blocks = min(self._most_blocks, -(-most_elements // self._per_block))
        _HEADER.pack_into(table, 0, ops, self._arrived)
        kernel = next(one for one, room in self._kernels if ops <= room)
        at = self._parameters.ctypes.data
        if blocks > 1 and ops > 1:  # they wait for each other
            driver.launchCooperativeKernel(kernel, blocks, 1, 1, self._threads, 1, 1, 0, 0, at)
            self._arrived = (self._arrived + blocks * (ops - 1)) & 0xFFFFFFFF
        else:
            driver.launchKernel(kernel, blocks, 1, 1, self._threads, 1, 1, 0, 0, at, 0)
