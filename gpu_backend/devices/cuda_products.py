"""Products on a GPU: the call of cuBLAS that CuPy would make, with addresses only."""

from __future__ import annotations

import cupy
import numpy as np
from cupy._core import _routines_linalg
from cupy.cuda import device as devices
from cupy.cuda import runtime
from cupy_backends.cuda.libs import cublas

from gpu_backend.devices.batched_products import Stacks, stacks
from gpu_backend.devices.cuda_launches import functions_of_products
from gpu_backend.devices.cuda_matrix_pointers import matrix_pointers, table_bytes
from gpu_backend.devices.launching import Launcher
from gpu_backend.devices.products import Gemm, Product, gemm
from gpu_backend.opstream.layout import Layout

#: By the type of the elements: cuBLAS's word for it, and for how CuPy has products of it computed by default.
_TYPES = {
    "f": (runtime.CUDA_R_32F, cublas.CUBLAS_COMPUTE_32F),
    "d": (runtime.CUDA_R_64F, cublas.CUBLAS_COMPUTE_64F),
    "F": (runtime.CUDA_C_32F, cublas.CUBLAS_COMPUTE_32F),
    "D": (runtime.CUDA_C_64F, cublas.CUBLAS_COMPUTE_64F),
}
_SCATTERED = {"f": cublas.sgemmBatched, "d": cublas.dgemmBatched, "F": cublas.cgemmBatched, "D": cublas.zgemmBatched}
#: From this compute capability on CuPy lets cuBLAS choose tensor cores.
_TENSOR_CORES = 80


class CudaProducts:
    """Calls cuBLAS on one GPU; see the seam."""

    def __init__(self, device: cupy.cuda.Device, launcher: Launcher | None = None) -> None:
        self._launcher = launcher
        self._await_launches = launcher.wait if launcher is not None else lambda: None
        self._algorithm = (
            cublas.CUBLAS_GEMM_DEFAULT_TENSOR_OP
            if int(device.compute_capability) >= _TENSOR_CORES
            else cublas.CUBLAS_GEMM_DEFAULT
        )
        #: One and zero in each type, and where they are.
        self._factors = {code: np.array([1, 0], code) for code in _TYPES}

    def product(self, first: Layout, second: Layout) -> Product | None:
        """Return ``first @ second``; see the seam."""
        code = first.dtype.char
        if not _is_served(first):
            return None
        if _routines_linalg.get_compute_type(first.dtype) != _routines_linalg.COMPUTE_TYPE_DEFAULT:
            return None  # the notebook chose another
        call = gemm(first, second)
        return None if call is None else self._made(call, code)

    def stacks(self, first: Layout, second: Layout) -> Product | None:
        """Return ``cupy.matmul(first, second)`` of stacks; see the seam."""
        call = stacks(first, second) if _is_served(first) else None
        if call is None:
            return None
        code = first.dtype.char
        return self._following(call, code) if call.begins is None else self._scattered(call, code)

    def _made(self, call: Gemm, code: str) -> Product:
        kind, computed = _TYPES[code]
        algorithm, multiply, handle_of = self._algorithm, cublas.gemmEx, devices.get_cublas_handle
        one, zero = self._one_and_zero(code)
        transposed = int(call.is_second_transposed), int(call.is_first_transposed)
        m, n, k, first_leading, second_leading = call.m, call.n, call.k, call.first_leading, call.second_leading
        wait = self._await_launches
        if self._launcher is not None and (functions := functions_of_products()) is not None:
            how = *transposed, m, n, k, kind, second_leading, first_leading, m, computed, algorithm
            return Product(call, self._launcher.products(*functions, handle_of, one, zero, how))

        def run(first: int, second: int, into: int, scratch: int) -> None:
            wait()
            multiply(
                handle_of(), *transposed, m, n, k, one, second, kind, second_leading, first, kind, first_leading,
                zero, into, kind, m, computed, algorithm,
            )  # fmt: skip

        return Product(call, run)

    def _following(self, call: Stacks, code: str) -> Product:
        """Return a product of stacks whose matrices follow each other."""
        kind, multiply, handle_of = _TYPES[code][0], cublas.gemmStridedBatchedEx, devices.get_cublas_handle
        one, zero = self._one_and_zero(code)
        m, n, k, wait = call.m, call.n, call.k, self._await_launches

        def run(first: int, second: int, into: int, scratch: int) -> None:
            wait()
            multiply(
                handle_of(), 0, 0, m, n, k, one, second, kind, m, m * k, first, kind, k, k * n,
                zero, into, kind, m, m * n, call.batch, kind, cublas.CUBLAS_GEMM_DEFAULT,
            )  # fmt: skip

        return Product(call, run)

    def _scattered(self, call: Stacks, code: str) -> Product:
        """Return a product of stacks, of which a table says where each matrix begins."""
        assert call.begins is not None
        multiply, handle_of = _SCATTERED[code], devices.get_cublas_handle
        one, zero = self._one_and_zero(code)
        m, n, k, batch, begins, wait = call.m, call.n, call.k, call.batch, call.begins, self._await_launches

        def run(first: int, second: int, into: int, scratch: int) -> None:
            wait()
            tables = matrix_pointers().write(scratch, batch, begins, (second, first, into))
            multiply(handle_of(), 0, 0, m, n, k, one, tables[0], m, tables[1], k, zero, tables[2], m, batch)

        return Product(call, run, table_bytes(batch))

    def _one_and_zero(self, code: str) -> tuple[int, int]:
        one: int = self._factors[code].ctypes.data
        return one, one + self._factors[code].itemsize


def _is_served(layout: Layout) -> bool:
    return layout.dtype.char in _TYPES and layout.dtype.isnative
