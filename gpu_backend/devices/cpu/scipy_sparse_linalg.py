"""``cupyx.scipy.sparse.linalg`` on SciPy's."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from gpu_backend.devices.cpu.arrays import Array, in_c_order
from gpu_backend.devices.cpu.scipy_functions import define_scipy
from gpu_backend.devices.cpu.scipy_objects import define_class
from gpu_backend.devices.cpu.scipy_sparse import adopt
from gpu_backend.devices.cpu.table import define, define_value

_PREFIX = "cupyx.scipy.sparse.linalg"

#: What is written here or in the module of solvers.
_WRITTEN = (
    "cg", "cgs", "eigsh", "factorized", "gmres", "lsqr", "matrix_power", "spilu", "splu", "spsolve", "svds",
)  # fmt: skip

define_scipy(_PREFIX, scipy.sparse.linalg, without=_WRITTEN)
define_value(scipy.sparse.linalg.LinearOperator, f"{_PREFIX}.LinearOperator")


@define(f"{_PREFIX}.spsolve")
def spsolve(A: Any, b: Any) -> Any:
    if not scipy.sparse.issparse(A):
        raise TypeError("A must be cupyx.scipy.sparse.spmatrix or cupyx.scipy.sparse.sparray")
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"matrix must be square (invalid shape: {A.shape})")
    if A.shape[0] != b.shape[0]:
        raise ValueError(f"matrix dimension mismatch (A: {A.shape}, b: {b.shape})")
    return adopt(scipy.sparse.linalg.spsolve(A.tocsc(), b))


@define("cupyx.linalg.sparse.lschol")
def lschol(A: Any, b: Array) -> Array:
    """Return the solution for a symmetric positive definite matrix; always in double precision, as CuPy's."""
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    if b.ndim != 1 or len(b) != A.shape[0]:
        raise ValueError("b must be 1-d array whose size is same as A")
    made: Array = scipy.sparse.linalg.spsolve(scipy.sparse.csc_matrix(A), b).astype(np.float64)
    return made


@define(f"{_PREFIX}.matrix_power")
def matrix_power(A: Any, power: int) -> Any:
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise TypeError("sparse matrix is not square")
    try:
        power = operator.index(power)
    except TypeError:
        raise ValueError("exponent must be an integer") from None
    if power < 0:
        raise ValueError("exponent must be >= 0")
    return adopt(scipy.sparse.linalg.matrix_power(A, power))


class SuperLU:
    """A factorisation that solves."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.shape, self.nnz = inner.shape, inner.nnz
        self.perm_r, self.perm_c = inner.perm_r, inner.perm_c
        self.L, self.U = adopt(inner.L.tocsr()), adopt(inner.U.tocsr())

    def solve(self, rhs: Array, trans: str = "N") -> Array:
        """Return the solution for the right-hand sides ``rhs``."""
        if rhs.shape[0] != self.shape[0]:
            raise ValueError(f"matrix dimension mismatch (self.shape: {self.shape}, rhs.shape: {rhs.shape})")
        if trans not in ("N", "T", "H"):
            raise ValueError(f"unknown trans: {trans}")
        made: Array = self._inner.solve(in_c_order(rhs), trans)
        return made


_SuperLU = define_class(SuperLU, f"{_PREFIX}.SuperLU", module="cupyx.scipy.sparse.linalg._solve")


def _factorised(name: str) -> Any:
    def factorise(A: Any, **options: Any) -> Any:
        if not scipy.sparse.issparse(A):
            raise TypeError("A must be cupyx.scipy.sparse.spmatrix or cupyx.scipy.sparse.sparray")
        if A.shape[0] != A.shape[1]:
            raise ValueError(f"A must be a square matrix (A.shape: {A.shape})")
        if A.dtype.char not in "fdFD":
            raise TypeError(f"Invalid dtype (actual: {A.dtype})")
        options = {key: value for key, value in options.items() if value not in (None, {})}
        return _SuperLU(getattr(scipy.sparse.linalg, name)(A.tocsc(), **options))

    factorise.__name__ = name
    return factorise


splu = _factorised("splu")
define(f"{_PREFIX}.splu")(splu)
define(f"{_PREFIX}.spilu")(_factorised("spilu"))


@define(f"{_PREFIX}.factorized")
def factorized(A: object) -> Any:
    return splu(A).solve
