"""Rules of ``cupyx.scipy.linalg``."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_backend.opstream.proof.arguments import COMPLEX128, FLOAT32, FLOAT64, as_dtype, as_index
from gpu_backend.opstream.proof.outcome import CannotProve
from gpu_backend.opstream.proof.promotion import result_type
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.shadow import Shadow, array, arrays, new, ufunc

_LINALG = "cupyx.scipy.linalg."
_MOST_ROWS = 1 << 20


def _vector(value: Any, least: int = 1) -> Shadow:
    given = array(value)
    if given.ndim != 1 or given.size < least:
        raise CannotProve("other than a vector, or a short one")
    return given


def _count(n: Any, least: int = 1) -> int:
    rows = as_index(n)
    if not least <= rows <= _MOST_ROWS:
        raise CannotProve("an unusual number of rows")
    return rows


@rule(_LINALG + "toeplitz", _LINALG + "hankel")
def toeplitz(c: Any, r: Any = None) -> Shadow:
    """As CuPy."""
    column, row = array(c), array(c if r is None else r)
    if column.size == 0 or row.size == 0:
        raise CannotProve("an empty matrix")
    return new((column.size, row.size), result_type(column.dtype, row.dtype))


@rule(_LINALG + "circulant")
def circulant(c: Any) -> Shadow:
    """As CuPy."""
    return toeplitz(c)


@rule(_LINALG + "convolution_matrix")
def convolution_matrix(a: Any, n: Any, mode: Any = "full") -> Shadow:
    """As CuPy."""
    length, columns = _vector(a).size, _count(n)
    if mode not in ("full", "valid", "same"):
        raise CannotProve("an unknown mode")
    rows = {
        "full": length + columns - 1,
        "same": max(length, columns),
        "valid": max(length, columns) - min(length, columns) + 1,
    }
    return new((rows[mode], columns), a.dtype)


@rule(_LINALG + "hadamard")
def hadamard(n: Any, dtype: Any = int) -> Shadow:
    """As CuPy."""
    rows, wanted = _count(n), as_dtype(dtype)
    if rows & (rows - 1) or wanted.kind not in "iuf":
        raise CannotProve("no power of two, or another dtype")
    return new((rows, rows), wanted)


@rule(_LINALG + "leslie")
def leslie(f: Any, s: Any) -> Shadow:
    """As CuPy."""
    rates, shares = _vector(f, 2), _vector(s)
    if rates.size != shares.size + 1:
        raise CannotProve("lengths that do not fit")
    return new((rates.size, rates.size), result_type(rates.dtype, shares.dtype))


@rule(_LINALG + "block_diag")
def block_diag(*arrs: Any) -> Shadow:
    """As CuPy."""
    blocks = arrays(arrs)
    if not blocks or any(block.ndim > 2 for block in blocks):
        raise CannotProve("no blocks, or blocks of many axes")
    shapes = [(1,) * (2 - block.ndim) + block.shape for block in blocks]
    shape = (sum(rows for rows, _ in shapes), sum(columns for _, columns in shapes))
    return new(shape, result_type(*[block.dtype for block in blocks]))


@rule(_LINALG + "companion")
def companion(a: Any) -> Shadow:
    """As CuPy."""
    given = _vector(a, 3)
    row = ufunc("divide", ufunc("negative", given[1:]), given[0])
    return new((given.size - 1,) * 2, row.dtype)


@rule(_LINALG + "helmert")
def helmert(n: Any, full: Any = False) -> Shadow:
    """As CuPy."""
    rows = _count(n, 2)
    return new((rows, rows), FLOAT64) if full else new((rows, rows), FLOAT64)[1:]


@rule(_LINALG + "hilbert")
def hilbert(n: Any) -> Shadow:
    """As CuPy."""
    return new((_count(n),) * 2, FLOAT64)


@rule(_LINALG + "dft")
def dft(n: Any, scale: Any = None) -> Shadow:
    """As CuPy."""
    if scale not in (None, "sqrtn", "n"):
        raise CannotProve("an unknown scale")
    return new((_count(n),) * 2, COMPLEX128)


@rule(_LINALG + "fiedler")
def fiedler(a: Any) -> Shadow:
    """As CuPy."""
    given = _vector(a, 2)
    if given.dtype.kind not in "iuf":
        raise CannotProve(f"elements of {given.dtype}")
    return ufunc("subtract", given[:, None], given)


@rule(_LINALG + "fiedler_companion")
def fiedler_companion(a: Any) -> Shadow:
    """As CuPy."""
    given = _vector(a, 4)
    quotients = ufunc("divide", given, given[0])
    return new((given.size - 1,) * 2, quotients.dtype)


@rule(_LINALG + "khatri_rao")
def khatri_rao(a: Any, b: Any) -> Shadow:
    """As CuPy."""
    left, right = array(a), array(b)
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[1] or not left.size * right.size:
        raise CannotProve("matrices that do not fit")
    product = ufunc("multiply", left[:, None, :], right[None, :, :])
    return product.reshape((-1, left.shape[1]))


@rule(_LINALG + "solve_triangular")
def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: Any = False, unit_diagonal: Any = False, overwrite_b: Any = False,
    check_finite: Any = False,
) -> Shadow:  # fmt: skip
    """As CuPy, for one matrix."""
    matrix, sides = array(a), array(b)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or sides.ndim not in (1, 2):
        raise CannotProve("other than one square matrix")
    if sides.shape[0] != matrix.shape[0] or not sides.size or overwrite_b or check_finite:
        raise CannotProve("sides that do not fit, or options")
    if type(trans) not in (int, str) or trans not in (0, 1, 2, "N", "T", "C"):
        raise CannotProve("an unknown transposition")
    wanted = matrix.dtype if matrix.dtype.char in "fd" else np.promote_types(matrix.dtype, FLOAT32)
    if sides.dtype.kind == "c" and wanted.kind != "c":
        raise CannotProve("a ComplexWarning")
    return new(sides.shape, wanted, "F")
