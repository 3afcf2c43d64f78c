"""Products and column look-ups of matrices with billions of columns, by the columns that they use.

SciPy's take room for every column there could be, which is tens of gigabytes for hashed features; CuPy's take none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_backend.devices.cpu.arrays import Array

#: Room for fewer columns than these is not worth avoiding: some tens of megabytes.
_MANY = 1 << 22


def _minor(matrix: Any) -> int:
    """Return how many columns there are, or rows of a matrix by columns."""
    return int(matrix.shape[1 if matrix.format == "csr" else 0])


def _shape(matrix: Any, minor: int) -> tuple[int, int]:
    return (matrix.shape[0], minor) if matrix.format == "csr" else (minor, matrix.shape[1])


def multiplying(base: Any) -> Callable[..., Any]:
    """Return SciPy's product of two sparse matrices for a subclass of ``base``."""

    def multiply(self: Any, other: Any) -> Any:
        if self.ndim != 2 or other.ndim != 2 or max(self.shape[0], other.shape[1]) < _MANY:
            return base._matmul_sparse(self, other)
        wide = type(self)(other) if self.format == "csr" else self
        if _minor(wide) < _MANY:
            return base._matmul_sparse(self, other)
        used, places = np.unique(wide.indices, return_inverse=True)
        narrow = type(self)((wide.data, places, wide.indptr), shape=_shape(wide, max(1, len(used))))
        product = base._matmul_sparse(*((self, narrow) if self.format == "csr" else (narrow, other)))
        parts = (product.data, used[product.indices], product.indptr)
        return type(self)(parts, shape=(self.shape[0], other.shape[1]))

    return multiply


def choosing(base: Any) -> Callable[..., Any]:
    """Return SciPy's choice of several columns (or rows, of a matrix by columns) for a subclass of ``base``."""

    def choose(self: Any, idx: Array) -> Any:
        if self.ndim != 2 or _minor(self) < _MANY:
            return base._minor_index_fancy(self, idx)
        used, places = np.unique(self.indices, return_inverse=True)
        wanted = np.asarray(idx).ravel()
        found = np.searchsorted(used, wanted)
        found[~np.isin(wanted, used)] = len(used)  # one more column, which is empty
        narrow = type(self)((self.data, places, self.indptr), shape=_shape(self, len(used) + 1))
        made = base._minor_index_fancy(narrow, found)
        made.sort_indices()
        return made

    return choose
