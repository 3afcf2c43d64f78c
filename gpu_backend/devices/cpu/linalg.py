"""``cupy.linalg`` on LAPACK. A matrix without an answer gives NaN, unless ``cupyx.errstate`` says raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import DTypeLike

from gpu_backend.devices.cpu.arrays import Array, DType
from gpu_backend.devices.cpu.error_state import linalg_raises
from gpu_backend.devices.cpu.table import define, define_value

define_value(LinAlgError, "cupy.linalg.LinAlgError")

#: What these return is declared for each mode by itself, and a caller says which one.
_qr: Callable[..., Any] = np.linalg.qr
_svd: Callable[..., Any] = np.linalg.svd


def require_arrays(*arrays: object) -> None:
    """Raise ``LinAlgError`` unless all are arrays."""
    for a in arrays:
        if not isinstance(a, np.ndarray):
            raise LinAlgError("cupy.linalg only supports cupy.ndarray")


def require_stacked(*arrays: Array, square: bool = False) -> None:
    """Raise ``LinAlgError`` unless all are matrices, or stacks of them."""
    for a in arrays:
        if a.ndim < 2:
            raise LinAlgError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
        if square and a.shape[-1] != a.shape[-2]:
            raise LinAlgError("Last 2 dimensions of the array must be square")


def _require_sides(a: Array) -> None:
    """Refuse what is no matrix in the words of a CuPy that asks for its two sides without looking."""
    if a.ndim < 2:
        raise ValueError(f"not enough values to unpack (expected 2, got {a.ndim})")


def computing_dtype(*arrays: Array) -> DType:
    """Return in which dtype arrays are computed with; float16 is refused."""
    if any(a.dtype == np.float16 for a in arrays):
        raise TypeError("float16 is unsupported in linalg")
    return np.result_type(*(a.dtype if a.dtype.kind in "fc" else np.dtype(float) for a in arrays))


def each_matrix(a: Array, function: Callable[[Array], Array], failed: Array) -> Array:
    """Return ``function`` of each matrix of the stack ``a``, ``failed`` where LAPACK finds no answer.

    Raises
    ------
    LinAlgError
        If there is no answer and ``cupyx.errstate(linalg="raise")`` holds.
    """
    try:
        return function(a)
    except LinAlgError:
        if linalg_raises():
            raise
    if a.ndim == 2:
        return failed
    flat = a.reshape(-1, *a.shape[-2:])
    return np.stack([each_matrix(m, function, failed) for m in flat]).reshape(*a.shape[:-2], *failed.shape)


def _nan(shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    return np.full(shape, np.nan, dtype)


@define("cupy.linalg.inv")
def inv(a: object) -> Array:
    return _each_square(a, np.linalg.inv)


def _each_square(a: Any, function: Callable[[Array], Array]) -> Array:
    require_arrays(a)
    require_stacked(a, square=True)
    dtype = computing_dtype(a)
    if not a.size:
        return np.empty(a.shape, dtype)
    return each_matrix(a.astype(dtype), function, _nan(a.shape[-2:], dtype))


@define("cupy.linalg.solve")
def solve(a: Any, b: Any) -> Array:
    require_arrays(a, b)
    require_stacked(a, square=True)
    if b.ndim == 0:
        raise ValueError("b must have at least one dimension")
    vector = b.ndim == 1
    if vector:
        if a.shape[-1] != b.size:
            raise ValueError("a must have (..., M, M) shape and b must have (M,) for one-dimensional b")
        b = np.broadcast_to(b, a.shape[:-1])[..., None]
    elif a.shape[:-1] != b.shape[:-1]:
        raise ValueError("a must have (..., M, M) shape and b must have (..., M, K) for multidimensional b")
    dtype = computing_dtype(a, b)
    if a.size and not b.size:
        each_matrix(a.astype(dtype), np.linalg.inv, _nan(a.shape[-2:], dtype))  # singular ones are errors
    if not a.size or not b.size:
        return np.empty(b.shape[:-1] if vector else b.shape, dtype)
    joined = np.concatenate([a.astype(dtype), b.astype(dtype)], axis=-1)
    n = a.shape[-1]
    result = each_matrix(joined, lambda m: np.linalg.solve(m[..., :n], m[..., n:]), _nan(b.shape[-2:], dtype))
    result = result[..., 0] if vector else result
    return np.asfortranarray(result) if result.ndim == 2 and a.ndim == 2 else result  # as LAPACK leaves it


@define("cupy.linalg.tensorsolve")
def tensorsolve(a: Array, b: Array, axes: Any = None) -> Array:
    if axes is not None:
        order = [axis for axis in range(a.ndim) if axis not in axes] + list(axes)
        a = a.transpose(order)
    shape = a.shape[-(a.ndim - b.ndim) :]
    return solve(a.reshape(-1, int(np.prod(shape))), b.ravel()).reshape(shape)


@define("cupy.linalg.tensorinv")
def tensorinv(a: Any, ind: int = 2) -> Array:
    require_arrays(a)
    if ind <= 0:
        raise ValueError("Invalid ind argument")
    inner = int(np.prod(a.shape[ind:]))
    return inv(a.reshape(inner, -1)).reshape(a.shape[ind:] + a.shape[:ind])


@define("cupy.linalg.cholesky")
def cholesky(a: object) -> Array:
    return _each_square(a, np.linalg.cholesky)


@define("cupy.linalg.qr")
def qr(a: Any, mode: str = "reduced") -> Any:
    require_arrays(a)
    if mode not in ("reduced", "complete", "r", "raw"):
        if mode in ("f", "full", "e", "economic"):
            raise ValueError(f"The deprecated mode '{mode}' is not supported")
        raise ValueError(f"Unrecognized mode '{mode}'")
    _require_sides(a)
    dtype = computing_dtype(a)
    if a.ndim > 2 and mode == "raw":
        raise NotImplementedError("batched 'raw' mode is not supported")
    return _qr(a.astype(dtype), mode)


@define("cupy.linalg.svd")
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    require_arrays(a)
    _require_sides(a)
    dtype = computing_dtype(a)
    work = a.astype(dtype)
    try:
        return _svd(work, full_matrices, compute_uv)
    except LinAlgError:  # NaN among the elements
        if linalg_raises():
            raise
    shapes = _svd(np.zeros_like(work), full_matrices, compute_uv)
    if not compute_uv:
        return _nan(shapes.shape, shapes.dtype)
    return tuple(_nan(part.shape, part.dtype) for part in shapes)


def _real(dtype: DType) -> DType:
    return np.dtype(dtype.char.lower())


def _hermitian(a: Any, UPLO: str) -> tuple[Array, DType]:
    require_arrays(a)
    if UPLO not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    require_stacked(a, square=True)
    if a.dtype == np.float16:  # taken here and nowhere else
        return a.astype(np.float32), a.dtype
    dtype = computing_dtype(a)
    return a.astype(dtype), dtype


@define("cupy.linalg.eigh")
def eigh(a: object, UPLO: str = "L") -> tuple[Array, Array]:
    work, dtype = _hermitian(a, UPLO)
    if not work.size:
        return np.empty(work.shape[:-1], _real(dtype)), np.empty(work.shape, dtype)
    try:
        values, vectors = np.linalg.eigh(work, "L" if UPLO == "L" else "U")
    except LinAlgError:
        if linalg_raises():
            raise
        return _nan(work.shape[:-1], _real(dtype)), _nan(work.shape, dtype)
    return values.astype(_real(dtype), copy=False), vectors.astype(dtype, copy=False)


@define("cupy.linalg.eigvalsh")
def eigvalsh(a: object, UPLO: str = "L") -> Array:
    return eigh(a, UPLO)[0]


def _general(a: Any) -> tuple[Array, DType]:
    require_arrays(a)
    require_stacked(a, square=True)
    dtype = computing_dtype(a)
    return a.astype(dtype), np.result_type(dtype, np.complex64)


@define("cupy.linalg.eig")
def eig(a: object) -> tuple[Array, Array]:
    work, dtype = _general(a)
    if not work.size:
        return np.empty(work.shape[:-1], work.dtype), np.empty_like(work)
    values, vectors = np.linalg.eig(work)
    return values.astype(dtype), vectors.astype(dtype)


@define("cupy.linalg.eigvals")
def eigvals(a: object) -> Array:
    work, dtype = _general(a)
    if not work.size:
        return np.empty(work.shape[:-1], work.dtype)
    return np.linalg.eigvals(work).astype(dtype)


@define("cupy.linalg.slogdet")
def slogdet(a: Any) -> tuple[Array, Array]:
    require_stacked(a, square=True)
    sign, logdet = np.linalg.slogdet(a.astype(computing_dtype(a)))
    return np.asarray(sign), np.asarray(logdet)


@define("cupy.linalg.det")
def det(a: object) -> Array:
    sign, logdet = slogdet(a)
    return sign * np.exp(logdet)


@define("cupy.linalg.matrix_rank")
def matrix_rank(M: Array, tol: object = None) -> Array:
    if M.ndim < 2:
        made: Array = (M != 0).any().astype(int)
        return made
    values = svd(M, compute_uv=False)
    if tol is None:
        tol = values.max(axis=-1, keepdims=True) * max(M.shape[-2:]) * np.finfo(values.dtype).eps
    result: Array = (values > tol).sum(axis=-1, dtype=np.intp)
    return result


@define("cupy.linalg.pinv")
def pinv(a: Any, rcond: Any = 1e-15) -> Array:
    require_arrays(a)
    if not a.size:
        return np.empty(a.shape[:-2] + a.shape[:-3:-1], a.dtype if 0 in a.shape[-2:] else computing_dtype(a))
    u, s, vt = svd(a.conj(), full_matrices=False)
    small = s <= (rcond * s.max(axis=-1))[..., None]
    inverse = np.where(small, 0, 1 / np.where(small, 1, s)).astype(s.dtype)
    made: Array = np.matmul(vt.swapaxes(-2, -1), inverse[..., None] * u.swapaxes(-2, -1))
    return made


@define("cupy.linalg.lstsq")
def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Array, Array, Array, Array]:
    require_arrays(a, b)
    if a.ndim != 2:
        raise LinAlgError(f"{a.ndim}-dimensional array given. Array must be two-dimensional")
    if b.ndim > 2:
        raise LinAlgError(f"{b.ndim}-dimensional array given. Array must be at most two-dimensional")
    m, n = a.shape
    if m != b.shape[0]:
        raise LinAlgError("Incompatible dimensions")
    u, s, vh = svd(a, full_matrices=False)
    eps = np.finfo(s.dtype).eps
    rcond = eps * max(m, n) if rcond is None else eps if rcond <= 0 or rcond >= 1 else rcond
    small = s <= rcond * s.max(initial=0)
    inverse = np.where(small, 0, 1 / np.where(small, 1, s)).astype(s.dtype)
    rank = np.array(s.size - small.sum(), np.int32)
    x = vh.T.conj() @ ((b.T @ u.conj()) * inverse).T
    if m <= n or rank != n:
        residuals = np.empty((0,), s.dtype)
    else:
        e = b - a @ x
        residuals = np.atleast_1d((np.abs(e) ** 2).sum(axis=0))
    return x, residuals, rank, s


@define("cupy.linalg.norm")
def norm(x: Array, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    if x.dtype.kind not in "fc":
        x = x.astype(float)
    if isinstance(axis, tuple) and len(axis) == 2:
        _check_matrix_axes(axis, x)
    if x.ndim > 2 and axis is None and ord is not None:
        raise ValueError("Improper number of dimensions to norm.")
    wide = x.astype(np.float32) if x.dtype.char == "e" else x
    result = np.asarray(np.linalg.norm(wide, ord, axis, keepdims))
    return result.astype(_real(x.dtype)) if x.dtype.char == "e" else result


def _check_matrix_axes(axis: tuple[int, int], x: Array) -> None:
    row, column = (a + x.ndim if a < 0 else a for a in axis)
    if not (0 <= row < x.ndim and 0 <= column < x.ndim):
        raise ValueError(f"Invalid axis {axis!r} for an array with shape {x.shape!r}")
    if row == column:
        raise ValueError("Duplicate axes given.")


@define("cupy.linalg.cond")
def cond(x: object, p: object = None) -> Array:
    x = np.asarray(x)
    if not x.size:
        raise LinAlgError("cond is not defined on empty arrays")
    if p is None or p in (2, -2):
        s = svd(x, compute_uv=False)
        result = np.asarray(s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1])
    else:
        require_stacked(x, square=True)
        dtype = computing_dtype(x)
        inverse = each_matrix(x.astype(dtype), np.linalg.inv, _nan(x.shape[-2:], dtype))
        result = np.asarray(norm(x, p, (-2, -1)) * norm(inverse, p, (-2, -1)))
    lost = np.isnan(result) & ~np.isnan(x).any(axis=(-2, -1))
    return np.where(lost, np.inf, result).astype(result.dtype)


@define("cupy.linalg.matrix_power")
def matrix_power(M: Any, n: int) -> Array:
    require_arrays(M)
    require_stacked(M, square=True)
    if not isinstance(n, int):
        raise TypeError("exponent must be an integer")
    if n < 0:
        return np.linalg.matrix_power(inv(M), -n)
    return np.linalg.matrix_power(M, n)
