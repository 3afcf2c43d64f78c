"""Rules of ``cupyx.scipy.sparse``: matrices made of arrays or turned, and what comes of them that is dense."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from gpu_backend.opstream.layout import Shape, SparseLayout
from gpu_backend.opstream.proof.arguments import as_dtype
from gpu_backend.opstream.proof.outcome import CannotProve, Made
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.shadow import Array, new
from gpu_backend.opstream.proof.values import is_tuple

_COMPRESSED = ("csr", "csc")
_FORMATS = (*_COMPRESSED, "coo", "dia")
#: dtypes that cuSPARSE multiplies.
_MULTIPLIED = "fdFD"
#: What an element of a dense matrix needs at most while it becomes sparse: its value and two indices, twice.
_ELEMENT_BYTES = 2 * (16 + 8 + 8)


def _name(form: str, kind: str) -> str:
    return f"cupyx.scipy.sparse.{form}_{kind}"


_MATRICES, _ALL = (
    [_name(form, kind) for kind in kinds for form in _FORMATS] for kinds in (["matrix"], ["matrix", "array"])
)


def _matrix(value: object) -> SparseLayout:
    if not isinstance(value, SparseLayout) or len(value.shape) != 2 or 0 in value.shape:
        raise CannotProve("a sparse matrix of which too little is known")
    return value


@rule(
    *[f"{name}.{method}" for name in _ALL for method in ("__matmul__", "dot")],
    *[f"{name}.__mul__" for name in _MATRICES],
)
def product(matrix: object, other: Array) -> Array:
    """As CuPy, by a dense vector or matrix: the product with a matrix is in columns."""
    left = _matrix(matrix)
    if other.ndim not in (1, 2) or other.size == 0 or other.shape[0] != left.shape[1]:
        raise CannotProve("operands that do not fit")
    made = np.promote_types(left.dtype, other.dtype)
    if left.dtype.char not in _MULTIPLIED or made.char not in _MULTIPLIED:
        raise CannotProve(f"a product of {left.dtype} and {other.dtype}")
    return new((left.shape[0],), made) if other.ndim == 1 else new((left.shape[0], other.shape[1]), made, "F")


@rule(*[f"{_name(form, kind)}.toarray" for form in (*_COMPRESSED, "coo") for kind in ("matrix", "array")])
def toarray(matrix: object, order: object = None, out: Array | None = None) -> Array:
    """As CuPy, in rows."""
    given = _matrix(matrix)
    if order not in (None, "C") or out is not None:
        raise CannotProve("another order, or an output")
    return new(given.shape, given.dtype)


def _transpose(qualname: str) -> Callable[..., Made]:
    def transpose(matrix: object, axes: object = None, copy: object = False) -> Made:
        given = _matrix(matrix)
        if axes is not None or copy is not False:
            raise CannotProve("axes, or a copy of the parts")
        return Made(qualname, 0, SparseLayout(given.shape[::-1], given.dtype))

    return transpose


#: A matrix of the same parts, with rows for columns.
for _form, _turned in (("csr", "csc"), ("csc", "csr"), ("coo", "coo")):
    for _kind in ("matrix", "array"):
        rule(f"{_name(_form, _kind)}.transpose")(_transpose(_name(_turned, _kind)))


def _made_of(qualname: str) -> Callable[..., Made]:
    def made(arg1: object, shape: object = None, dtype: object = None, copy: object = False) -> Made:
        if isinstance(arg1, Array):
            return _of_dense(qualname, arg1, shape, dtype)
        extents = tuple([one for one in arg1 if type(one) is int and one >= 0]) if is_tuple(arg1) else ()
        if not is_tuple(arg1) or len(arg1) != 2 or len(extents) != 2:
            raise CannotProve("parts that are looked at")
        if shape is not None:
            raise CannotProve("a shape given twice")
        wanted = as_dtype("d" if dtype is None else dtype)
        if wanted.char not in "?" + _MULTIPLIED:
            raise CannotProve(f"a matrix of {wanted}")
        return Made(qualname, 8 * (max(extents) + 1), SparseLayout(extents, wanted))

    return made


def _of_dense(qualname: str, given: Array, shape: object, dtype: object) -> Made:
    """A dense matrix is looked at for what is not zero; whatever that is, it becomes a sparse one."""
    if given.ndim != 2 or given.size == 0 or given.dtype.char not in _MULTIPLIED:
        raise CannotProve("other than a matrix of real or complex numbers")
    if shape is not None or dtype is not None:
        raise CannotProve("another shape or dtype")
    extents: Shape = given.shape
    return Made(qualname, _ELEMENT_BYTES * prod(extents) + 8 * (max(extents) + 1), SparseLayout(extents, given.dtype))


for _qualname in [_name(form, kind) for form in (*_COMPRESSED, "coo") for kind in ("matrix", "array")]:
    rule(_qualname)(_made_of(_qualname))
