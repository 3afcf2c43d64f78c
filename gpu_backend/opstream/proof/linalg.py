"""Rules of cupy.linalg. They hold while errors of the solvers are ignored, which is CuPy's default."""

from __future__ import annotations

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
from gpu_backend.opstream.proof.shadow import Array, array, like, new, ufunc
from gpu_backend.opstream.proof.values import is_tuple


def common_type(*operands: Array, reject_half: bool = True) -> tuple[DType, DType]:
    """Return the dtype in which CuPy computes and the dtype of its result."""
    if reject_half and any(operand.dtype == FLOAT16 for operand in operands):
        raise refusal(TypeError, "float16 is unsupported in linalg")
    made = result_type(*[operand.dtype if operand.dtype.kind in "fc" else FLOAT64 for operand in operands])
    return (FLOAT32 if made == FLOAT16 else made), made


def real_of(dtype: DType) -> DType:
    """Return the dtype of the real part."""
    return np.dtype(dtype.char.lower())


def _stacked_square(a: object) -> Array:
    given = _stacked(a)
    if given.shape[-1] != given.shape[-2]:
        raise refusal(LinAlgError, "Last 2 dimensions of the array must be square")
    return given


def _stacked(a: object) -> Array:
    given = array(a)
    if given.ndim < 2:
        words = f"{given.ndim}-dimensional array given. Array must be at least two-dimensional"
        raise refusal(LinAlgError, words)
    return given


@rule("cupy.linalg.cholesky")
def cholesky(a: object) -> Array:
    """As CuPy."""
    given = _stacked_square(a)
    return new(given.shape, common_type(given)[1])


@rule("cupy.linalg.inv")
def inv(a: object) -> Array:
    """As CuPy."""
    given = _stacked_square(a)
    made = common_type(given)[1]
    if given.ndim > 2 or given.size == 0:
        return new(given.shape, made)
    return new(given.shape, made, "F" if given.layout.f_contiguous else "C")


@rule("cupy.linalg.tensorinv")
def tensorinv(a: Array, ind: object = 2) -> Array:
    """As CuPy."""
    place = as_index(ind)
    if place <= 0:
        raise refusal(ValueError, "Invalid ind argument")
    if a.size == 0 or place >= a.ndim:
        raise CannotProve("an empty array")
    columns = int(np.prod(a.shape[place:]))
    return inv(a.reshape(columns, -1)).reshape((*a.shape[place:], *a.shape[:place]))


@rule("cupy.linalg.solve")
def solve(a: object, b: Array) -> Array:
    """As CuPy."""
    given = _stacked_square(a)
    if b.ndim == 0:
        raise refusal(ValueError, "b must have at least one dimension")
    if b.ndim == 1:
        if given.shape[-1] != b.size:
            words = "a must have (..., M, M) shape and b must have (M,) for one-dimensional b"
            raise refusal(ValueError, words)
        b = b.window(windows.broadcast_to(b.layout, given.shape[:-1]))
    elif given.shape[:-1] != b.shape[:-1]:
        words = "a must have (..., M, M) shape and b must have (..., M, K) for multidimensional b"
        raise refusal(ValueError, words)
    if given.ndim > 2:
        return linalg_stacked.solve(given, b, common_type(given, b))
    made = common_type(given, b)[1]
    return new(b.shape, made, "C" if given.size == 0 else "F")


@rule("cupy.linalg.lstsq")
def lstsq(a: Array, b: Array, rcond: object = None) -> tuple[Array, ...]:
    """As CuPy, for matrices that are not higher than wide: those have no residuals, whatever their rank."""
    if a.ndim != 2 or b.ndim not in (1, 2) or a.size == 0 or b.size == 0:
        raise CannotProve("other than one matrix")
    if a.shape[0] != b.shape[0]:
        raise refusal(LinAlgError, "Incompatible dimensions")
    if a.shape[0] > a.shape[1]:
        raise CannotProve("whether there are residuals depends on the rank")
    if rcond is not None and type(rcond) is not float:
        raise CannotProve(f"a bound of {type(rcond).__name__}")
    u, values, vh = _svd(a, full=False)
    z = ufunc("multiply", dot(b.T, ufunc("conjugate", u)), ufunc("divide", 1, values)).T
    return dot(ufunc("conjugate", vh.T), z), new((0,), values.dtype), new((), INT32), values


