"""Arrays from other data: ``array`` and its sisters, copies, casts and views."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from gpu_backend.devices.cpu.arrays import Array, Casting, DType, Order, as_order, in_c_order
from gpu_backend.devices.cpu.dtypes import (
    as_dtype,
    cast_into,
    require_castable,
    require_supported,
    store,
    warn_complex,
)
from gpu_backend.devices.cpu.memory import LEDGER
from gpu_backend.devices.cpu.table import define


def converted(array: Array, dtype: DTypeLike, order: str | None = "K", copy: bool | None = True) -> Array:
    """Return ``array`` with a dtype and memory order; ``copy`` None copies only where it must.

    Raises
    ------
    ValueError
        If ``copy`` is False and a copy is needed.
    """
    target = as_dtype(dtype)
    wanted = as_order("K" if order is None else order)
    if not copy and is_as_wanted(array, target, wanted):
        return array
    if copy is False:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    if array.dtype.kind == "c" and target.kind not in "bcV":
        warn_complex()
    LEDGER.require(array.size * target.itemsize)
    result = np.empty_like(array, target, wanted, subok=False)
    if target.kind == "V":
        result[...] = array
    else:
        cast_into(result, array)
    return result


def is_as_wanted(array: Array, dtype: DType, order: Order) -> bool:
    """Tell whether ``array`` has the dtype and lies in the order, so that it need not be copied."""
    flags = array.flags
    if dtype != array.dtype or order == "K":
        return bool(dtype == array.dtype)
    if order == "A":
        return bool(flags.c_contiguous or flags.f_contiguous)
    return bool(flags.c_contiguous if order == "C" else flags.f_contiguous)


def from_object(obj: object, dtype: Any, order: str | None, ndmin: int = 0) -> Array:
    """Return a new array from nested sequences and scalars, in C order unless ``order`` is "F"."""
    fortran = order is not None and order.upper() == "F"
    chosen = None if dtype is None else require_supported(np.dtype(dtype))
    array = np.array(obj, dtype=chosen, order="F" if fortran else "C", ndmin=ndmin)
    require_supported(array.dtype.newbyteorder("=") if array.dtype.kind in "biufc" else array.dtype)
    return array


@define("cupy.array")
def array(
    obj: Any,
    dtype: Any = None,
    copy: bool | None = True,
    order: str | None = "K",
    subok: bool = False,
    ndmin: int = 0,
    *,
    blocking: bool = False,
) -> Array:
    if subok:
        raise NotImplementedError
    if not isinstance(obj, np.ndarray):
        return from_object(obj, dtype, order, ndmin)
    result = converted(obj, obj.dtype if dtype is None else dtype, order, copy)
    if ndmin > result.ndim:
        result = result.reshape((1,) * (ndmin - result.ndim) + result.shape)
    return result


@define("cupy.asarray", "cupy.asanyarray")
def asarray(
    a: object, dtype: Any = None, order: str | None = None, *, copy: Any = None, blocking: bool = False
) -> Array:
    return array(a, dtype, copy, order)


@define("cupy.ascontiguousarray")
def ascontiguousarray(a: object, dtype: object = None) -> Array:
    return _at_least_1d(array(a, dtype, None, "C"))


@define("cupy.asfortranarray")
def asfortranarray(a: object, dtype: object = None) -> Array:
    return _at_least_1d(array(a, dtype, None, "F"))


def _at_least_1d(result: Array) -> Array:
    return result.reshape(1) if result.ndim == 0 else result


@define("cupy.copy")
def copy(a: object, order: str = "K") -> Array:
    a = a if isinstance(a, np.ndarray) else from_object(a, None, order)
    return converted(a, a.dtype, order)


@define("cupy.ndarray.copy")
def copy_method(a: Array, order: str = "C") -> Array:
    return converted(a, a.dtype, order)


@define("cupy.ndarray.astype")
def astype_method(
    a: Array,
    dtype: DTypeLike,
    order: str | None = "K",
    casting: object = None,
    subok: object = None,
    copy: object = True,
) -> Array:
    if casting is not None:
        raise TypeError("casting is not supported yet")
    if subok is not None:
        raise TypeError("subok is not supported yet")
    return converted(a, dtype, order, True if copy else None)


@define("cupy.astype")
def astype(x: Array, dtype: DTypeLike, /, *, copy: bool = True) -> Array:
    if not isinstance(x, np.ndarray):
        raise TypeError(f"Input should be a CuPy array. It is a {type(x)} instead.")
    return astype_method(x, dtype, copy=copy)


@define("cupy.asfarray")
def asfarray(a: object, dtype: DTypeLike = np.float64) -> Array:
    chosen = np.dtype(dtype)
    return asarray(a, np.float64 if chosen.kind not in "fc" else chosen)


@define("cupy.copyto")
def copyto(dst: Array, src: object, casting: Casting = "same_kind", where: object = None) -> None:
    _require_copyable(src, dst.dtype, casting)
    if where is None and not dst.size and not isinstance(src, np.ndarray):
        return
    value = _as_operand(src)
    given = value.shape
    while value.ndim > dst.ndim and value.shape[0] == 1:
        value = value[0]
    try:
        value = np.broadcast_to(value, dst.shape)
    except ValueError:
        text = f"could not broadcast input array from shape {given} into shape {dst.shape}"
        raise ValueError(text) from None
    if where is None:
        store(dst, value)
        return
    chosen = np.empty(dst.shape, dst.dtype)
    store(chosen, value)
    np.copyto(dst, chosen, where=where)


def _require_copyable(src: Any, dtype: DType, casting: Casting) -> None:
    """Refuse what ``casting`` does not let into ``dtype``. Of Python's numbers NumPy is asked, as CuPy does."""
    if type(src) in (bool, int, float, complex):
        with np.errstate(invalid="warn", over="warn"):
            np.copyto(np.empty((), dtype), src, casting=casting)
        return
    source = src if isinstance(src, (str, bytes)) else src.dtype  # NumPy takes text for the name of a type
    if not np.can_cast(source, dtype, casting):
        raise TypeError(f"Cannot cast {source!s} to {dtype} in {casting} casting mode")


