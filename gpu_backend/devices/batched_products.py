"""Products of stacks of matrices: which call CuPy makes of a device's library, worked out from how operands lie."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from gpu_backend.opstream.layout import Layout, Shape, contiguous, contiguous_strides

__all__ = ["Begins", "Stacks", "offsets", "stacks"]

#: More matrices than this go CuPy's way: where each begins is worked out by the host.
_MOST_MATRICES = 1 << 14
#: So many tables of that are remembered: each may take 24 bytes a matrix.
_MOST_TABLES = 64


class Begins(NamedTuple):
    """Where matrices begin that do not follow each other in all three: the second operand, the first and the result."""

    #: The extents of each before its matrix, as many as of the result, and the bytes of one matrix.
    stacks: tuple[tuple[Shape, int], ...]
    outer: Shape


class Stacks(NamedTuple):
    """The call of BLAS for a product of stacks, in Fortran's order: the transposed results, of the operands swapped.

    All lie in C's order. Source: ``matmul`` in ``cupy/_core/_routines_linalg.pyx`` of CuPy 14.2.
    """

    #: Rows and columns of each transposed result, and the extent that is summed over.
    m: int
    n: int
    k: int
    #: How many products.
    batch: int
    #: The layout that CuPy copies an operand into first.
    first_copy: Layout | None
    second_copy: Layout | None
    made: Layout
    #: None if the matrices follow each other in all three, and the library is told only that.
    begins: Begins | None


def stacks(first: Layout, second: Layout) -> Stacks | None:
    """Return the call for ``cupy.matmul(first, second)``, one of which is a stack; None for another, or no fit."""
    axes = max(first.ndim, second.ndim) - 2
    if axes <= 0 or not first.ndim or not second.ndim or first.dtype != second.dtype:
        return None
    rows, columns = (first.shape[-2] if first.ndim > 1 else 1), (second.shape[-1] if second.ndim > 1 else 1)
    summed = first.shape[-1]
    if second.shape[-2 if second.ndim > 1 else 0] != summed:
        return None
    heaps = [(1,) * (axes + 2 - max(one.ndim, 2)) + one.shape[:-2] for one in (first, second)]
    try:
        outer = np.broadcast_shapes(*heaps)
    except ValueError:  # CuPy says why
        return None
    batch = prod(outer)
    if not batch or batch > _MOST_MATRICES or not first.size or not second.size:
        return None
    made = contiguous((*outer, *first.shape[-2:-1], *(second.shape[-1:] if second.ndim > 1 else ())), first.dtype)
    copies = [None if one.c_contiguous else contiguous(one.shape, one.dtype) for one in (first, second)]
    begins = None
    if any(heap != outer for heap in heaps):
        sizes = (summed * columns, rows * summed, rows * columns)
        each = ((heap, size * first.itemsize) for heap, size in zip((heaps[1], heaps[0], outer), sizes, strict=True))
        begins = Begins(tuple(each), outer)
    return Stacks(columns, rows, summed, batch, copies[0], copies[1], made, begins)


@lru_cache(_MOST_TABLES)
def offsets(begins: Begins) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
    """Return how far each matrix begins behind the first one, bytes: a row each for the operands and the result."""
    table = np.zeros((len(begins.stacks), *begins.outer), np.uint64)
    for places, (heap, matrix_bytes) in zip(table, begins.stacks, strict=True):
        for axis, step in enumerate(contiguous_strides(heap, matrix_bytes)):
            shape = [1] * len(heap)
            shape[axis] = heap[axis]
            places += (np.arange(heap[axis], dtype=np.uint64) * np.uint64(step)).reshape(shape)
    return table.reshape(len(begins.stacks), -1)
