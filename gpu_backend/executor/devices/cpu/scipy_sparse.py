"""``cupyx.scipy.sparse`` on SciPy's: only CuPy's dtypes, and arrays where SciPy gives ``np.matrix``."""

from __future__ import annotations

import functools
from typing import Any

import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg

from gpu_backend.executor.devices.cpu.arrays import Array, np
from gpu_backend.executor.devices.cpu.call import guarded
from gpu_backend.executor.devices.cpu.scipy_functions import define_scipy
from gpu_backend.executor.devices.cpu.scipy_objects import device_class
from gpu_backend.executor.devices.cpu.table import define, define_value

_PREFIX = "cupyx.scipy.sparse"
_FORMATS = ("csr", "csc", "coo", "dia")

#: SciPy's class to ours.
_ours: dict[type, type] = {}


def adopt(made: Any) -> Any:
    """Return ``made``, a matrix that SciPy made (or several in a tuple), as one of our classes."""
    if type(made) in _ours:
        made.__class__ = _ours[type(made)]
    elif isinstance(made, tuple):
        return tuple(adopt(part) for part in made)
    elif scipy.sparse.issparse(made) and type(made) not in _ours.values():
        return adopt(made.tocsr())  # a format that CuPy has not
    return made


def _check_dtype(matrix: Any) -> None:
    if matrix.dtype.char not in "?fdFD":
        raise ValueError("Only bool, float32, float64, complex64 and complex128 are supported")


def _members(base: type, family: str) -> dict[str, Any]:
    """Return the methods in which our class differs from SciPy's ``base``; ``family`` is "matrix" or "array"."""

    def init(self: Any, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, **options: Any) -> None:
        if isinstance(arg1, np.ndarray) and arg1.ndim > 2:
            raise TypeError("expected dimension <= 2 array or matrix")
        base.__init__(self, arg1, shape=shape, dtype=dtype, copy=copy, **options)  # type: ignore[misc]
        _check_dtype(self)

    def toarray(self: Any, order: str | None = None, out: Array | None = None) -> Array:
        result = base.toarray(self, order="F" if order == "F" else "C")  # type: ignore[attr-defined]
        if out is None:
            return result
        out[...] = result
        return out

    def get(self: Any, stream: Any = None) -> Any:
        host = self.copy()
        host.__class__ = base
        return host

    members: dict[str, Any] = {
        "__init__": guarded(init),
        "toarray": guarded(toarray),
        "todense": guarded(toarray),
        "get": get,
        "A": property(lambda self: self.toarray()),
        "__array_priority__": 101,
    }
    for name in _FORMATS:
        members[f"_{name}_container"] = property(functools.partial(_class_for, (name, family)))
    return members


_by_format: dict[tuple[str, str], type] = {}


def _class_for(key: tuple[str, str], matrix: Any) -> type:
    return _by_format[key]


def _define_classes() -> None:
    for family in ("matrix", "array"):
        for form in _FORMATS:
            name = f"{form}_{family}"
            base = getattr(scipy.sparse, name)
            kind = device_class(base, name, f"{_PREFIX}._{form}", _members(base, family))
            _ours[base] = _by_format[form, family] = kind
            define_value(kind, f"{_PREFIX}.{name}")
    define_value(scipy.sparse.spmatrix, f"{_PREFIX}.spmatrix")
    define_value(scipy.sparse.sparray, f"{_PREFIX}.sparray")


def _adopting(function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        return adopt(function(*args, **kwargs))

    call.__name__ = function.__name__
    return call


#: Functions that make matrices.
_MAKERS = (
    "block_array", "block_diag", "bmat", "diags", "diags_array", "eye", "eye_array", "hstack", "identity", "kron",
    "kronsum", "permute_dims", "rand", "random", "random_array", "spdiags", "swapaxes", "tril", "triu", "vstack",
)  # fmt: skip

_define_classes()
define_scipy(_PREFIX, scipy.sparse, without=(*_MAKERS, "rand", "random", "random_array"))
for _name in _MAKERS:
    define(f"{_PREFIX}.{_name}")(_adopting(getattr(scipy.sparse, _name)))
define_scipy(f"{_PREFIX}.csgraph", scipy.sparse.csgraph)


@define(f"{_PREFIX}.matrix_transpose")
def matrix_transpose(A: Any) -> Any:
    return adopt(A.swapaxes(-1, -2) if hasattr(A, "swapaxes") else A.transpose())