@rule("cupy.linalg.tensorsolve")
def tensorsolve(a: Array, b: Array, axes: object = None) -> Array:
    """As CuPy, for all axes in their order."""
    if axes is not None or a.size == 0 or a.ndim <= b.ndim:
        raise CannotProve("axes in another order")
    shape = a.shape[-(a.ndim - b.ndim) :]
    return solve(a.reshape(-1, int(np.prod(shape))), b.ravel()).reshape(shape)


def _svd(a: Array, full: bool) -> tuple[Array, Array, Array]:
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
def svd(a: Array, full_matrices: object = True, compute_uv: object = True) -> Array | tuple[Array, ...]:
    """As CuPy."""
    if a.ndim < 2:
        raise CannotProve("no matrix")
    made = _svd(a, bool(full_matrices))
    return made if compute_uv else made[1]


@rule("cupy.linalg.pinv")
def pinv(a: Array, rcond: object = 1e-15) -> Array:
    """As CuPy."""
    if a.ndim < 2 or not isinstance(rcond, float):
        raise CannotProve("no matrix, or a bound of another kind")
    if a.size == 0:
        raise CannotProve("an empty matrix")
    return new((*a.shape[:-2], a.shape[-1], a.shape[-2]), common_type(a)[1])


@rule("cupy.linalg.matrix_rank")
def matrix_rank(M: Array, tol: object = None) -> Array:  # noqa: N803 (CuPy's name)
    """As CuPy."""
    if M.ndim < 2:
        return new((), INT64)
    if tol is not None or M.size == 0:
        raise CannotProve("a tolerance, or an empty matrix")
    common_type(M)
    return new(M.shape[:-2], INT64)


@rule("cupy.linalg.slogdet")
def slogdet(a: object) -> tuple[Array, Array]:
    """As CuPy."""
    given = _stacked_square(a)
    made = common_type(given)[1]
    return new(given.shape[:-2], made), new(given.shape[:-2], real_of(made))


@rule("cupy.linalg.det")
def det(a: object) -> Array:
    """As CuPy."""
    sign, logarithm = slogdet(a)
    return ufunc("multiply", sign, ufunc("exp", logarithm))


@rule("cupy.linalg.cond")
def cond(x: Array, p: object = None) -> Array:
    """As CuPy, by singular values."""
    if x.size == 0:
        raise refusal(LinAlgError, "cond is not defined on empty arrays")
    if p not in (None, 2, -2) or x.ndim < 2:
        raise CannotProve("another norm, or no matrix")
    return new(x.shape[:-2], real_of(common_type(x)[1]))


def _eigh(a: object, UPLO: object) -> tuple[Array, Array]:  # noqa: N803 (CuPy's name)
    given = _stacked_square(a)
    compute, made = common_type(given, reject_half=given.size == 0)
    if given.size == 0:
        return new(given.shape[:-1], real_of(made)), new(given.shape, made)
    if UPLO not in ("L", "U"):
        raise refusal(ValueError, "UPLO argument must be 'L' or 'U'")
    if given.ndim > 2:
        return linalg_stacked.eigh(given, (compute, made), real_of(made))
    return new(given.shape[:-1], real_of(made)), Array(like(given.layout, compute, "F")).astype(made, copy=False)


@rule("cupy.linalg.eigh")
def eigh(a: object, UPLO: object = "L") -> tuple[Array, Array]:  # noqa: N803 (CuPy's name)
    """As CuPy."""
    return _eigh(a, UPLO)


@rule("cupy.linalg.eigvalsh")
def eigvalsh(a: object, UPLO: object = "L") -> Array:  # noqa: N803 (CuPy's name)
    """As CuPy."""
    return _eigh(a, UPLO)[0]


