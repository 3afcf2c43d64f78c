"""Rules of cupy.linalg. They hold while errors of the solvers are ignored, which is CuPy's default."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from gpu_backend.opstream.layout import DType
from gpu_backend.opstream.proof import linalg_stacked, reductions, windows
from gpu_backend.opstream.proof import reduction as kinds
from gpu_backend.opstream.proof.arguments import BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, INT64, as_index
from gpu_backend.opstream.proof.outcome import CannotProve, refusal
from gpu_backend.opstream.proof.products import dot, matmul
from gpu_backend.opstream.proof.promotion import result_type
from gpu_backend.opstream.proof.reduction import reduce
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.shadow import Shadow, array, like, new, ufunc


def common_type(*operands: Shadow, reject_half: bool = True) -> tuple[DType, DType]:
    """Return the dtype in which CuPy computes and the dtype of its result."""
    if reject_half and any(operand.dtype == FLOAT16 for operand in operands):
        raise refusal(TypeError, "float16 is unsupported in linalg")
    made = result_type(*[operand.dtype if operand.dtype.kind in "fc" else FLOAT64 for operand in operands])
    return (FLOAT32 if made == FLOAT16 else made), made


def real_of(dtype: DType) -> DType:
    """Return the dtype of the real part."""
    return np.dtype(dtype.char.lower())


def _stacked_square(a: Any) -> Shadow:
    given = _stacked(a)
    if given.shape[-1] != given.shape[-2]:
        raise refusal(LinAlgError, "Last 2 dimensions of the array must be square")
    return given


def _stacked(a: Any) -> Shadow:
    given = array(a)
    if given.ndim < 2:
        words = f"{given.ndim}-dimensional array given. Array must be at least two-dimensional"
        raise refusal(LinAlgError, words)
    return given


@rule("cupy.linalg.cholesky")
def cholesky(a: Any) -> Shadow:
    """As CuPy."""
    given = _stacked_square(a)
    return new(given.shape, common_type(given)[1])


@rule("cupy.linalg.inv")
def inv(a: Any) -> Shadow:
    """As CuPy."""
    given = _stacked_square(a)
    made = common_type(given)[1]
    if given.ndim > 2 or given.size == 0:
        return new(given.shape, made)
    return new(given.shape, made, "F" if given.layout.f_contiguous else "C")


@rule("cupy.linalg.tensorinv")
def tensorinv(a: Any, ind: Any = 2) -> Shadow:
    """As CuPy."""
    given, place = array(a), as_index(ind)
    if place <= 0:
        raise refusal(ValueError, "Invalid ind argument")
    if given.size == 0 or place >= given.ndim:
        raise CannotProve("an empty array")
    columns = int(np.prod(given.shape[place:]))
    return inv(given.reshape(columns, -1)).reshape((*given.shape[place:], *given.shape[:place]))


@rule("cupy.linalg.solve")
def solve(a: Any, b: Any) -> Shadow:
    """As CuPy."""
    given, right = _stacked_square(a), array(b)
    if right.ndim == 0:
        raise refusal(ValueError, "b must have at least one dimension")
    if right.ndim == 1:
        if given.shape[-1] != right.size:
            words = "a must have (..., M, M) shape and b must have (M,) for one-dimensional b"
            raise refusal(ValueError, words)
        right = right.window(windows.broadcast_to(right.layout, given.shape[:-1]))
    elif given.shape[:-1] != right.shape[:-1]:
        words = "a must have (..., M, M) shape and b must have (..., M, K) for multidimensional b"
        raise refusal(ValueError, words)
    if given.ndim > 2:
        return linalg_stacked.solve(given, right, common_type(given, right))
    made = common_type(given, right)[1]
    return new(right.shape, made, "C" if given.size == 0 else "F")


@rule("cupy.linalg.lstsq")
def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Shadow, ...]:
    """As CuPy, for matrices that are not higher than wide: those have no residuals, whatever their rank."""
    given, right = array(a), array(b)
    if given.ndim != 2 or right.ndim not in (1, 2) or given.size == 0 or right.size == 0:
        raise CannotProve("other than one matrix")
    if given.shape[0] != right.shape[0]:
        raise refusal(LinAlgError, "Incompatible dimensions")
    if given.shape[0] > given.shape[1]:
        raise CannotProve("whether there are residuals depends on the rank")
    if rcond is not None and type(rcond) is not float:
        raise CannotProve(f"a bound of {type(rcond).__name__}")
    u, values, vh = _svd(given, full=False)
    z = ufunc("multiply", dot(right.T, ufunc("conjugate", u)), ufunc("divide", 1, values)).T
    return dot(ufunc("conjugate", vh.T), z), new((0,), values.dtype), new((), INT32), values


@rule("cupy.linalg.tensorsolve")
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Shadow:
    """As CuPy, for all axes in their order."""
    given, right = array(a), array(b)
    if axes is not None or given.size == 0 or given.ndim <= right.ndim:
        raise CannotProve("axes in another order")
    shape = given.shape[-(given.ndim - right.ndim) :]
    return solve(given.reshape(-1, int(np.prod(shape))), right.ravel()).reshape(shape)


def _svd(a: Shadow, full: bool) -> tuple[Shadow, Shadow, Shadow]:
    """Return u, s and vh, as they lie after cuSOLVER has computed them."""
    compute, made = common_type(a)
    if a.ndim > 2:
        return linalg_stacked.svd(a, full, (compute, made), real_of(made))
    rows, columns = a.shape
    short = min(rows, columns)
    values = new((short,), real_of(made))
    if short == 0:
        outer = (rows, columns) if full else (0, 0)
        return new((rows, outer[0]), made), values, new((outer[1], columns), made)
    flipped = columns < rows
    n, m = (rows, columns) if not flipped else (columns, rows)
    work = new((n, m), compute)
    u = new((m, m), compute) if full else work
    vt = work[:, :n] if full else new((n, n), compute)
    u, vt = u.astype(made, copy=False), vt.astype(made, copy=False)
    return (u.transpose(), values, vt.transpose()) if flipped else (vt, values, u)


@rule("cupy.linalg.svd")
def svd(a: Any, full_matrices: Any = True, compute_uv: Any = True) -> Shadow | tuple[Shadow, ...]:
    """As CuPy."""
    given = array(a)
    if given.ndim < 2:
        raise CannotProve("no matrix")
    made = _svd(given, bool(full_matrices))
    return made if compute_uv else made[1]


@rule("cupy.linalg.pinv")
def pinv(a: Any, rcond: Any = 1e-15) -> Shadow:
    """As CuPy."""
    given = array(a)
    if given.ndim < 2 or not isinstance(rcond, float):
        raise CannotProve("no matrix, or a bound of another kind")
    if given.size == 0:
        raise CannotProve("an empty matrix")
    return new((*given.shape[:-2], given.shape[-1], given.shape[-2]), common_type(given)[1])


@rule("cupy.linalg.matrix_rank")
def matrix_rank(M: Any, tol: Any = None) -> Shadow:  # noqa: N803 (CuPy's name)
    """As CuPy."""
    given = array(M)
    if given.ndim < 2:
        return new((), INT64)
    if tol is not None or given.size == 0:
        raise CannotProve("a tolerance, or an empty matrix")
    common_type(given)
    return new(given.shape[:-2], INT64)


@rule("cupy.linalg.slogdet")
def slogdet(a: Any) -> tuple[Shadow, Shadow]:
    """As CuPy."""
    given = _stacked_square(a)
    made = common_type(given)[1]
    return new(given.shape[:-2], made), new(given.shape[:-2], real_of(made))


@rule("cupy.linalg.det")
def det(a: Any) -> Shadow:
    """As CuPy."""
    sign, logarithm = slogdet(a)
    return ufunc("multiply", sign, ufunc("exp", logarithm))


@rule("cupy.linalg.cond")
def cond(x: Any, p: Any = None) -> Shadow:
    """As CuPy, by singular values."""
    given = array(x)
    if given.size == 0:
        raise refusal(LinAlgError, "cond is not defined on empty arrays")
    if p not in (None, 2, -2) or given.ndim < 2:
        raise CannotProve("another norm, or no matrix")
    return new(given.shape[:-2], real_of(common_type(given)[1]))


def _eigh(a: Any, UPLO: Any) -> tuple[Shadow, Shadow]:  # noqa: N803 (CuPy's name)
    given = _stacked_square(a)
    compute, made = common_type(given, reject_half=given.size == 0)
    if given.size == 0:
        return new(given.shape[:-1], real_of(made)), new(given.shape, made)
    if UPLO not in ("L", "U"):
        raise refusal(ValueError, "UPLO argument must be 'L' or 'U'")
    if given.ndim > 2:
        return linalg_stacked.eigh(given, (compute, made), real_of(made))
    return new(given.shape[:-1], real_of(made)), Shadow(like(given.layout, compute, "F")).astype(made, copy=False)


@rule("cupy.linalg.eigh")
def eigh(a: Any, UPLO: Any = "L") -> tuple[Shadow, Shadow]:  # noqa: N803 (CuPy's name)
    """As CuPy."""
    return _eigh(a, UPLO)


@rule("cupy.linalg.eigvalsh")
def eigvalsh(a: Any, UPLO: Any = "L") -> Shadow:  # noqa: N803 (CuPy's name)
    """As CuPy."""
    return _eigh(a, UPLO)[0]


@rule("cupy.linalg.qr")
def qr(a: Any, mode: Any = "reduced") -> Shadow | tuple[Shadow, Shadow]:
    """As CuPy."""
    given = array(a)
    if given.ndim < 2 or mode not in ("reduced", "complete", "r", "raw"):
        raise CannotProve("no matrix, or an unknown mode")
    compute, made = common_type(given)
    if given.ndim > 2 or given.size == 0:
        return linalg_stacked.qr(given, mode, (compute, made))
    rows, columns = given.shape
    short = min(rows, columns)
    work = new((columns, rows), compute)
    if mode == "r":
        return work[:, :short].transpose().astype(made, copy=False)
    if mode == "raw":
        return work.astype(made, copy=False), new((short,), made)
    side = rows if mode == "complete" and rows > columns else short
    q = new((rows, rows) if side == rows and mode == "complete" and rows > columns else (columns, rows), compute)
    return (
        q[:side].transpose().astype(made, copy=False),
        work[:, :side].transpose().astype(made, copy=False),
    )


@rule("cupy.linalg.matrix_power")
def matrix_power(M: Any, n: Any) -> Shadow:  # noqa: N803 (CuPy's name)
    """As CuPy."""
    given = _stacked_square(M)
    if not isinstance(n, int) or isinstance(n, bool):
        raise CannotProve("an exponent that is no int")
    if n == 0:
        return Shadow(like(given.layout, given.dtype, "K"))
    if n < 0:
        given, n = inv(given), -n
    return given if n == 1 else matmul(given, given)


@rule("cupy.linalg.norm")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Shadow:
    """As CuPy."""
    given = array(x) if array(x).dtype.kind in "fc" else x.astype(float)
    if axis is None:
        whole = ord is None or (given.ndim == 1 and ord == 2) or (given.ndim == 2 and ord in ("f", "fro"))
        if whole:
            made = ufunc("sqrt", reductions.sum_(ufunc("absolute", given).ravel()))
            return made.reshape((1,) * given.ndim) if keepdims else made
        axis = tuple(range(given.ndim))
    axes = axis if isinstance(axis, tuple) else (as_index(axis),)
    if len(axes) == 1:
        return _vector_norm(given, ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(given, ord, axes, bool(keepdims))
    raise CannotProve("the norm of more than matrices")


def _vector_norm(x: Shadow, ord: Any, axes: tuple[int, ...], keepdims: Any) -> Shadow:
    absolute = ufunc("absolute", x)
    if ord == np.inf:
        return reductions.amax(absolute, axes, keepdims=keepdims)
    if ord == -np.inf:
        return reductions.amin(absolute, axes, keepdims=keepdims)
    if ord == 0:
        return reductions.sum_(Shadow(like(new(x.shape, BOOL).layout, absolute.dtype, "K")), axes, keepdims=keepdims)
    if ord == 1:
        return reductions.sum_(absolute, axes, keepdims=keepdims)
    if ord is None or ord == 2:
        return reduce(kinds.NORM_COMPLEX if x.dtype.kind == "c" else kinds.NORM, x, axes, None, None, keepdims)
    raise CannotProve("another order")


def _matrix_norm(x: Shadow, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Shadow:
    places = [as_index(axis) + x.ndim if as_index(axis) < 0 else as_index(axis) for axis in axes]
    if not all(0 <= place < x.ndim for place in places):
        raise refusal(ValueError, f"Invalid axis {axes!r} for an array with shape {x.shape!r}")
    if places[0] == places[1]:
        raise refusal(ValueError, "Duplicate axes given.")
    made = _norm_of_matrices(x, ord, places)
    if not keepdims:
        return made
    return made.reshape(tuple([1 if place in places else extent for place, extent in enumerate(x.shape)]))


def _norm_of_matrices(x: Shadow, ord: Any, places: list[int]) -> Shadow:
    if ord in (None, "fro", "f"):
        return reduce(kinds.NORM_COMPLEX if x.dtype.kind == "c" else kinds.NORM, x, tuple(places))
    if x.size == 0 or isinstance(ord, Shadow):
        raise CannotProve("an empty matrix, or an order that is an array")
    if ord in (2, -2, "nuc"):
        values = _svd(_with_last(x, places), full=False)[1]
        return reductions.sum_(values, -1) if ord == "nuc" else new(values.shape[:-1], values.dtype)
    if ord not in (1, -1, np.inf, -np.inf):
        raise CannotProve("another order")
    summed, rest = places if abs(ord) == 1 else places[::-1]
    sums = reductions.sum_(ufunc("absolute", x), summed)
    return (reductions.amax if ord > 0 else reductions.amin)(sums, rest - (rest > summed))


def _with_last(x: Shadow, places: list[int]) -> Shadow:
    """Return ``x`` with the axes at ``places`` last."""
    return x.transpose((*[place for place in range(x.ndim) if place not in places], *places))
