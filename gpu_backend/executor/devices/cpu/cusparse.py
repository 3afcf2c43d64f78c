"""What of ``cupyx.cusparse`` SciPy can do: sorting indices, conversions and products of sparse matrices."""

from __future__ import annotations

from typing import Any

from gpu_backend.executor.devices.cpu.arrays import Array, np
from gpu_backend.executor.devices.cpu.scipy_sparse import adopt
from gpu_backend.executor.devices.cpu.table import define

_PREFIX = "cupyx.cusparse"


@define(f"{_PREFIX}.csrsort", f"{_PREFIX}.cscsort")
def sort(x: Any) -> None:
    """Sort the indices within each row or column, in place."""
    x.sort_indices()


@define(f"{_PREFIX}.coosort")
def coosort(x: Any, sort_by: str = "r") -> None:
    """Sort the elements by row, or by column, in place."""
    if sort_by not in ("r", "c"):
        raise ValueError("sort_by must be either 'r' or 'c'")
    keys = (x.col, x.row) if sort_by == "r" else (x.row, x.col)
    order = np.lexsort(keys)
    x.row, x.col, x.data = x.row[order], x.col[order], x.data[order]


@define(f"{_PREFIX}.csr2dense", f"{_PREFIX}.csc2dense")
def to_dense(x: Any, out: Array | None = None) -> Array:
    """Return the matrix with all its zeros; in ``out`` if that is given."""
    made: Array = np.asfortranarray(x.toarray())
    if out is None:
        return made
    out[...] = made
    return out


@define(f"{_PREFIX}.csr2coo", f"{_PREFIX}.csc2coo")
def to_coo(x: Any, data: Array, indices: Array) -> Any:
    """Return the matrix by coordinates."""
    return adopt(x.tocoo())


@define(f"{_PREFIX}.csr2csc")
def csr_to_csc(x: Any) -> Any:
    """Return the matrix by columns."""
    return adopt(x.tocsc())


@define(f"{_PREFIX}.csc2csr")
def csc_to_csr(x: Any) -> Any:
    """Return the matrix by rows."""
    return adopt(x.tocsr())


@define(f"{_PREFIX}.spmm")
def spmm(a: Any, b: Array, c: Array | None = None, alpha: Any = 1, beta: Any = 0, transa: bool = False,
         transb: bool = False) -> Array:  # fmt: skip
    """Return ``alpha * a @ b + beta * c``."""
    product = alpha * ((a.T if transa else a) @ (b.T if transb else b))
    if c is None:
        return np.asfortranarray(product)
    c[...] = product + beta * c
    return c


@define(f"{_PREFIX}.spmv")
def spmv(a: Any, x: Array, y: Array | None = None, alpha: Any = 1, beta: Any = 0, transa: bool = False) -> Array:
    """Return ``alpha * a @ x + beta * y``."""
    product: Array = alpha * ((a.T if transa else a) @ x)
    if y is None:
        return product
    y[...] = product + beta * y
    return y