@rule("cupy.linalg.qr")
def qr(a: Array, mode: object = "reduced") -> Array | tuple[Array, Array]:
    """As CuPy."""
    if a.ndim < 2 or mode not in ("reduced", "complete", "r", "raw"):
        raise CannotProve("no matrix, or an unknown mode")
    compute, made = common_type(a)
    if a.ndim > 2 or a.size == 0:
        return linalg_stacked.qr(a, mode, (compute, made))
    rows, columns = a.shape
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
def matrix_power(M: object, n: object) -> Array:  # noqa: N803 (CuPy's name)
    """As CuPy."""
    given = _stacked_square(M)
    if not isinstance(n, int) or isinstance(n, bool):
        raise CannotProve("an exponent that is no int")
    if n == 0:
        return Array(like(given.layout, given.dtype, "K"))
    if n < 0:
        given, n = inv(given), -n
    return given if n == 1 else matmul(given, given)


@rule("cupy.linalg.norm")
def norm(x: Array, ord: object = None, axis: object = None, keepdims: object = False) -> Array:
    """As CuPy."""
    given = x if x.dtype.kind in "fc" else x.astype(float)
    if axis is None:
        whole = ord is None or (given.ndim == 1 and ord == 2) or (given.ndim == 2 and ord in ("f", "fro"))
        if whole:
            made = ufunc("sqrt", reductions.sum_(ufunc("absolute", given).ravel()))
            return made.reshape((1,) * given.ndim) if keepdims else made
        axis = tuple(range(given.ndim))
    axes = axis if is_tuple(axis) else (as_index(axis),)
    if len(axes) == 1:
        return _vector_norm(given, ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(given, ord, axes, bool(keepdims))
    raise CannotProve("the norm of more than matrices")


def _vector_norm(x: Array, ord: object, axes: tuple[object, ...], keepdims: object) -> Array:
    absolute = ufunc("absolute", x)
    if ord == np.inf:
        return reductions.amax(absolute, axes, keepdims=keepdims)
    if ord == -np.inf:
        return reductions.amin(absolute, axes, keepdims=keepdims)
    if ord == 0:
        return reductions.sum_(Array(like(new(x.shape, BOOL).layout, absolute.dtype, "K")), axes, keepdims=keepdims)
    if ord == 1:
        return reductions.sum_(absolute, axes, keepdims=keepdims)
    if ord is None or ord == 2:
        return reduce(kinds.NORM_COMPLEX if x.dtype.kind == "c" else kinds.NORM, x, axes, None, None, keepdims)
    raise CannotProve("another order")


def _matrix_norm(x: Array, ord: object, axes: tuple[object, ...], keepdims: bool) -> Array:
    places = [as_index(axis) + x.ndim if as_index(axis) < 0 else as_index(axis) for axis in axes]
    if not all(0 <= place < x.ndim for place in places):
        raise refusal(ValueError, f"Invalid axis {axes!r} for an array with shape {x.shape!r}")
    if places[0] == places[1]:
        raise refusal(ValueError, "Duplicate axes given.")
    made = _norm_of_matrices(x, ord, places)
    if not keepdims:
        return made
    return made.reshape(tuple([1 if place in places else extent for place, extent in enumerate(x.shape)]))


def _norm_of_matrices(x: Array, ord: object, places: list[int]) -> Array:
    if ord in (None, "fro", "f"):
        return reduce(kinds.NORM_COMPLEX if x.dtype.kind == "c" else kinds.NORM, x, tuple(places))
    if x.size == 0 or isinstance(ord, Array):
        raise CannotProve("an empty matrix, or an order that is an array")
    if ord in (2, -2, "nuc"):
        values = _svd(_with_last(x, places), full=False)[1]
        return reductions.sum_(values, -1) if ord == "nuc" else new(values.shape[:-1], values.dtype)
    if ord not in (1, -1, np.inf, -np.inf):
        raise CannotProve("another order")
    summed, rest = places if abs(ord) == 1 else places[::-1]
    sums = reductions.sum_(ufunc("absolute", x), summed)
    return (reductions.amax if ord > 0 else reductions.amin)(sums, rest - (rest > summed))


def _with_last(x: Array, places: list[int]) -> Array:
    """Return ``x`` with the axes at ``places`` last."""
    return x.transpose((*[place for place in range(x.ndim) if place not in places], *places))
