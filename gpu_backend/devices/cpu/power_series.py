"""``cupy.polynomial``: polynomials by their coefficients, lowest power first."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.table import define


@define("cupy.polynomial.polyutils.trimseq")
def trimseq(seq: Array) -> Array:
    if seq.ndim == 0:
        raise TypeError("Input must be 1-d array")
    if seq.ndim > 1:
        raise ValueError("Input must be 1-d array")
    if not seq.size:
        return seq
    trimmed = np.trim_zeros(seq, "b")
    return trimmed if trimmed.size else seq[:1]


def _check_coefficients(c: Array) -> None:
    if not c.size:
        raise ValueError("Coefficient array is empty")
    if c.ndim > 1:
        raise ValueError("Coefficient array is not 1-d")


@define("cupy.polynomial.polyutils.as_series")
def as_series(alist: Any, trim: bool = True) -> list[Array]:
    arrays = []
    for a in alist:
        _check_coefficients(a)
        if a.dtype.kind == "b":
            raise ValueError("Coefficient arrays have no common type")
        arrays.append(trimseq(a.ravel()) if trim else a.ravel())
    dtype = np.common_type(*arrays)
    return [a.astype(dtype) for a in arrays]


@define("cupy.polynomial.polyutils.trimcoef")
def trimcoef(c: Array, tol: float = 0) -> Array:
    if tol < 0:
        raise ValueError("tol must be non-negative")
    _check_coefficients(c)
    if c.dtype.kind == "b":
        raise ValueError("bool inputs are not allowed")
    c = c.ravel().astype(np.common_type(c))
    kept = np.flatnonzero(np.abs(c) > tol)
    return c[: kept[-1] + 1] if kept.size else np.zeros_like(c[:1])


@define("cupy.polynomial.polynomial.polyvander")
def polyvander(x: Array, deg: Any) -> Array:
    try:
        degree = deg.__index__()
    except AttributeError:
        raise TypeError(f"deg must be an integer, received {deg}") from None
    if degree < 0:
        raise ValueError("degree must be non-negative")
    x = x.ravel() if x.ndim == 0 else x
    dtype = np.dtype(np.float64) if x.dtype.kind in "biu" else x.dtype
    powers = x ** np.arange(degree + 1, dtype=dtype).reshape((-1,) + (1,) * x.ndim)
    return np.moveaxis(powers, 0, -1)


@define("cupy.polynomial.polynomial.polycompanion")
def polycompanion(c: Array) -> Array:
    (c,) = as_series([c])
    degree = c.size - 1
    if degree == 0:
        raise ValueError("Series must have maximum degree of at least 1.")
    matrix = np.eye(degree, k=-1, dtype=c.dtype)
    matrix[:, -1] -= c[:-1] / c[-1]
    return matrix


@define("cupy.polynomial.polynomial.polyval")
def polyval_ascending(x: Any, c: Any, tensor: bool = True) -> Array:
    return np.asarray(np.polynomial.polynomial.polyval(x, c, tensor))


@define("cupy.polynomial.polynomial.polyvalfromroots")
def polyvalfromroots(x: Any, r: Any, tensor: bool = True) -> Array:
    return np.asarray(np.polynomial.polynomial.polyvalfromroots(x, r, tensor))
