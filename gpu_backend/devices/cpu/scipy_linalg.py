"""``cupyx.scipy.linalg`` on SciPy's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special
from numpy.linalg import LinAlgError

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.linalg import computing_dtype, require_stacked
from gpu_backend.devices.cpu.products import kron
from gpu_backend.devices.cpu.scipy_functions import define_scipy
from gpu_backend.devices.cpu.table import define

define_scipy(
    "cupyx.scipy.linalg",
    scipy.linalg,
    without=("bandwidth", "expm", "khatri_rao", "lu_factor", "lu_solve", "solve_triangular", "toeplitz"),
)
define("cupyx.scipy.linalg.kron")(kron)


@define("cupyx.scipy.linalg.expm")
def expm(a: Array) -> Array:
    if a.size == 0:
        return np.zeros((0, 0), a.dtype)
    if a.ndim < 2:
        raise LinAlgError("The input array must be at least two-dimensional")
    if a.shape[-1] != a.shape[-2]:
        raise LinAlgError("Last 2 dimensions of the array must be square")
    made: Array = scipy.linalg.expm(a)
    return made


@define("cupyx.scipy.linalg.lu_factor")
def lu_factor(a: Array, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    _require_one(a)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)
        lu, pivots = scipy.linalg.lu_factor(a.astype(computing_dtype(a)), check_finite=check_finite)
    diagonal = np.diagonal(lu, axis1=-2, axis2=-1)
    if (diagonal == 0).any():
        place = int(np.argmax(diagonal == 0)) + 1
        warnings.warn(f"Diagonal number {place} is exactly zero. Singular matrix.", RuntimeWarning, stacklevel=3)
    return lu, pivots.astype(np.int32)


def _require_matrix(a: Array) -> None:
    if a.ndim != 2:
        raise LinAlgError(f"{a.ndim}-dimensional array given. Array must be two-dimensional")


@define("cupyx.scipy.linalg.khatri_rao")
def khatri_rao(a: Array, b: Array) -> Array:
    _require_matrix(a)
    _require_matrix(b)
    made: Array = scipy.linalg.khatri_rao(a, b)
    return made


def _require_one(a: Array) -> None:
    if a.ndim < 2:
        raise ValueError("The input array must be 2-dimensional")


@define("cupyx.scipy.linalg.lu_solve")
def lu_solve(lu_and_piv: Any, b: Array, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True) -> Array:
    lu, pivots = lu_and_piv
    if lu.shape[0] != b.shape[0]:
        raise ValueError("incompatible dimensions.")
    if trans not in (0, 1, 2):
        raise ValueError("unknown trans")
    if pivots.size != len(lu) or (pivots < 0).any() or (pivots >= len(lu)).any():  # LAPACK reads wherever they say
        raise ValueError(f"the pivots are no places of {len(lu)} rows")
    if check_finite and not (np.isfinite(lu).all() and np.isfinite(b).all()):
        raise ValueError("array must not contain Infs or NaNs.\nNote that when a singular matrix is given, unlike ")
    made: Array = scipy.linalg.lu_solve((lu, pivots), b, trans, check_finite=check_finite)
    return made


@define("cupyx.scipy.linalg.solve_triangular")
def solve_triangular(
    a: Array,
    b: Array,
    trans: object = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = False,
) -> Array:
    require_stacked(a, square=True)
    if (a.ndim > 2 and a.shape[:-1] != b.shape[: a.ndim - 1]) or (a.ndim == 2 and len(a) != len(b)):
        raise ValueError("incompatible dimensions")
    dtype = a.dtype if a.dtype.char in "fd" else np.promote_types(a.dtype, np.float32)
    left = np.array(a, dtype, order="C").reshape(-1, *a.shape[-2:])
    right = np.array(b, dtype, order="C").reshape(len(left), a.shape[-1], -1)
    answers = np.empty_like(right)
    for answer, one, other in zip(answers, left, right, strict=True):
        try:
            answer[...] = scipy.linalg.solve_triangular(
                one, other, trans, lower, unit_diagonal, check_finite=check_finite
            )
        except LinAlgError:
            answer[...] = np.nan
    return answers.reshape(b.shape)


@define("cupyx.scipy.linalg.toeplitz")
def toeplitz(c: Array, r: Array | None = None) -> Array:
    made: Array = scipy.linalg.toeplitz(c.ravel(), None if r is None else r.ravel())
    return made


@define("cupyx.scipy.linalg.bandwidth")
def bandwidth(a: Array) -> tuple[int, int]:
    if a.size == 0:
        return 0, 0
    _require_matrix(a)
    rows, columns = np.nonzero(a)
    distance = rows - columns
    return max(0, int(distance.max(initial=0))), max(0, int((-distance).max(initial=0)))
