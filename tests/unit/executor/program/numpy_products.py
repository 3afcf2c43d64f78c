"""Products on the CPU device, for tests: NumPy and SciPy read what a library would read, address by address."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_backend.devices.batched_products import Begins, Stacks, stacks
from gpu_backend.devices.products import Gemm, Product, gemm
from gpu_backend.devices.sparse_products import Scratch
from gpu_backend.opstream.layout import DType, Layout, contiguous
from tests.unit.executor.program.numpy_segments import SegmentedCpu, array_at


class NumpyProducts:
    """Carries out the calls of BLAS by NumPy; notes them."""

    def __init__(self) -> None:
        self.calls: list[Gemm | Stacks] = []

    def product(self, first: Layout, second: Layout) -> Product | None:
        """Return ``first @ second``; see the seam."""
        call = gemm(first, second) if first.dtype.kind in "fc" else None
        return None if call is None else Product(call, lambda *addresses: self._run(call, first.dtype, *addresses))

    def stacks(self, first: Layout, second: Layout) -> Product | None:
        """Return ``cupy.matmul(first, second)`` of stacks; see the seam."""
        call = stacks(first, second) if first.dtype.kind in "fc" else None
        if call is None:
            return None
        size = 24 * call.batch if call.begins is not None else 0
        return Product(call, lambda *addresses: self._run_each(call, first.dtype, *addresses), size)

    def _run_each(self, call: Stacks, dtype: DType, first: int, second: int, into: int, scratch: int) -> None:
        self.calls.append(call)
        table = offsets(call.begins) if call.begins is not None else None
        if table is not None:  # in memory of its own
            array_at(scratch, np.dtype(np.uint64), (3, call.batch), (8 * call.batch, 8))[...] = table
        m, n, k, size = call.m, call.n, call.k, dtype.itemsize
        steps = (m * k * size, k * n * size, m * n * size)
        for number in range(call.batch):
            places = [one[number] for one in table] if table is not None else [step * number for step in steps]
            left = _operand(second + places[0], dtype, (m, k), m, False)
            right = _operand(first + places[1], dtype, (k, n), k, False)
            _operand(into + places[2], dtype, (m, n), m, False)[...] = left @ right

    def _run(self, call: Gemm, dtype: DType, first: int, second: int, into: int, scratch: int) -> None:
        self.calls.append(call)
        left = _operand(second, dtype, (call.m, call.k), call.second_leading, call.is_second_transposed)
        right = _operand(first, dtype, (call.k, call.n), call.first_leading, call.is_first_transposed)
        _operand(into, dtype, (call.m, call.n), call.m, False)[...] = left @ right


def offsets(begins: Begins) -> list[list[int]]:
    """Return how far each matrix begins behind the first one: of the second operand, the first and the result."""
    places = np.indices(begins.extents).reshape(len(begins.extents), -1)
    return [(np.array(steps) @ places).tolist() for steps in begins.steps]


def _operand(
    address: int, dtype: DType, shape: tuple[int, int], leading: int, is_transposed: bool
) -> np.ndarray[Any, Any]:
    assert leading >= (shape[1] if is_transposed else shape[0])
    steps = (leading * dtype.itemsize, dtype.itemsize) if is_transposed else (dtype.itemsize, leading * dtype.itemsize)
    return array_at(address, dtype, shape, steps)


class NumpySparseProducts:
    """Multiplies matrices of SciPy's, whose calls take ``scratch_bytes``; notes them."""

    def __init__(self) -> None:
        self.scratch_bytes, self.calls, self.asked = 16, 0, 0

    def product(self, matrix: Any, method: str, vector: Layout) -> _SparseProduct | None:
        """Return ``matrix.method(vector)``; see the seam."""
        self.asked += 1
        is_usual = method in ("__matmul__", "dot") and matrix.format == "csr" and vector.c_contiguous
        return _SparseProduct(self, matrix) if is_usual and vector.shape == (matrix.shape[1],) else None


class _SparseProduct:
    def __init__(self, owner: NumpySparseProducts, matrix: Any) -> None:
        self._owner, self._matrix, self._data = owner, matrix, matrix.data
        self.made = contiguous((matrix.shape[0],), matrix.dtype)

    def holds(self, matrix: object) -> bool:
        """Tell whether ``matrix`` is that one and as it was; see the seam."""
        return matrix is self._matrix and self._matrix.data is self._data

    def run(self, vector: int, into: int, scratch: Scratch) -> bool:
        """Multiply; see the seam."""
        if scratch(self._owner.scratch_bytes) is None:
            return False
        self._owner.calls += 1
        step = (self.made.itemsize,)
        given = array_at(vector, self.made.dtype, (self._matrix.shape[1],), step)
        array_at(into, self.made.dtype, self.made.shape, step)[...] = self._matrix @ given
        return True


class MultiplyingCpu(SegmentedCpu):
    """The CPU device with segments and products."""

    def __init__(self, most_ops: int = 8) -> None:
        super().__init__(most_ops)
        self.multiplied = self.products = NumpyProducts()
        self.multiplied_sparse = self.sparse_products = NumpySparseProducts()
