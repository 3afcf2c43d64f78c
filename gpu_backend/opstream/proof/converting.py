"""Rules of copies and conversions: of functions that make a new array after one that there is, or give it back."""

from __future__ import annotations

import numpy as np

from gpu_backend.opstream.proof.arguments import FLOAT64, as_dtype, as_index
from gpu_backend.opstream.proof.joining import from_nest
from gpu_backend.opstream.proof.outcome import CannotProve, refusal
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.shadow import Array, array, new
from gpu_backend.opstream.proof.values import is_items


@rule("cupy.ndarray.astype")
def astype(
    a: Array, dtype: object, order: object = "K", casting: object = None, subok: object = None, copy: object = True
) -> Array:
    """As CuPy."""
    if casting is not None:
        raise refusal(TypeError, "casting is not supported yet")
    if subok is not None:
        raise refusal(TypeError, "subok is not supported yet")
    return a.astype(dtype, "K" if order is None else order, copy=bool(copy))


@rule("cupy.astype")
def astype_function(x: Array, dtype: object, /, *, copy: object = True) -> Array:
    """As CuPy."""
    return x.astype(dtype, copy=bool(copy))


@rule("cupy.ndarray.copy")
def copy_method(a: Array, order: object = "C") -> Array:
    """As CuPy."""
    return a.copy(order)


@rule("cupy.copy")
def copy_function(a: Array, order: object = "K") -> Array:
    """As CuPy."""
    return a.copy(order)


@rule("cupy.ndarray.__copy__")
def copy_protocol(a: Array) -> Array:
    """As CuPy."""
    return a.copy()


@rule("cupy.array")
def array_function(
    obj: object, dtype: object = None, copy: object = True, order: object = "K", subok: object = False,
    ndmin: object = 0, *, blocking: object = False,
) -> Array:  # fmt: skip
    """As CuPy, of an array or a nest of arrays."""
    if subok or copy not in (True, False, None):
        raise CannotProve("subok")
    if is_items(obj):
        return from_nest(obj, dtype, order, as_index(ndmin))
    return _from_array(array(obj), dtype, copy, order, as_index(ndmin))


@rule("cupy.asarray", "cupy.asanyarray")
def asarray(
    a: Array, dtype: object = None, order: object = None, *, copy: object = None, blocking: object = False
) -> Array:
    """As CuPy, of an array."""
    if copy not in (True, False, None):
        raise CannotProve("copy of another kind")
    return _from_array(a, dtype, copy, order, 0)


def _from_array(source: Array, dtype: object, copy: object, order: object, ndmin: int) -> Array:
    wanted = source.dtype if dtype is None else dtype
    made = source.astype(wanted, "K" if order is None else order, copy=bool(copy))
    if copy is False and made is not source:
        raise refusal(ValueError, "Unable to avoid copy while creating an array as requested.")
    if ndmin > made.ndim:
        made = made.reshape((1,) * (ndmin - made.ndim) + made.shape)
    return made


@rule("cupy.ascontiguousarray")
def ascontiguousarray(a: Array, dtype: object = None) -> Array:
    """As CuPy: at least one axis."""
    return _contiguous(a, dtype, "C", a.layout.c_contiguous)


@rule("cupy.asfortranarray")
def asfortranarray(a: Array, dtype: object = None) -> Array:
    """As CuPy: at least one axis."""
    return _contiguous(a, dtype, "F", a.layout.f_contiguous)


def _contiguous(source: Array, dtype: object, order: str, is_already: bool) -> Array:
    wanted = source.dtype if dtype is None else as_dtype(dtype)
    if wanted == source.dtype and is_already:
        return source.reshape(1) if source.ndim == 0 else source
    if source.dtype.kind == "c" and wanted.kind not in "bc":
        raise CannotProve("a ComplexWarning")
    return new(source.shape or (1,), wanted, order)


@rule("cupy.asfarray")
def asfarray(a: Array, dtype: object = np.float64) -> Array:
    """As CuPy, of an array."""
    wanted = as_dtype(dtype)
    return a.astype(wanted if wanted.kind in "fc" else FLOAT64, copy=False)
