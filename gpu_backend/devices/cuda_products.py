"""Products on a GPU: the call of cuBLAS that CuPy would make, with addresses only."""

from __future__ import annotations

import cupy
import numpy as np
from cupy._core import _routines_linalg
from cupy.cuda import device as devices
from cupy.cuda import runtime
from cupy_backends.cuda.libs import cublas

from gpu_backend.devices.products import Gemm, Product, gemm
from gpu_backend.opstream.layout import Layout

#: By the type of the elements: cuBLAS's word for it, and for how CuPy has products of it computed by default.
_TYPES = {
    "f": (runtime.CUDA_R_32F, cublas.CUBLAS_COMPUTE_32F),
    "d": (runtime.CUDA_R_64F, cublas.CUBLAS_COMPUTE_64F),
    "F": (runtime.CUDA_C_32F, cublas.CUBLAS_COMPUTE_32F),
    "D": (runtime.CUDA_C_64F, cublas.CUBLAS_COMPUTE_64F),
}
#: From this compute capability on CuPy lets cuBLAS choose tensor cores.
_TENSOR_CORES = 80


class CudaProducts:
    """Calls cuBLAS on one GPU; see the seam."""

    def __init__(self, device: cupy.cuda.Device) -> None:
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
        if code not in _TYPES or not first.dtype.isnative:
            return None
        if _routines_linalg.get_compute_type(first.dtype) != _routines_linalg.COMPUTE_TYPE_DEFAULT:
            return None  # the notebook chose another
        call = gemm(first, second)
        return None if call is None else self._made(call, code)

    def _made(self, call: Gemm, code: str) -> Product:
        kind, computed = _TYPES[code]
        algorithm, multiply, handle_of = self._algorithm, cublas.gemmEx, devices.get_cublas_handle
        one = self._factors[code].ctypes.data
        zero = one + self._factors[code].itemsize
        transposed = int(call.is_second_transposed), int(call.is_first_transposed)
        m, n, k, first_leading, second_leading = call.m, call.n, call.k, call.first_leading, call.second_leading

        def run(first: int, second: int, into: int) -> None:
            multiply(
                handle_of(), *transposed, m, n, k, one, second, kind, second_leading, first, kind, first_leading,
                zero, into, kind, m, computed, algorithm,
            )  # fmt: skip

        return Product(call, run)
