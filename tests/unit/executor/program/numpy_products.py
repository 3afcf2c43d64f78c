"""Products on the CPU device, for tests: NumPy reads what BLAS would read, address by address."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_backend.devices.products import Gemm, Product, gemm
from gpu_backend.opstream.layout import DType, Layout
from tests.unit.executor.program.numpy_segments import SegmentedCpu, array_at


class NumpyProducts:
    """Carries out the calls of BLAS by NumPy; notes them."""

    def __init__(self) -> None:
        self.calls: list[Gemm] = []

    def product(self, first: Layout, second: Layout) -> Product | None:
        """Return ``first @ second``; see the seam."""
        call = gemm(first, second) if first.dtype.kind in "fc" else None
        return None if call is None else Product(call, lambda *addresses: self._run(call, first.dtype, *addresses))

    def _run(self, call: Gemm, dtype: DType, first: int, second: int, into: int) -> None:
        self.calls.append(call)
        left = _operand(second, dtype, (call.m, call.k), call.second_leading, call.is_second_transposed)
        right = _operand(first, dtype, (call.k, call.n), call.first_leading, call.is_first_transposed)
        _operand(into, dtype, (call.m, call.n), call.m, False)[...] = left @ right


def _operand(
    address: int, dtype: DType, shape: tuple[int, int], leading: int, is_transposed: bool
) -> np.ndarray[Any, Any]:
    assert leading >= (shape[1] if is_transposed else shape[0])
    steps = (leading * dtype.itemsize, dtype.itemsize) if is_transposed else (dtype.itemsize, leading * dtype.itemsize)
    return array_at(address, dtype, shape, steps)


class MultiplyingCpu(SegmentedCpu):
    """The CPU device with segments and products."""

    def __init__(self, most_ops: int = 8) -> None:
        super().__init__(most_ops)
        self.multiplied = self.products = NumpyProducts()
