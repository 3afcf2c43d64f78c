"""``cupyx.scipy.sparse`` on SciPy's: only CuPy's dtypes, and arrays where SciPy gives ``np.matrix``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg

from gpu_backend.devices.cpu.naming import describe_as
from gpu_backend.devices.cpu.scipy_functions import define_scipy
from gpu_backend.devices.cpu.scipy_objects import device_class
from gpu_backend.devices.cpu.scipy_sparse_members import constructor, members_of
from gpu_backend.devices.cpu.table import define, define_value

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


_by_format: dict[tuple[str, str], type] = {}


def like(form: str, *args: object, **kwargs: object) -> Any:
    """Return one of our matrices of the format ``form``; ``args`` are those of its class."""
    return _by_format[form, "matrix"](*args, **kwargs)


def _class_for(key: tuple[str, str], matrix: object) -> type:
    return _by_format[key]


def _define_classes() -> None:
    for family in ("matrix", "array"):
        for form in _FORMATS:
            name = f"{form}_{family}"
            base = getattr(scipy.sparse, name)
            containers = {f"_{f}_container": property(functools.partial(_class_for, (f, family))) for f in _FORMATS}
            kind = device_class(base, name, f"{_PREFIX}._{form}", members_of(base) | containers)
            _ours[base] = _by_format[form, family] = kind
            describe_as(f"{_PREFIX}.{name}", kind, base)
            define_value(constructor(kind), f"{_PREFIX}.{name}")
    for warning in ("SparseEfficiencyWarning", "SparseWarning"):
        define_value(getattr(scipy.sparse, warning), f"{_PREFIX}.{warning}")
    define_value(scipy.sparse.spmatrix, f"{_PREFIX}.spmatrix")
    define_value(scipy.sparse.sparray, f"{_PREFIX}.sparray")


def _adopting(function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        return adopt(function(*args, **kwargs))

    call.__name__ = function.__name__
    return call


def _stacking(function: Any, as_grid: Callable[[list[Any]], list[list[Any]]]) -> Any:
    """Return ``function``, which stacks blocks, so that it makes the format that CuPy does where none is asked for."""

    def stack(blocks: Any, format: str | None = None, dtype: Any = None) -> Any:
        given = list(blocks)
        return adopt(function(given, format=format or _format_of(as_grid(given)), dtype=dtype))

    return stack


def _format_of(grid: list[list[Any]]) -> str:
    formats = {getattr(block, "format", None) for row in grid for block in row if block is not None}
    if formats == {"csr"} and len(grid[0]) == 1:
        return "csr"
    return "csc" if formats == {"csc"} and len(grid) == 1 else "coo"


#: Functions that make matrices.
_MAKERS = (
    "block_diag", "diags", "diags_array", "eye", "eye_array", "identity", "kronsum", "permute_dims", "spdiags",
    "swapaxes", "tril", "triu",
)  # fmt: skip

#: Functions that stack blocks, and how theirs are a grid.
_STACKS: dict[str, Callable[[list[Any]], list[list[Any]]]] = {
    "block_array": list,
    "bmat": list,
    "hstack": lambda blocks: [blocks],
    "vstack": lambda blocks: [[block] for block in blocks],
}

_define_classes()
define_scipy(_PREFIX, scipy.sparse, without=(*_MAKERS, *_STACKS, "kron", "rand", "random", "random_array"))
for _name, _as_grid in _STACKS.items():
    define(f"{_PREFIX}.{_name}")(_stacking(getattr(scipy.sparse, _name), _as_grid))
for _name in _MAKERS:
    define(f"{_PREFIX}.{_name}")(_adopting(getattr(scipy.sparse, _name)))
define_scipy(f"{_PREFIX}.csgraph", scipy.sparse.csgraph)


@define(f"{_PREFIX}.matrix_transpose")
def matrix_transpose(A: Any) -> Any:
    return adopt(A.swapaxes(-1, -2) if hasattr(A, "swapaxes") else A.transpose())


@define(f"{_PREFIX}.kron")
def kron(A: object, B: object, format: str | None = None) -> Any:
    return adopt(scipy.sparse.kron(A, B, format or "coo"))
