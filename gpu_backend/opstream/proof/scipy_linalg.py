"""Rules of ``cupyx.scipy.linalg``."""

from __future__ import annotations

import numpy as np

from gpu_backend.opstream.proof.arguments import COMPLEX128, FLOAT32, FLOAT64, as_dtype, as_index
from gpu_backend.opstream.proof.outcome import CannotProve
from gpu_backend.opstream.proof.promotion import result_type
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.shadow import Array, array, arrays, new, ufunc

_LINALG = "cupyx.scipy.linalg."
_MOST_ROWS = 1 << 20


def _vector(value: object, least: int = 1) -> Array:
    given = array(value)
    if given.ndim != 1 or given.size < least:
        raise CannotProve("other than a vector, or a short one")
    return given


def _count(n: object, least: int = 1) -> int:
    rows = as_index(n)
    if not least <= rows <= _MOST_ROWS:
        raise CannotProve("an unusual number of rows")
    return rows


@rule(_LINALG + "toeplitz", _LINALG + "hankel")
def toeplitz(c: Array, r: object = None) -> Array:
    """As CuPy."""
    row = array(c if r is None else r)
    if c.size == 0 or row.size == 0:
        raise CannotProve("an empty matrix")
    return new((c.size, row.size), result_type(c.dtype, row.dtype))


@rule(_LINALG + "circulant")
def circulant(c: Array) -> Array:
    """As CuPy."""
    return toeplitz(c)


@rule(_LINALG + "convolution_matrix")
def convolution_matrix(a: object, n: object, mode: object = "full") -> Array:
    """As CuPy."""
    vector, columns = _vector(a), _count(n)
    length = vector.size
    rows = {
        "full": length + columns - 1,
        "same": max(length, columns),
        "valid": max(length, columns) - min(length, columns) + 1,
    }
    if not isinstance(mode, str) or mode not in rows:
        raise CannotProve("an unknown mode")
    return new((rows[mode], columns), vector.dtype)


@rule(_LINALG + "hadamard")
def hadamard(n: object, dtype: object = int) -> Array:
    """As CuPy."""
    rows, wanted = _count(n), as_dtype(dtype)
    if rows & (rows - 1) or wanted.kind not in "iuf":
        raise CannotProve("no power of two, or another dtype")
    return new((rows, rows), wanted)


@rule(_LINALG + "leslie")
def leslie(f: object, s: object) -> Array:
    """As CuPy."""
    rates, shares = _vector(f, 2), _vector(s)
    if rates.size != shares.size + 1:
        raise CannotProve("lengths that do not fit")
    return new((rates.size, rates.size), result_type(rates.dtype, shares.dtype))


@rule(_LINALG + "block_diag")
def block_diag(*arrs: object) -> Array:
    """As CuPy."""
    blocks = arrays(arrs)
    if not blocks or any(block.ndim > 2 for block in blocks):
        raise CannotProve("no blocks, or blocks of many axes")
    shapes = [(1,) * (2 - block.ndim) + block.shape for block in blocks]
    shape = (sum(rows for rows, _ in shapes), sum(columns for _, columns in shapes))
    return new(shape, result_type(*[block.dtype for block in blocks]))


@rule(_LINALG + "companion")
def companion(a: object) -> Array:
    """As CuPy."""
    given = _vector(a, 3)
    row = ufunc("divide", ufunc("negative", given[1:]), given[0])
    return new((given.size - 1,) * 2, row.dtype)


@rule(_LINALG + "helmert")
def helmert(n: object, full: object = False) -> Array:
    """As CuPy."""
    rows = _count(n, 2)
    return new((rows, rows), FLOAT64) if full else new((rows, rows), FLOAT64)[1:]


@rule(_LINALG + "hilbert")
def hilbert(n: object) -> Array:
    """As CuPy."""
    return new((_count(n),) * 2, FLOAT64)


@rule(_LINALG + "dft")
def dft(n: object, scale: object = None) -> Array:
    """As CuPy."""
    if scale not in (None, "sqrtn", "n"):
        raise CannotProve("an unknown scale")
    return new((_count(n),) * 2, COMPLEX128)


@rule(_LINALG + "fiedler")
def fiedler(a: object) -> Array:
    """As CuPy."""
    given = _vector(a, 2)
    if given.dtype.kind not in "iuf":
        raise CannotProve(f"elements of {given.dtype}")
    return ufunc("subtract", given[:, None], given)


@rule(_LINALG + "fiedler_companion")
def fiedler_companion(a: object) -> Array:
    """As CuPy."""
    given = _vector(a, 4)
    quotients = ufunc("divide", given, given[0])
    return new((given.size - 1,) * 2, quotients.dtype)


@rule(_LINALG + "khatri_rao")
def khatri_rao(a: Array, b: Array) -> Array:
    """As CuPy."""
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1] or not a.size * b.size:
        raise CannotProve("matrices that do not fit")
    product = ufunc("multiply", a[:, None, :], b[None, :, :])
    return product.reshape((-1, a.shape[1]))


@rule(_LINALG + "solve_triangular")
def solve_triangular(
    a: Array, b: Array, trans: object = 0, lower: object = False, unit_diagonal: object = False,
    overwrite_b: object = False, check_finite: object = False,
) -> Array:  # fmt: skip
    """As CuPy, for one matrix."""
    if a.ndim != 2 or a.shape[0] != a.shape[1] or b.ndim not in (1, 2):
        raise CannotProve("other than one square matrix")
    if b.shape[0] != a.shape[0] or not b.size or overwrite_b or check_finite:
        raise CannotProve("sides that do not fit, or options")
    if type(trans) not in (int, str) or trans not in (0, 1, 2, "N", "T", "C"):
        raise CannotProve("an unknown transposition")
    wanted = a.dtype if a.dtype.char in "fd" else np.promote_types(a.dtype, FLOAT32)
    if b.dtype.kind == "c" and wanted.kind != "c":
        raise CannotProve("a ComplexWarning")
    return new(b.shape, wanted, "F")


@rule(_LINALG + "lu_solve")
def lu_solve(
    lu_and_piv: object, b: Array, trans: object = 0, overwrite_b: object = False, check_finite: object = True
) -> Array:
    """As CuPy, which looks at the values unless it is told that they are finite."""
    lu, pivots = _factors(lu_and_piv)
    if b.ndim not in (1, 2) or b.shape[0] != lu.shape[0] or not b.size or overwrite_b or check_finite:
        raise CannotProve("sides that do not fit, or options")
    if type(trans) is not int or trans not in (0, 1, 2):
        raise CannotProve("an unknown transposition")
    if lu.dtype.char not in "fdFD" or pivots.dtype.char != "i" or pivots.shape != lu.shape[:1]:
        raise CannotProve("factors that lu_factor does not make")
    if b.dtype.kind == "c" and lu.dtype.kind != "c":
        raise CannotProve("a ComplexWarning")
    return new(b.shape, lu.dtype, "F")


def _factors(lu_and_piv: object) -> tuple[Array, Array]:
    given = arrays(lu_and_piv)
    if len(given) != 2 or given[0].ndim != 2 or given[0].shape[0] != given[0].shape[1]:
        raise CannotProve("other than the factors of one square matrix")
    return given[0], given[1]
