"""``cupyx.lapack``, ``cupyx.linalg`` and what programs ask of cuSOLVER and cuBLAS before they use them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.linalg import computing_dtype, each_matrix, require_arrays, require_stacked
from gpu_backend.devices.cpu.table import define, define_value

#: What cuSOLVER can be asked for by name; all of it is here.
_SOLVERS = frozenset(
    {
        "gesvdj", "gesvdjBatched", "gesvda", "potrfBatched", "potrsBatched", "syevj", "syevjBatched", "gesv", "gels",
        "csrlsvqr", "geev",
    }
)  # fmt: skip
#: cuBLAS solves batches of matrices up to this order in one go; remembered because programs set it.
_limits = {"batched_gesv": 256}


@define("cupyx.cusolver.check_availability")
def check_availability(name: str) -> bool:
    if name not in _SOLVERS:
        raise ValueError(f"No available version information specified for {name}")
    return True


def get_batched_gesv_limit() -> int:
    """Return the order up to which cuBLAS would solve in batches."""
    return _limits["batched_gesv"]


def set_batched_gesv_limit(limit: int) -> None:
    """Set what `get_batched_gesv_limit` returns."""
    _limits["batched_gesv"] = limit


define_value(get_batched_gesv_limit, "cupy.cublas.get_batched_gesv_limit")
define_value(set_batched_gesv_limit, "cupy.cublas.set_batched_gesv_limit")


@define("cupyx.lapack.gesv")
def gesv(a: Array, b: Array) -> None:
    """Solve ``a @ x = b`` in place: ``b`` becomes the solution."""
    _require_system(a, b, is_square=True)
    if a.dtype != b.dtype:
        raise TypeError(f"dtype mismatch (a: {a.dtype}, b: {b.dtype})")
    if a.dtype.char not in "fdFD":
        raise TypeError(f"unsupported dtype (actual:{a.dtype})")
    if not a.flags.f_contiguous and not a.flags.c_contiguous:
        raise ValueError("a must be F-contiguous or C-contiguous.")
    if not b.flags.f_contiguous:
        raise ValueError("b must be F-contiguous.")
    b[...] = each_matrix(a, lambda matrix: np.linalg.solve(matrix, b), np.full(b.shape, np.nan, b.dtype))


@define("cupyx.lapack.gels")
def gels(a: Array, b: Array) -> Array:
    """Return the least-squares solution, or that of least norm, of ``a @ x = b``."""
    _require_system(a, b)
    if a.dtype != b.dtype:
        raise ValueError(f"dtype mismatch (a: {a.dtype}, b: {b.dtype}).")
    if a.dtype.char not in "fdFD":
        raise ValueError(f"unsupported dtype (actual: {a.dtype})")
    return np.linalg.lstsq(a, b, rcond=None)[0].astype(a.dtype)


def _require_system(a: Array, b: Array, is_square: bool = False) -> None:
    """Refuse what is no system of equations ``a @ x = b``."""
    if a.ndim != 2:
        raise ValueError(f"a.ndim must be 2 (actual: {a.ndim})")
    if b.ndim not in (1, 2):
        raise ValueError(f"b.ndim must be 1 or 2 (actual: {b.ndim})")
    if is_square and a.shape[0] != a.shape[1]:
        raise ValueError("a must be a square matrix.")
    if a.shape[0] != b.shape[0]:
        raise ValueError(f"shape mismatch (a: {a.shape}, b: {b.shape}).")


@define("cupyx.lapack.posv")
def posv(a: Any, b: Any) -> Array:
    """Return the solution of ``a @ x = b``, of positive definite matrices, by Cholesky's factors."""
    require_arrays(a, b)
    require_stacked(a, square=True)
    dtype = computing_dtype(a, b)
    a, b = a.astype(dtype), b.astype(dtype)
    if a.ndim == 2 and b.shape[0] != a.shape[0]:
        raise ValueError(f"Unmatched shapes: {a.shape}, {b.shape}")
    factor = each_matrix(a, np.linalg.cholesky, np.full(a.shape[-2:], np.nan, dtype))
    return _substituted(factor, b, lower=True)


@define("cupyx.lapack.potrs")
def potrs(L: Any, b: Any, lower: bool) -> Array:
    """Return the solution for a matrix of which ``L`` is Cholesky's factor; only its triangle is looked at."""
    require_arrays(L, b)
    require_stacked(L, square=True)
    dtype = computing_dtype(L, b)
    return _substituted(L.astype(dtype), b.astype(dtype), lower)


def _substituted(factor: Array, b: Array, lower: bool) -> Array:
    """Solve by forward and backward substitution, matrix by matrix; other triangles may hold anything."""
    vectors = b.ndim == factor.ndim - 1
    right = b[..., np.newaxis] if vectors else b
    solved = np.empty_like(right, order="C")
    for place in np.ndindex(factor.shape[:-2]):
        solved[place] = scipy.linalg.cho_solve((factor[place], lower), right[place], check_finite=False)
    return solved[..., 0] if vectors else solved


@define("cupyx.linalg.invh")
def invh(a: Any) -> Array:
    """Return the inverse of a hermitian, positive definite matrix."""
    require_arrays(a)
    if a.ndim != 2:
        raise np.linalg.LinAlgError(f"{a.ndim}-dimensional array given. Array must be two-dimensional")
    require_stacked(a, square=True)
    return posv(a, np.eye(a.shape[-1], dtype=computing_dtype(a)))


@define("cupyx.linalg.cho_solve")
def cho_solve(c_and_lower: tuple[Array, bool], b: Array, overwrite_b: bool = False, check_finite: bool = True) -> Array:
    """Return the solution for a matrix of which Cholesky's factor is given."""
    factor, lower = c_and_lower
    if check_finite:
        strict = np.tril_indices(factor.shape[-1], -1) if lower else np.triu_indices(factor.shape[-1], 1)
        if not (np.isfinite(factor[(..., *strict)]).all() and np.isfinite(b).all()):
            raise ValueError("Input array contains NaN or infinity.")
    return potrs(factor, b, lower)
