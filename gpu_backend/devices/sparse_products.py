"""The seam of products of a sparse matrix and a vector: a device does them by its library, past CuPy's own handling.

Unlike a [product of arrays](products.py) such a call leads to memory that is no operand of the op: the arrays of the
matrix. Programs may set others, so each time it is asked whether the matrix is still as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gpu_backend.opstream.layout import Layout

__all__ = ["SparseProduct", "SparseProducts"]

#: Returns where memory of so many bytes is for a call itself; None if it cannot be had.
Scratch = Callable[[int], int | None]


class SparseProduct(Protocol):
    """The product of one matrix and vectors that lie in one way."""

    #: How the result lies.
    made: Layout

    def holds(self, matrix: object) -> bool:
        """Tell whether ``matrix`` is that one and as it was, so that CuPy would make this call again."""

    def run(self, vector: int, into: int, scratch: Scratch) -> bool:
        """Have the device carry it out in the default stream, of what lies at one address into what lies at another.

        Returns whether there was memory for it.
        """


class SparseProducts(Protocol):
    """Carries out products of sparse matrices. Called from the op loop only."""

    def product(self, matrix: object, method: str, vector: Layout) -> SparseProduct | None:
        """Return ``matrix.method(vector)``; None if CuPy makes another call for it, or changes the matrix before."""
