"""Solvers and eigenvalues of ``cupyx.scipy.sparse.linalg``: SciPy's, with what CuPy checks before it begins."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from numpy.linalg import LinAlgError

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.random_functions import get_random_state
from gpu_backend.devices.cpu.scipy_functions import with_parameters_of
from gpu_backend.devices.cpu.table import define
from gpu_backend.opstream.surface import Function, load

_PREFIX = "cupyx.scipy.sparse.linalg"


def _scipys(name: str) -> Callable[..., Any]:
    entry = load().resolved(f"{_PREFIX}.{name}")
    assert isinstance(entry, Function)
    return with_parameters_of(entry, getattr(scipy.sparse.linalg, name))


def _require_floating(a: Any) -> None:
    if a.dtype is not None and np.dtype(a.dtype).char not in "fdFD":
        raise TypeError(f"unsupported dtype (actual: {a.dtype})")


def _require_square(a: Any) -> None:
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ValueError(f"expected square matrix (shape: {a.shape})")
    _require_floating(a)


def _with_square_system(function: Callable[..., object]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(A: object, b: Array, *args: object, **kwargs: object) -> Any:
        _require_square(A)
        return function(A, b, *args, **kwargs)

    return call


for _name in ("cg", "cgs", "gmres"):
    define(f"{_PREFIX}.{_name}")(_with_square_system(_scipys(_name)))


@define(f"{_PREFIX}.eigsh")
def eigsh(
    a: Any, k: int = 6, *, which: str = "LM", v0: Array | None = None, ncv: int | None = None,
    maxiter: int | None = None, tol: float = 0, return_eigenvectors: bool = True,
) -> Any:  # fmt: skip
    """Return the eigenvalues of a Hermitian matrix that are largest, or smallest, and their vectors."""
    _require_square(a)
    n = a.shape[0]
    if not 0 < k < n:
        raise ValueError(f"k must be greater than 0 and smaller than n (actual: {k})")
    if which not in ("LM", "LA", "SA"):
        raise ValueError(f"which must be 'LM','LA'or'SA' (actual: {which})")
    vectors = min(max(2 * k, k + 32) if ncv is None else max(ncv, k + 2), n - 1)
    if maxiter is not None and maxiter <= vectors:  # CuPy counts vectors, and these it makes in any case
        w, x = _from_one_sweep(a, k, which, v0, vectors)
    else:
        w, x = scipy.sparse.linalg.eigsh(a, k, which=which, v0=v0, ncv=ncv and vectors, maxiter=maxiter, tol=tol)
    order = np.argsort(w)
    return (w[order], x[:, order]) if return_eigenvectors else w[order]


def _from_one_sweep(a: Any, k: int, which: str, v0: Array | None, vectors: int) -> tuple[Array, Array]:
    """Return the Ritz values and vectors of ``vectors`` steps of Lanczos, each made orthogonal to all before it."""
    start = get_random_state().rand(a.shape[0]) if v0 is None else v0
    basis = np.zeros((a.shape[0], vectors), a.dtype)
    basis[:, 0] = start / np.linalg.norm(start)
    for i in range(1, vectors):
        u = a @ basis[:, i - 1]
        for _ in range(2):
            u = u - basis[:, :i] @ (basis[:, :i].conj().T @ u)
        length = np.linalg.norm(u)
        if length <= np.finfo(a.dtype).eps:  # an invariant subspace: its values are exact
            basis = basis[:, : max(i, k)]
            break
        basis[:, i] = u / length
    w, s = np.linalg.eigh(basis.conj().T @ (a @ basis))
    chosen = np.argsort(np.abs(w) if which == "LM" else w)
    chosen = chosen[:k] if which == "SA" else chosen[-k:]
    return w[chosen], basis @ s[:, chosen]


@define(f"{_PREFIX}.svds")
def svds(
    a: Any, k: int = 6, *, ncv: int | None = None, tol: float = 0, which: str = "LM", maxiter: int | None = None,
    return_singular_vectors: bool = True,
) -> Any:  # fmt: skip
    """Return the largest singular values of a matrix and their vectors."""
    if a.ndim != 2:
        raise ValueError(f"expected 2D (shape: {a.shape})")
    _require_floating(a)
    if not 0 < k < min(a.shape):
        raise ValueError(f"k must be greater than 0 and smaller than min(m, n) (actual: {k})")
    if which != "LM":
        raise ValueError(f"which must be 'LM' (actual: {which})")
    return _scipys("svds")(
        a, k, ncv=ncv, tol=tol, which=which, maxiter=maxiter, return_singular_vectors=return_singular_vectors
    )


@define(f"{_PREFIX}.lsqr")
def lsqr(A: Any, b: Array) -> tuple[Any, ...]:
    """Return the solution, in double precision, and, as CuPy does, None for what it does not compute."""
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise LinAlgError("Last 2 dimensions of the array must be square")
    if b.ndim != 1 or len(b) != A.shape[0]:
        raise ValueError("b must be 1-d array whose size is same as A")
    return (csrlsvqr(scipy.sparse.csr_matrix(A), b).astype(np.float64), *(None,) * 9)


@define("cupyx.cusolver.csrlsvqr")
def csrlsvqr(A: Any, b: Array, tol: float = 0, reorder: int = 1) -> Array:
    """Return the solution of a square system; ``tol`` and ``reorder`` say how a GPU would go about it."""
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"invalid shape (A.shape: {A.shape})")
    if A.shape[0] != b.shape[0]:
        raise ValueError(f"invalid shape (b.shape: {b.shape})")
    made: Array = scipy.sparse.linalg.spsolve(scipy.sparse.csc_matrix(A), b)
    return made
