"""Host memory that the GPU reads and writes by itself: 50 GB/s instead of 10, without the processor."""

from __future__ import annotations

from typing import Self

import numpy as np
from cupy.cuda import runtime


class PinnedMemory:
    """Memory from ``address`` on, registered with the driver until `release`."""

    def __init__(self, address: int) -> None:
        self._address = address

    @classmethod
    def of(cls, memory: np.ndarray) -> Self | None:
        """Register the whole pages of ``memory``; None if the driver will not, as where little may be locked."""
        address = memory.ctypes.data
        try:
            runtime.hostRegister(address, memory.nbytes, 0)
        except runtime.CUDARuntimeError:
            return None
        return cls(address)

    def release(self) -> None:
        """Have the driver forget the memory."""
        try:
            runtime.hostUnregister(self._address)
        except runtime.CUDARuntimeError:
            return  # the device is lost, and everything with it
