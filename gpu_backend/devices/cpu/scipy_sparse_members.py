"""Methods of sparse matrices in which CuPy is not SciPy: broadcasting of rows and columns, ``out``, ``get``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np
import scipy.sparse

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.call import guarded, settle
from gpu_backend.devices.cpu.dtypes import cast_into
from gpu_backend.devices.cpu.scipy_sparse_wide import choosing, multiplying

_narrows: ContextVar[bool] = ContextVar("_narrows", default=False)

_COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")


def members_of(base: Any) -> dict[str, Any]:
    """Return the methods that a subclass of SciPy's ``base`` shall have."""
    members: dict[str, Any] = {
        "__init__": _init(base),
        "toarray": _toarray(base),
        "todense": _toarray(base),
        "sum": _reduction(base, "sum"),
        "mean": _reduction(base, "mean"),
        "multiply": _multiply(base),
        "count_nonzero": _count_nonzero(base),
        "__truediv__": _divide(base),
    }
    if base._format in ("csr", "csc"):  # `format` of the class is a property
        members |= {name: _broadcasting(base, name) for name in (*_COMPARISONS, "maximum", "minimum")}
        members |= {"_matmul_sparse": multiplying(base), "_minor_index_fancy": choosing(base)}
        members |= {name: _with_wrapped_key(getattr(base, name)) for name in ("__getitem__", "__setitem__")}
    if base._format == "coo":
        members["copy"] = _copy(base)
    if base._format == "dia":
        members["transpose"] = _transpose_by_rows
    members = {name: guarded(method) for name, method in members.items()}
    members["get"] = _get(base)
    members["__iter__"] = _iterate(base)
    if base._format == "coo":
        members |= {"row": property(base.row.fget, _set_row), "col": property(base.col.fget, _set_col)}
    members["mT"] = property(_matrix_transpose)
    if issubclass(base, scipy.sparse.spmatrix):
        members["A"] = property(_old_dense)
        members["H"] = property(_old_hermitian)
        members["_get_index_dtype"] = _index_dtype(base)
    members["__array_priority__"] = 101
    return members


def constructor(kind: type) -> Callable[..., Any]:
    """Return what the public name of the class ``kind`` calls: indices that fit into 32 bits are made such.

    Those of what operations make of a matrix stay as wide as they were, as CuPy's do.
    """

    def construct(*args: object, **kwargs: object) -> Any:
        token = _narrows.set(True)
        try:
            return kind(*args, **kwargs)
        finally:
            _narrows.reset(token)

    construct.__doc__ = kind.__doc__
    return construct


def _index_dtype(base: Any) -> Callable[..., Any]:
    def index_dtype(self: Any, arrays: Any = (), maxval: Any = None, check_contents: bool = False) -> Any:
        return base._get_index_dtype(self, arrays, maxval, check_contents and _narrows.get())

    return index_dtype


def _transpose_by_rows(self: Any, axes: Any = None, copy: bool = False) -> Any:
    """Return the transposed matrix by columns, as CuPy's diagonal matrices do."""
    return self.tocsr().transpose(axes)


def _matrix_transpose(self: Any) -> Any:
    if self.ndim < 2:
        raise ValueError(f"Array must be at least 2-dimensional, but it is {self.ndim}-D")
    return self.transpose()


def _old_dense(self: Any) -> Array:
    warnings.warn("`spmatrix.A` is deprecated; use `.toarray()` instead.", DeprecationWarning, stacklevel=2)
    made: Array = self.toarray()
    return made


def _old_hermitian(self: Any) -> Any:
    warnings.warn("`spmatrix.H` is deprecated; use `.T.conj()` instead.", DeprecationWarning, stacklevel=2)
    return self.transpose().conj()


def _init(base: Any) -> Callable[..., None]:
    def init(self: Any, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, **options: Any) -> None:
        if isinstance(arg1, np.ndarray) and arg1.ndim > 2:
            raise ValueError("expected dimension <= 2 array or matrix")
        if shape is not None and np.size(shape) == 1 and getattr(arg1, "ndim", 1) == 2:
            raise ValueError("a matrix of two dimensions cannot have a shape of one")
        if dtype is not None and np.dtype(dtype).char not in "?fdFD":
            raise ValueError("Only bool, float32, float64, complex64 and complex128 are supported")
        base.__init__(self, arg1, shape=shape, dtype=dtype, copy=copy, **options)
        if self.dtype.char not in "?fdFD":
            raise ValueError("Only bool, float32, float64, complex64 and complex128 are supported")

    return init


