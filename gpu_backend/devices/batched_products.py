"""Products of stacks of matrices: which call CuPy makes of a device's library, worked out from how operands lie."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from gpu_backend.opstream.layout import Layout, Shape, contiguous, contiguous_strides

__all__ = ["MOST_AXES", "Begins", "Stacks", "stacks"]

#: Stacks of more axes go CuPy's way, if the device has to be told where each matrix begins.
MOST_AXES = 4


class Begins(NamedTuple):
    """Where matrices begin that do not follow each other in all three, the operands and the result."""

    #: How many there are along each axis; `MOST_AXES` of them.
    extents: Shape
    #: How far along each axis one is behind the one before it, bytes: of the second operand, the first and the result.
    steps: tuple[Shape, Shape, Shape]


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
    if not batch or not first.size or not second.size:
        return None
    made = contiguous((*outer, *first.shape[-2:-1], *(second.shape[-1:] if second.ndim > 1 else ())), first.dtype)
    copies = [None if one.c_contiguous else contiguous(one.shape, one.dtype) for one in (first, second)]
    begins = None
    if any(heap != outer for heap in heaps):
        if axes > MOST_AXES:
            return None
        sizes = (summed * columns, rows * summed, rows * columns)
        each = zip((heaps[1], heaps[0], outer), sizes, strict=True)
        second_steps, first_steps, made_steps = (_steps(heap, size * first.itemsize) for heap, size in each)
        begins = Begins((1,) * (MOST_AXES - axes) + outer, (second_steps, first_steps, made_steps))
    return Stacks(columns, rows, summed, batch, copies[0], copies[1], made, begins)


def _steps(heap: Shape, matrix_bytes: int) -> Shape:
    """Return how far matrices of a stack are from each other, over `MOST_AXES` axes."""
    strides = zip(heap, contiguous_strides(heap, matrix_bytes), strict=True)
    return (0,) * (MOST_AXES - len(heap)) + tuple(0 if extent == 1 else stride for extent, stride in strides)
