"""The seam of products: matrix products that a device carries out by its library, past CuPy's handling of arguments.

Which call CuPy makes for a product follows from how its operands lie; so it is worked out once for each way, and made
again with other addresses. The library is given the very same arguments, and so its sums have the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from gpu_backend.devices.batched_products import Stacks
from gpu_backend.opstream.layout import Layout, contiguous

__all__ = ["Gemm", "Product", "Products", "gemm"]


class Gemm(NamedTuple):
    """The call of BLAS for a product of matrices, in Fortran's order: the transposed result, of the operands swapped.

    Source: ``tensordot_core`` and ``_mat_to_cublas_contiguous`` in ``cupy/_core/_routines_linalg.pyx`` of CuPy 14.2.
    """

    #: Rows and columns of the transposed result, and the extent that is summed over.
    m: int
    n: int
    k: int
    #: Of either operand: whether it is transposed, its leading extent, and the layout that CuPy copies it into first.
    is_first_transposed: bool
    first_leading: int
    first_copy: Layout | None
    is_second_transposed: bool
    second_leading: int
    second_copy: Layout | None
    made: Layout


class Product(NamedTuple):
    """A product of operands that lie in certain ways."""

    call: Gemm | Stacks
    #: Has the device carry it out in the default stream: of what lies at two addresses, into what lies at a third. At a
    #: fourth is memory for the call itself.
    run: Callable[[int, int, int, int], None]
    #: How much memory that is.
    scratch_bytes: int = 0


class Products(Protocol):
    """Carries out products. Called from the op loop only."""

    def product(self, first: Layout, second: Layout) -> Product | None:
        """Return ``first @ second``; None if CuPy makes no such call for it."""

    def stacks(self, first: Layout, second: Layout) -> Product | None:
        """Return ``cupy.matmul(first, second)``, one of which is a stack of matrices; None as for `product`."""


def gemm(first: Layout, second: Layout) -> Gemm | None:
    """Return the call for ``first @ second`` of vectors and matrices; None if it takes another, or does not fit."""
    is_served = 0 < first.ndim <= 2 and 0 < second.ndim <= 2 and first.dtype == second.dtype
    if not is_served or not first.size or not second.size:
        return None
    rows, columns = (first.shape[0] if first.ndim == 2 else 1), (second.shape[1] if second.ndim == 2 else 1)
    summed = first.shape[-1]
    if second.shape[0] != summed or rows == columns == 1:  # CuPy sums a product of vectors by itself
        return None
    made = contiguous((*first.shape[:-1], *second.shape[1:]), first.dtype)
    return Gemm(columns, rows, summed, *_first(first, rows, summed), *_second(second, summed, columns), made)


def _first(layout: Layout, rows: int, summed: int) -> tuple[bool, int, Layout | None]:
    if layout.c_contiguous:
        return False, _leading(layout, 0, summed), None
    if layout.f_contiguous:
        return True, layout.strides[1] // layout.itemsize, None
    return True, rows, contiguous(layout.shape, layout.dtype, "F")


def _second(layout: Layout, summed: int, columns: int) -> tuple[bool, int, Layout | None]:
    if layout.f_contiguous:
        return True, _leading(layout, 1, summed), None
    if layout.c_contiguous:
        return False, layout.strides[0] // layout.itemsize, None
    return False, columns, contiguous(layout.shape, layout.dtype)


def _leading(layout: Layout, axis: int, least: int) -> int:
    return max(layout.strides[axis] // layout.itemsize, least) if layout.ndim == 2 else least
