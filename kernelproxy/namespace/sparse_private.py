"""Methods of CSR and CSC matrices that CuPy has from SciPy under private names; programs that subclass them call them.

A matrix has a major axis, along which ``indptr`` points, and a minor one: CSR's are rows and columns, CSC's the other
way.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from kernelproxy.calls import dispatch
from kernelproxy.calls.argument_types import ArrayLike
from kernelproxy.namespace.creation import array
from kernelproxy.public_names import make

T = TypeVar("T")


class OfCompressed:
    """A method that matrices of the two compressed formats have, and no others."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function

    def __get__(self, matrix: Any, kind: type[Any]) -> Any:
        """Return the method; raise AttributeError for a matrix of another format."""
        if kind._format() not in ("csr", "csc"):
            raise AttributeError(f"{kind.__name__!r} object has no attribute {self._function.__name__!r}")
        return self._function if matrix is None else self._function.__get__(matrix, kind)


class CompressedMembers:
    """What CSR and CSC matrices get."""

    @OfCompressed
    def _swap(self: Any, x: T, y: T) -> tuple[T, T]:
        """Return the two of rows and columns in the order major, minor; or back."""
        return (x, y) if self._format() == "csr" else (y, x)

    @OfCompressed
    def _prepare_indices(self: Any, i: ArrayLike, j: ArrayLike) -> tuple[Any, Any, int, int]:
        """Return major and minor indices as arrays of one axis, and how long the axes are.

        Raises
        ------
        IndexError
            If one of them is beyond its axis.
        """
        lengths = self._swap(*self.shape)
        made = []
        for indices, own, bound in zip((i, j), (self.indptr, self.indices), lengths, strict=True):
            flat = array(indices, dtype=own.dtype, copy=True, ndmin=1).ravel()
            high, low = int(flat.max()), int(flat.min())
            if high >= bound:
                raise IndexError(f"index ({high}) out of range (>= {bound})")
            if low < -bound:
                raise IndexError(f"index ({low}) out of range (< -{bound})")
            made.append(flat)
        return made[0], made[1], lengths[0], lengths[1]

    @OfCompressed
    def _set_many(self: Any, i: ArrayLike, j: ArrayLike, x: ArrayLike) -> None:
        """Set the elements at the major indices ``i`` and the minor ``j``, none of them twice, to ``x``."""
        i, j, _, _ = self._prepare_indices(i, j)
        self[self._swap(i, j)] = array(x, dtype=self.dtype, copy=True, ndmin=1).ravel()

    @OfCompressed
    def _insert_many(self: Any, i: ArrayLike, j: ArrayLike, x: ArrayLike) -> None:
        """Set elements that are not there yet, as `_set_many`, and say nothing of what that costs."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", make("cupyx.scipy.sparse.SparseEfficiencyWarning"))
            dispatch.ask_object(".method", self, "__setitem__", self._swap(i, j), x)