def _toarray(base: Any) -> Callable[..., Array]:
    def toarray(self: Any, order: str | None = None, out: Array | None = None) -> Array:
        if order not in (None, "C", "F", "c", "f"):
            raise ValueError("order not understood")
        result = base.toarray(self, order="F" if order in ("F", "f") else "C")
        if out is None:
            made: Array = result
            return made
        out[...] = result
        return out

    return toarray


def _reduction(base: Any, name: str) -> Callable[..., Array]:
    def reduce(self: Any, axis: Any = None, dtype: Any = None, out: Array | None = None) -> Array:
        in_place = self.format == "coo" and not self.has_canonical_format  # SciPy adds duplicates up in the matrix
        given = self.copy() if in_place else self
        result = np.asarray(getattr(base, name)(given, axis=axis, dtype=dtype))
        if out is None:
            return result
        if out.shape != result.shape:
            raise ValueError("dimensions do not match")
        cast_into(out, result)
        return out

    return reduce


def _multiply(base: Any) -> Callable[..., Any]:
    """Return the product of elements by rows, whatever the format of the factors."""

    def multiply(self: Any, other: Any) -> Any:
        made = base.multiply(self, other)
        scales = np.ndim(other) == 0 and not scipy.sparse.issparse(other)
        return made if scales or not scipy.sparse.issparse(made) or made.ndim != 2 else made.tocsr()

    return multiply


def _divide(base: Any) -> Callable[..., Any]:
    """Return the quotient of elements, which is by coordinates where the divisor is dense."""

    def divide(self: Any, other: Any) -> Any:
        made = base.__truediv__(self, other)
        dense = isinstance(other, np.ndarray) and other.ndim
        return made.tocoo() if dense and scipy.sparse.issparse(made) and made.ndim == 2 else made

    return divide


def _count_nonzero(base: Any) -> Callable[..., Any]:
    def count_nonzero(self: Any, axis: Any = None) -> Any:
        if self.ndim == 1 and axis is not None:  # the one axis there is, of which SciPy knows nothing
            if axis not in (0, -1, (0,), (-1,)):
                raise ValueError(f"axis {axis} is out of bounds for array of dimension 1")
            axis = None
        return base.count_nonzero(self, axis=axis)

    return count_nonzero


def _iterate(base: Any) -> Callable[..., Any]:
    def iterate(self: Any) -> Iterator[Any]:
        for item in base.__iter__(self):
            yield settle(item)

    return iterate


def _copy(base: Any) -> Callable[..., Any]:
    def copy(self: Any) -> Any:
        made = base.copy(self)
        made.has_canonical_format = self.has_canonical_format
        return made

    return copy


def _set_row(self: Any, row: Any) -> None:
    """Take ``row`` as it is: SciPy casts it to the type of the one before."""
    if self.ndim < 2:
        raise ValueError("cannot set row attribute of a 1-dimensional sparse array")
    self.coords = (np.asarray(row), self.coords[-1])


def _set_col(self: Any, col: Any) -> None:
    self.coords = (*self.coords[:-1], np.asarray(col))


def _broadcasting(base: Any, name: str) -> Callable[..., Any]:
    """Return the operation in which one row or column of either matrix stands for all."""

    def operate(self: Any, other: Any) -> Any:
        if scipy.sparse.issparse(other) and self.ndim == other.ndim == 2 and other.shape != self.shape:
            self, other = _broadcast(self, other)
        return getattr(base, name)(self, other)

    return operate


def _broadcast(*matrices: Any) -> list[Any]:
    try:
        shape = np.broadcast_shapes(*(matrix.shape for matrix in matrices))
    except ValueError:
        raise ValueError("inconsistent shape") from None
    return [type(matrix)(np.broadcast_to(matrix.toarray(), shape)) for matrix in matrices]


def _with_wrapped_key(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return an item method for which arrays of places count on from the end, as in every array of CuPy."""

    def item(self: Any, key: Any, *value: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if len(parts) <= self.ndim and not any(part is None or part is Ellipsis for part in parts):
            wrapped = tuple(_wrapped(part, length) for part, length in zip(parts, self.shape, strict=False))
            key = wrapped if isinstance(key, tuple) else wrapped[0]
        return method(self, key, *value)

    return item


def _wrapped(part: object, length: int) -> Any:
    if not isinstance(part, (list, np.ndarray)) or not length:
        return part
    places = np.asarray(part)
    return places % length if places.dtype.kind in "iu" and places.ndim else part


def _get(base: Any) -> Callable[..., Any]:
    def get(self: Any, stream: object = None) -> Any:
        """Return a host copy: SciPy's own matrix."""
        host = self.copy()
        host.__class__ = base
        return host

    return get