def _as_operand(src: object) -> Array:
    """Return what a kernel gets of ``src``: an int as an int64, or as an uint64 if it is none."""
    if type(src) is int:
        return np.asarray(src, np.uint64 if src >= 1 << 63 else np.int64)
    return np.asarray(src)


@define("cupy.ndarray.view")
def view(a: Array, dtype: Any = None, type: object = None) -> Array:
    if type is not None and not (isinstance(type, _Class) and issubclass(type, np.ndarray)):
        raise ValueError("Type must be a sub-type of ndarray type")
    if dtype is None or (isinstance(dtype, _Class) and issubclass(dtype, np.ndarray)):
        return a.view()
    hash(dtype)  # as in `as_dtype`, which would refuse more
    chosen = np.dtype(dtype)
    if chosen.itemsize != a.dtype.itemsize:
        if a.ndim == 0:
            raise ValueError("Changing the dtype of a 0d array is only supported if the itemsize is unchanged")
        if a.shape[-1] != 1 and a.size and a.strides[-1] != a.dtype.itemsize:
            raise ValueError("To change to a dtype of a different size, the last axis must be contiguous")
    return a.view(chosen)


_Class = type


@define("cupy.ndarray.byteswap")
def byteswap(a: Array, inplace: bool = False) -> Array:
    if a.dtype.names is not None:
        raise TypeError("byteswap is not supported for structured dtypes")
    return a.byteswap(inplace) if inplace else in_c_order(a).byteswap()


@define("cupy.ndarray.flatten")
def flatten(a: Array, order: Order = "C") -> Array:
    return a.flatten(order)


@define("cupy.require")
def require(a: ArrayLike, dtype: Any = None, requirements: Any = None) -> Array:
    if isinstance(requirements, str):
        requirements = (requirements,)
    unknown = [r for r in requirements or () if r.upper() not in _REQUIREMENTS]
    if unknown:
        raise ValueError(f'Incorrect flag "{unknown[0]}" in requirements')
    wanted = {_REQUIREMENTS[r.upper()] for r in requirements or ()}
    if {"C", "F"} <= wanted:
        raise ValueError("Cannot specify both C and F order")
    order = "F" if "F" in wanted else "C" if "C" in wanted else "K"
    try:
        result = array(a, dtype, None, order)
    except TypeError:
        raise ValueError(f'Incorrect dtype "{dtype}" provided') from None
    if "O" in wanted and result.base is not None:
        result = converted(result, result.dtype, order)
    return result


_REQUIREMENTS = {
    "C": "C", "C_CONTIGUOUS": "C", "CONTIGUOUS": "C",
    "F": "F", "F_CONTIGUOUS": "F", "FORTRAN": "F",
    "O": "O", "OWNDATA": "O",
}  # fmt: skip


@define("cupy.asarray_chkfinite")
def asarray_chkfinite(a: object, dtype: object = None, order: str | None = None) -> Array:
    result = asarray(a, dtype, order)
    if not np.isfinite(result).all():
        raise ValueError("array must not contain Infs or NaNs")
    return result


@define("cupy.concatenate", "cupy.concat")
def concatenate(
    tup: Any, axis: int | None = 0, out: Array | None = None, *, dtype: Any = None, casting: Casting = "same_kind"
) -> Array:
    if out is not None and dtype is not None:
        raise TypeError("concatenate() only takes `out` or `dtype` as an argument, but both were provided.")
    arrays = [np.asarray(a) for a in tup]
    if not arrays:
        raise ValueError("Cannot concatenate from empty tuple")
    if axis is None:
        arrays, axis = [a.ravel() for a in arrays], 0
    if out is None:
        result = np.concatenate(arrays, axis, dtype=dtype, casting=casting)
        return in_c_order(result) if result.ndim else result
    result = np.concatenate(arrays, axis)
    if result.shape != out.shape:
        raise ValueError("Output array is the wrong shape")
    require_castable(result.dtype, out.dtype, casting)
    cast_into(out, result)
    return out
