"""Products of sparse matrices and vectors on a GPU: the calls of cuSPARSE that CuPy would make, with addresses only.

CuPy takes 40 to 65 µs for a small one, most of it to find out which calls to make, and to have descriptions of three
operands made and destroyed by its own classes. The calls themselves are the same, in the same order. Source:
``cupyx/scipy/sparse/_csr.py``, ``_csc.py``, and ``spmv`` in ``cupyx/cusparse.py``, of CuPy 14.2.
"""

from __future__ import annotations

import weakref
from contextlib import ExitStack
from typing import Any

import cupy
import numpy as np
from cupy.cuda import device as devices
from cupy.cuda import runtime
from cupy_backends.cuda.libs import cusparse
from cupyx import cusparse as calls
from cupyx.scipy import sparse

from gpu_backend.devices.sparse_products import Scratch, SparseProduct
from gpu_backend.opstream.layout import Layout, contiguous

#: By the type of the elements: CUDA's word for it.
_TYPES = {"f": runtime.CUDA_R_32F, "d": runtime.CUDA_R_64F, "F": runtime.CUDA_C_32F, "D": runtime.CUDA_C_64F}
_INDICES = {"i": cusparse.CUSPARSE_INDEX_32I, "l": cusparse.CUSPARSE_INDEX_64I, "q": cusparse.CUSPARSE_INDEX_64I}
#: By class: whether it is the transposed matrix whose rows stand one behind the other.
_IS_TRANSPOSED = {
    sparse.csr_matrix: False,
    sparse.csr_array: False,
    sparse.csc_matrix: True,
    sparse.csc_array: True,
}
#: Of any such matrix; and of one that is no array, whose ``*`` is the product of each two elements.
_METHODS, _METHOD_OF_MATRICES = frozenset(("__matmul__", "dot")), "__mul__"


class CudaSparseProducts:
    """Calls cuSPARSE on one GPU; see the seam."""

    def __init__(self) -> None:
        #: One and zero in each type, and where they are.
        self._factors = {code: np.array([1, 0], code) for code in _TYPES}
        self._is_served = calls.check_availability("spmv") and not calls.check_availability("csrmv")

    def product(self, matrix: Any, method: str, vector: Layout) -> SparseProduct | None:
        """Return ``matrix.method(vector)``; see the seam."""
        is_transposed = _IS_TRANSPOSED.get(type(matrix))
        if is_transposed is None or not self._is_served or not _is_product(matrix, method):
            return None
        dtype, size = vector.dtype, matrix.shape[-1]
        if dtype.char not in _TYPES or not dtype.isnative or matrix.dtype != dtype or vector.shape != (size,):
            return None
        is_usual = matrix.ndim == 2 and vector.c_contiguous and _fit_each_other(matrix, is_transposed)
        if not is_usual or not matrix.has_canonical_format:  # which CuPy finds out and notes, as it would itself
            return None
        return _Product(matrix, is_transposed, self._factors[dtype.char])


class _Product:
    """The product of one matrix and vectors of its own type."""

    def __init__(self, matrix: Any, is_transposed: bool, factors: np.ndarray[Any, Any]) -> None:
        self._matrix, self._shape = weakref.ref(matrix), matrix.shape
        self._parts = tuple(map(weakref.ref, _parts(matrix)))  # or they would stay when the program drops the matrix
        self._one: int = factors.ctypes.data
        self._zero = self._one + factors.itemsize
        data, indices, indptr = _parts(matrix)
        self._type = _TYPES[data.dtype.char]
        self._direction = (
            cusparse.CUSPARSE_OPERATION_TRANSPOSE if is_transposed else cusparse.CUSPARSE_OPERATION_NON_TRANSPOSE
        )
        rows = matrix.shape[::-1] if is_transposed else matrix.shape
        self._description = (
            *rows, data.size, indptr.data.ptr, indices.data.ptr, data.data.ptr,
            _INDICES[indptr.dtype.char], _INDICES[indices.dtype.char], cusparse.CUSPARSE_INDEX_BASE_ZERO, self._type,
        )  # fmt: skip
        self.made = contiguous((matrix.shape[0],), data.dtype)

    def holds(self, matrix: Any) -> bool:
        """Tell whether ``matrix`` is that one and as it was; see the seam."""
        is_that = self._matrix() is matrix
        if not is_that or matrix.shape != self._shape or not matrix.has_canonical_format:
            return False
        return all(part() is one for part, one in zip(self._parts, _parts(matrix), strict=True))

    def run(self, vector: int, into: int, scratch: Scratch) -> bool:
        """Have the device carry it out; see the seam."""
        runtime.memsetAsync(into, 0, self.made.nbytes, 0)  # as ``cupy.zeros``: what lies there may be no number
        with ExitStack() as made:
            matrix = cusparse.createCsr(*self._description)
            made.callback(cusparse.destroySpMat, matrix)
            given = cusparse.createDnVec(self._shape[1], vector, self._type)
            made.callback(cusparse.destroyDnVec, given)
            result = cusparse.createDnVec(self._shape[0], into, self._type)
            made.callback(cusparse.destroyDnVec, result)
            call = (
                devices.get_cusparse_handle(), self._direction, self._one, matrix, given, self._zero, result,
                self._type, cusparse.CUSPARSE_MV_ALG_DEFAULT,
            )  # fmt: skip
            at = scratch(cusparse.spMV_bufferSize(*call))
            if at is not None:
                cusparse.spMV(*call, at)
            return at is not None


def _is_product(matrix: Any, method: str) -> bool:
    return method in _METHODS or (method == _METHOD_OF_MATRICES and sparse.isspmatrix(matrix))


def _fit_each_other(matrix: Any, is_transposed: bool) -> bool:
    """Tell whether the arrays of ``matrix`` are what CuPy's constructor makes sure of; a program may set others."""
    data, indices, indptr = _parts(matrix)
    is_flat = data.ndim == indices.ndim == indptr.ndim == 1
    is_typed = indices.dtype == indptr.dtype and indices.dtype.char in _INDICES
    return bool(
        is_flat and is_typed and 0 < data.size == indices.size and indptr.size == matrix.shape[is_transposed] + 1
    )


def _parts(matrix: Any) -> tuple[cupy.ndarray, cupy.ndarray, cupy.ndarray]:
    return matrix.data, matrix.indices, matrix.indptr
