"""Tables of where matrices begin, for calls of cuBLAS that take one: written by the GPU itself, by one launch."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import cupy

from gpu_backend.devices.batched_products import Begins
from gpu_backend.devices.cuda_word_kernels import WORD, WordKernel

_THREADS = 128
#: The number of matrices, where the table is, three extents; and of each row an address and four steps.
_WORDS = 2 + 3 + 3 * 5
_SOURCE = r"""
extern "C" __global__ void matrix_pointers(long long batch, unsigned long long* table,
        long long extent_1, long long extent_2, long long extent_3,
        unsigned long long second, long long second_0, long long second_1, long long second_2, long long second_3,
        unsigned long long first, long long first_0, long long first_1, long long first_2, long long first_3,
        unsigned long long made, long long made_0, long long made_1, long long made_2, long long made_3) {
    long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= batch) return;
    long long rest = at / extent_3, place_3 = at % extent_3, place_2 = rest % extent_2;
    rest /= extent_2;
    long long place_1 = rest % extent_1, place_0 = rest / extent_1;
    table[at] = second + place_0 * second_0 + place_1 * second_1 + place_2 * second_2 + place_3 * second_3;
    table[batch + at] = first + place_0 * first_0 + place_1 * first_1 + place_2 * first_2 + place_3 * first_3;
    table[2 * batch + at] = made + place_0 * made_0 + place_1 * made_1 + place_2 * made_2 + place_3 * made_3;
}
"""


class MatrixPointers:
    """Writes tables on one GPU."""

    def __init__(self) -> None:
        self._kernel = WordKernel(cupy.RawModule(code=_SOURCE), "matrix_pointers", _WORDS)

    def write(self, table: int, batch: int, begins: Begins, addresses: Sequence[int]) -> list[int]:
        """Have the rows of ``table`` say where each matrix begins; return where the rows are.

        Parameters
        ----------
        addresses
            Of the second operand, the first and the result.
        """
        words = [word for address, steps in zip(addresses, begins.steps, strict=True) for word in (address, *steps)]
        self._kernel.launch(-(-batch // _THREADS), _THREADS, batch, table, *begins.extents[1:], *words)
        return [table + number * batch * WORD for number in range(len(addresses))]


@functools.cache
def matrix_pointers() -> MatrixPointers:
    """Return what writes tables; the first time it may have to be compiled."""
    return MatrixPointers()


def table_bytes(batch: int) -> int:
    """Return how large a table is for so many matrices."""
    return 3 * batch * WORD
