"""Results of cupy.linalg for many matrices at once, as they lie after cuSOLVER and cuBLAS have computed them."""

from __future__ import annotations

from math import prod

from gpu_backend.opstream.layout import DType, Shape
from gpu_backend.opstream.proof.outcome import CannotProve
from gpu_backend.opstream.proof.shadow import Array, new, ufunc

#: Up to this many rows cuBLAS solves all systems at once, unless a program has CuPy choose by another limit.
_BATCHED_ROWS = 256
#: Up to this many rows and columns the singular values are found by Jacobi's method, for all matrices at once.
_JACOBI_ROWS = 32
#: The dtype in which CuPy computes and the dtype of the result.
Dtypes = tuple[DType, DType]


def swapped(a: Array) -> Array:
    """Return ``a`` with its last two axes exchanged."""
    return a.transpose((*range(a.ndim - 2), a.ndim - 1, a.ndim - 2))


def _in_batches(a: Array, batch: Shape, kept: int) -> Array:
    """Return ``a``, whose first axis counts all matrices, with the axes of ``batch`` instead."""
    return a.reshape((*batch, *a.shape[a.ndim - kept :]))


def _conjugate(a: Array) -> Array:
    return ufunc("conjugate", a) if a.dtype.kind == "c" else a


def solve(a: Array, b: Array, dtypes: Dtypes) -> Array:
    """Return the solutions of the systems ``a``, of right sides ``b``, where no program has chosen how."""
    rows, (compute, made) = a.shape[-1], dtypes
    if rows > _BATCHED_ROWS:
        raise CannotProve("systems that are solved one by one")
    if a.size == 0:
        return new(b.shape, made)
    columns = b.shape[-1] if a.ndim == b.ndim else 1
    if b.size == 0:
        raise CannotProve("no right sides")
    solved = new((prod(a.shape[:-2]), columns, rows), compute)
    return solved.transpose((0, 2, 1)).reshape(b.shape).astype(made, copy=False)


def eigh(a: Array, dtypes: Dtypes, real: DType) -> tuple[Array, Array]:
    """Return the eigenvalues, of the dtype ``real``, and the eigenvectors."""
    batch, (rows, columns) = a.shape[:-2], a.shape[-2:]
    vectors = new((prod(batch), columns, rows), dtypes[0]).astype(dtypes[1], copy=False)
    return new((*batch, rows), real), _in_batches(swapped(vectors), batch, 2)


def qr(a: Array, mode: str, dtypes: Dtypes) -> Array | tuple[Array, Array]:
    """Return the factors that ``mode`` names."""
    batch, (rows, columns), (compute, made) = a.shape[:-2], a.shape[-2:], dtypes
    count, short = prod(batch), min(a.shape[-2:])
    if mode == "raw" and batch:
        raise CannotProve("the raw factors of many matrices, which not every device has")
    if count == 0 or short == 0:
        return _empty_qr(batch, rows, columns, mode, made)
    work = new((count, columns, rows), compute)
    if mode == "r":
        return _in_batches(swapped(work[..., :short]).astype(made, copy=False), batch, 2)
    is_square = mode == "complete" and rows > columns
    side = rows if is_square else short
    q = new((count, rows if is_square else columns, rows), compute)
    return (
        _in_batches(swapped(q[..., :side, :]).astype(made, copy=False), batch, 2),
        _in_batches(swapped(work[..., :side]).astype(made, copy=False), batch, 2),
    )


def _empty_qr(batch: Shape, rows: int, columns: int, mode: str, made: DType) -> Array | tuple[Array, Array]:
    if mode == "r":
        return new((*batch, min(rows, columns), columns), made)
    short = min(rows, columns)
    if mode == "raw":
        return new((*batch, columns, rows), made), new((*batch, short), made)
    side = rows if mode == "complete" else short
    return new((*batch, rows, side), made), new((*batch, rows if mode == "complete" else short, columns), made)


def svd(a: Array, full: bool, dtypes: Dtypes, real: DType) -> tuple[Array, Array, Array]:
    """Return u, s of the dtype ``real``, and vh."""
    batch, (rows, columns), made = a.shape[:-2], a.shape[-2:], dtypes[1]
    short = min(rows, columns)
    values = new((*batch, short), real)
    if a.size == 0:
        left, right = (rows, columns) if full else (short, short)
        return new((*batch, rows, left), made), values, new((*batch, right, columns), made)
    find = _by_jacobi if max(rows, columns) <= _JACOBI_ROWS else _by_qr
    u, v = find(prod(batch), rows, columns, full, dtypes[0])
    u = _in_batches(u.astype(made, copy=False), batch, 2)
    v = _in_batches(v.astype(made, copy=False), batch, 2)
    return u, values, _conjugate(swapped(v))


def _by_jacobi(count: int, rows: int, columns: int, full: bool, dtype: DType) -> tuple[Array, Array]:
    u, v = swapped(new((count, rows, rows), dtype)), swapped(new((count, columns, columns), dtype))
    short = min(rows, columns)
    return (u, v) if full else (u[..., :short], v[..., :short])


def _by_qr(count: int, rows: int, columns: int, full: bool, dtype: DType) -> tuple[Array, Array]:
    short, long = sorted((rows, columns))
    work = new((count, short, long), dtype)
    u = new((count, long, long), dtype) if full else work
    vh = work[..., :short] if full else new((count, short, short), dtype)
    if rows > columns:
        return swapped(u), _conjugate(vh)
    return vh, _conjugate(swapped(u))
