"""``cupyx.cusparse`` without cuSPARSE: what there is, sorting of indices, conversions."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.scipy_sparse import adopt, like
from gpu_backend.devices.cpu.table import define, define_value

_PREFIX = "cupyx.cusparse"
#: The version of cuSPARSE that comes with the CUDA that this device answers for.
_VERSION = 12709

#: What that version has, or CuPy makes of what it has.
_AVAILABLE = frozenset(
    {
        "coo2csr", "coosort", "csc2csrEx2", "cscsort", "csr2coo", "csr2cscEx2", "csr2csr_compress", "csrgeam2",
        "csrilu02", "csrsort", "denseToSparse", "sparseToDense", "spgemm", "spmm", "spmv", "spsm",
    }
)  # fmt: skip

#: What cuSPARSE had once, and what to take instead.
_GONE = {
    "csrgeam": "csrgeam2", "csrgemm": "spgemm", "csrgemm2": "spgemm", "csrmm": "spmm", "csrmm2": "spmm",
    "csrmv": "spmv", "csrsm2": "spsm", "dense2csc": "denseToSparse", "dense2csr": "denseToSparse",
}  # fmt: skip

#: Known to CuPy and not in that version; the functions of these names do without it, where there are any.
_OTHERS = frozenset({"csc2csr", "csc2dense", "csr2csc", "csr2dense", "gthr", "spgeam", "spgemm_int64"})


def check_availability(name: str) -> bool:
    """Tell whether cuSPARSE has what CuPy's function ``name`` is made of, as CuPy would on the CUDA of this device."""
    if name not in _AVAILABLE | _OTHERS and name not in _GONE:
        raise ValueError(f"No available version information specified for {name}")
    return name in _AVAILABLE


def get_version() -> int:
    """Return the version of cuSPARSE that this device answers for."""
    return _VERSION


define_value(check_availability, f"{_PREFIX}.check_availability")
define_value(get_version, f"{_PREFIX}.getVersion")


def _define_gone(name: str, instead: str) -> None:
    def gone(*args: object, **kwargs: object) -> Any:
        raise RuntimeError(f"{name} is not available. cuSPARSE has it no more; cupyx.cusparse.{instead} does the same.")

    define(f"{_PREFIX}.{name}")(gone)


for _name, _instead in _GONE.items():
    _define_gone(_name, _instead)


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


@define(f"{_PREFIX}.sparseToDense")
def sparse_to_dense(x: Any, out: Array | None = None) -> Array:
    """Return the matrix with all its zeros, in Fortran's order; in ``out`` if that is given."""
    _require_floating(x)
    if out is not None and not out.flags.f_contiguous:
        raise ValueError("expected F-contiguous array for out")
    if out is not None and out.dtype != x.dtype:
        raise ValueError("out dtype mismatch")
    return to_dense(x, out)


@define(f"{_PREFIX}.denseToSparse")
def dense_to_sparse(x: Array, format: str = "csr") -> Any:
    """Return the matrix without its zeros, as CSR, CSC or COO."""
    if x.ndim != 2:
        raise ValueError("expected 2-D matrix")
    _require_floating(x)
    if format not in ("csr", "csc", "coo"):
        raise TypeError(f"unsupported format (actual: {format})")
    return like(format, x)


def _require_floating(x: Any) -> None:
    if x.dtype.char not in "fdFD":
        raise ValueError("unsupported dtype")


@define(f"{_PREFIX}.csr2coo", f"{_PREFIX}.csc2coo")
def to_coo(x: Any, data: Array, indices: Array) -> Any:
    """Return the matrix by coordinates."""
    return adopt(x.tocoo())


@define(f"{_PREFIX}.coo2csr")
def coo_to_csr(x: Any) -> Any:
    """Return the matrix by rows; its elements must be in their order."""
    return _compressed("csr", x, x.row, x.col)


@define(f"{_PREFIX}.coo2csc")
def coo_to_csc(x: Any) -> Any:
    """Return the matrix by columns; its elements must be in their order."""
    return _compressed("csc", x, x.col, x.row)


def _compressed(form: str, x: Any, major: Array, minor: Array) -> Any:
    made = like(form, x.shape, dtype=x.dtype)
    ends = np.cumsum(np.bincount(major, minlength=len(made.indptr) - 1))
    made.data, made.indices = x.data, minor
    made.indptr = np.concatenate([[0], ends]).astype(major.dtype)  # as wide as the coordinates were
    return made


@define(f"{_PREFIX}.csr2csc", f"{_PREFIX}.csr2cscEx2")
def csr_to_csc(x: Any) -> Any:
    """Return the matrix by columns."""
    return adopt(x.tocsc())


@define(f"{_PREFIX}.csc2csr", f"{_PREFIX}.csc2csrEx2")
def csc_to_csr(x: Any) -> Any:
    """Return the matrix by rows."""
    return adopt(x.tocsr())


@define(f"{_PREFIX}.csr2csr_compress")
def compress(x: Any, tol: float) -> Any:
    """Return the matrix without the elements that are no greater than ``tol``."""
    _require_floating(x)
    made = x.copy()
    made.data = np.where(np.abs(made.data) > tol, made.data, 0)
    made.eliminate_zeros()
    return made
