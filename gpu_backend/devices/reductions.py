"""The seam of reductions: of whole arrays, by the library that CuPy would call, past CuPy's handling of arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gpu_backend.devices.blocks import Block
from gpu_backend.opstream.layout import Layout

__all__ = ["Reduce", "Reductions"]

#: Has the device reduce what lies at an address, in the default stream; returns the memory that the one element fills.
#: Raises MemoryError if there is none for it.
Reduce = Callable[[int], Block]


class Reductions(Protocol):
    """Reduces arrays. Called from the op loop only."""

    def has_pool(self) -> bool:
        """Tell whether memory comes from a pool now: what is let go of is there for the next, in whole blocks."""

    def reduction(self, name: str, layout: Layout) -> Reduce | None:
        """Return what reduces all of an array that lies so by op ``name`` ("cupy.sum", "cupy.ndarray.max", ...).

        None if CuPy reduces it otherwise, or ``name`` is no reduction of which one element of the same type is left.
        """
