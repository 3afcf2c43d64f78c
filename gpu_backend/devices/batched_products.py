"""Products of stacks of matrices: which call CuPy makes of a device's library, worked out from how operands lie."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from gpu_backend.opstream.layout import Layout, Shape, contiguous, contiguous_strides

__all__ = ["Stacks", "stacks"]

#: More matrices than this go CuPy's way: where each begins is worked out by the host.
_MOST_MATRICES = 2048


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
    #: Where each matrix of the second operand, of the first and of the result begins, bytes from the first one; None if
    #: they follow each other in all three, and the library is told only that.
    offsets: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None


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
    offsets = None
    if any(heap != outer for heap in heaps):
        sizes = (summed * columns, rows * summed, rows * columns)
        found = [
            _offsets(heap, outer, size * first.itemsize)
            for heap, size in zip((heaps[1], heaps[0], outer), sizes, strict=True)
        ]
        offsets = found[0], found[1], found[2]
    return Stacks(columns, rows, summed, batch, copies[0], copies[1], made, offsets)


def _offsets(heap: Shape, outer: Shape, matrix_bytes: int) -> tuple[int, ...]:
    """Return where each matrix begins of a stack of ``heap``, seen as one of ``outer``."""
    steps = [
        0 if extent == 1 else stride
        for extent, stride in zip(heap, contiguous_strides(heap, matrix_bytes), strict=True)
    ]
    places = np.zeros(outer, np.int64)
    for axis, step in enumerate(steps):
        shape = [1] * len(outer)
        shape[axis] = outer[axis]
        places += (np.arange(outer[axis]) * step).reshape(shape)
    return tuple(places.ravel().tolist())
