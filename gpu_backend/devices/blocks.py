"""The seam of blocks: memory of a device by its address, for results of which no array has been made."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from gpu_backend.devices.arrays import Array
from gpu_backend.opstream.layout import Layout

__all__ = ["Block", "Blocks"]


class Block(NamedTuple):
    """Memory of the device: at which address, what holds it, and how much it is."""

    address: int
    memory: object
    size_bytes: int


class Blocks(Protocol):
    """Memory and arrays of the device by their addresses. Called from the op loop only."""

    def address(self, array: Array) -> int:
        """Return where the first element of ``array`` lies."""

    def block(self, size_bytes: int) -> Block:
        """Return new memory, at an address that suits any type. Raises as any op for which there is no memory."""

    def array(self, block: Block, layout: Layout) -> Array:
        """Return the array that has the memory of ``block`` for its own, and lies so from its first byte."""

    def read(self, address: int, size_bytes: int) -> bytes:
        """Return what stands in memory, at most `SMALL_BYTES`, once all work given so far is done."""

    def write(self, address: int, data: bytes) -> None:
        """Have ``data``, at most `SMALL_BYTES`, put into memory, in the order of the default stream."""

    def read_into(self, memory: np.ndarray, address: int) -> None:
        """Fill ``memory``, bytes of this host, with what stands from ``address`` on, once all work so far is done."""

    def write_from(self, memory: np.ndarray, address: int) -> None:
        """Put all of ``memory``, bytes of this host, into memory from ``address`` on; done when this returns."""

    def await_writes(self) -> None:
        """Wait until all that was written is there: what comes next may keep no order with the default stream."""
