"""Products, sums, solvers and factors of ``cupyx.cusparse``, with CuPy's checks of their arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from numpy.linalg import LinAlgError

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.scipy_sparse import adopt
from gpu_backend.devices.cpu.table import define

_PREFIX = "cupyx.cusparse"


def _require_csr(*matrices: Any) -> None:
    for matrix in matrices:
        if not (scipy.sparse.issparse(matrix) and matrix.format == "csr"):
            raise TypeError(f"unsupported type (actual: {type(matrix)})")


def _require_canonical(**matrices: Any) -> None:
    for name, matrix in matrices.items():
        if not matrix.has_canonical_format:
            raise ValueError(f"expected canonical format for {name}")


def _require_sparse(a: Any) -> None:
    if not (scipy.sparse.issparse(a) and a.format in ("csr", "csc", "coo")):
        raise TypeError(f"unsupported type (actual: {type(a)})")


@define(f"{_PREFIX}.spmm")
def spmm(
    a: Any, b: Array, c: Array | None = None, alpha: Any = 1, beta: Any = 0, transa: bool = False, transb: bool = False
) -> Array:
    """Return ``alpha * a @ b + beta * c``."""
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError("expected 2-D matrices")
    for name, array in (("b", b), ("c", c)):
        if array is not None and not array.flags.f_contiguous:
            raise ValueError(f"expected F-contiguous array for {name}")
    _require_sparse(a)
    left, right = (a.T if transa else a), (b.T if transb else b)
    if left.shape[1] != right.shape[0]:
        raise ValueError("dimension mismatch")
    _require_canonical(a=a)
    return _accumulated(left @ right, c, alpha, beta, a.nnz == 0)


@define(f"{_PREFIX}.spmv")
def spmv(a: Any, x: Array, y: Array | None = None, alpha: Any = 1, beta: Any = 0, transa: bool = False) -> Array:
    """Return ``alpha * a @ x + beta * y``."""
    _require_sparse(a)
    left = a.T if transa else a
    if left.shape[1] != len(x):
        raise ValueError("dimension mismatch")
    _require_canonical(a=a)
    return _accumulated(left @ x, y, alpha, beta, a.nnz == 0)


def _accumulated(product: Array, out: Array | None, alpha: object, beta: object, is_empty: bool) -> Array:
    """Return ``alpha * product + beta * out`` in ``out``, which may be of a narrower type: then in a new array."""
    if out is not None and out.shape != product.shape:
        raise ValueError("dimension mismatch")
    if out is None:
        return np.asfortranarray((alpha * product).astype(product.dtype))
    dtype = np.promote_types(product.dtype, out.dtype)
    target = out if out.dtype == dtype else np.empty(out.shape, dtype, order="F")
    target[...] = 0 if is_empty else alpha * product + beta * out
    return target


@define(f"{_PREFIX}.spgemm")
def spgemm(a: Any, b: Any, alpha: Any = 1) -> Any:
    """Return ``alpha * a @ b``."""
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError("expected 2-D matrices")
    _require_csr(a, b)
    _require_canonical(a=a, b=b)
    if a.shape[1] != b.shape[0]:
        raise ValueError("mismatched shape")
    return adopt(_scaled(a @ b, alpha))


@define(f"{_PREFIX}.csrgeam2", f"{_PREFIX}.spgeam")
def csrgeam2(a: Any, b: Any, alpha: object = 1, beta: object = 1) -> Any:
    """Return ``alpha * a + beta * b``."""
    _require_csr(a, b)
    _require_canonical(a=a, b=b)
    if a.shape != b.shape:
        raise ValueError("inconsistent shapes")
    return adopt(_scaled(a, alpha) + _scaled(b, beta))


def _scaled(a: Any, factor: Any) -> Any:
    made = a.copy()
    made.data = np.multiply(made.data, factor).astype(made.dtype)
    return made


@define(f"{_PREFIX}.spsm")
def spsm(
    a: Any, b: Array, alpha: Any = 1.0, lower: bool = True, unit_diag: bool = False, transa: bool | str = False
) -> Array:
    """Return the solution of ``op(a) @ x = alpha * b`` for a triangle of ``a``; what no number solves is nan."""
    op = ("T" if transa else "N") if isinstance(transa, bool) else transa
    if op not in ("N", "T", "H"):
        raise ValueError(f"Unknown transa (actual: {transa})")
    _check_triangle(a, b)
    for name, flag in (("lower", lower), ("unit_diag", unit_diag)):
        if not isinstance(flag, bool):
            raise ValueError(f"Unknown {name} (actual: {flag})")
    triangle = (scipy.sparse.tril if lower else scipy.sparse.triu)(a)
    triangle = triangle if op == "N" else triangle.T if op == "T" else triangle.T.conj()
    right = np.asarray(alpha * b, a.dtype)
    try:
        found = scipy.sparse.linalg.spsolve_triangular(
            triangle.tocsr(), right, lower=lower == (op == "N"), unit_diagonal=unit_diag
        )
    except LinAlgError:
        found = np.full(b.shape, np.nan)
    return np.asfortranarray(found, a.dtype)


def _check_triangle(a: Any, b: Array) -> None:
    if not (scipy.sparse.issparse(a) and a.format in ("csr", "csc", "coo")):
        raise ValueError("a must be CSR, CSC or COO sparse matrix")
    _require_canonical(a=a)
    if b.ndim not in (1, 2):
        raise ValueError("b.ndim must be 1 or 2")
    if not a.shape[0] == a.shape[1] == b.shape[0]:
        raise ValueError("mismatched shape")
    if a.dtype.char not in "fdFD":
        raise TypeError(f"Invalid dtype (actual: {a.dtype})")
    if a.dtype != b.dtype:
        raise TypeError("dtype mismatch")


@define(f"{_PREFIX}.csrilu02")
def csrilu02(a: Any, level_info: bool = False) -> None:
    """Replace ``a`` by its incomplete LU factors, which have elements only where ``a`` has some.

    Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., algorithm 10.4 (ILU(0), IKJ variant).
    """
    if not (scipy.sparse.issparse(a) and a.format == "csr"):
        raise TypeError("a must be CSR sparse matrix")
    if a.shape[0] != a.shape[1]:
        raise ValueError(f"invalid shape (a.shape: {a.shape})")
    if a.indices.dtype == np.int64:
        raise ValueError("csrilu02 does not support int64 indices (cuSPARSE csrilu02 is int32-only)")
    if not isinstance(level_info, bool):
        raise ValueError(f"Unknown level_info (actual: {level_info})")
    if a.dtype.char not in "fdFD":
        raise TypeError(f"Invalid dtype (actual: {a.dtype})")
    a.sort_indices()
    _factorise_in_place(a.data, a.indices, a.indptr, _diagonal(a))


def _diagonal(a: Any) -> Array:
    """Return where in ``a.data`` its diagonal is."""
    rows = np.repeat(np.arange(a.shape[0]), np.diff(a.indptr))
    places = np.flatnonzero(rows == a.indices)
    missing = np.setdiff1d(np.arange(a.shape[0]), a.indices[places])
    if missing.size:
        raise ValueError(f"a({missing[0]},{missing[0]}) is missing")
    return places


def _factorise_in_place(data: Array, indices: Array, indptr: Array, diagonal: Array) -> None:
    for i in range(len(diagonal)):
        row = slice(indptr[i], indptr[i + 1])
        columns = indices[row]
        for place in range(indptr[i], diagonal[i]):
            k = indices[place]
            data[place] /= data[diagonal[k]]
            upper = slice(diagonal[k] + 1, indptr[k + 1])
            _, ours, theirs = np.intersect1d(columns, indices[upper], assume_unique=True, return_indices=True)
            data[indptr[i] + ours] -= data[place] * data[upper][theirs]
        if data[diagonal[i]] == 0:
            raise ValueError(f"u({i},{i}) is zero")
