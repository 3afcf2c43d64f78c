"""Rules of writing where a mask, a diagonal or an index says, apart from ``x[key] = value``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpu_backend.opstream.proof import advanced, setitem
from gpu_backend.opstream.proof.arguments import as_axis, as_bool
from gpu_backend.opstream.proof.outcome import CannotProve, Warned, refusal
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.scalars import fills_quietly
from gpu_backend.opstream.proof.shadow import Array, array, ufunc, unwrapped

#: For each operation the dtypes that CUDA has an atomic for, and how CuPy lists them.
_INTEGERS = "ilqILQ"
_ATOMIC = {
    "add": (_INTEGERS + "efd", "int32, int64, float16, float32, float64, uint32, uint64"),
    "subtract": ("iI", "int32, uint32,"),
    "maximum": (_INTEGERS + "fd", "int32, int64, float32, float64, uint32, uint64"),
    "minimum": (_INTEGERS + "fd", "int32, int64, float32, float64, uint32, uint64"),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), (_INTEGERS, "int32, int64, uint32, uint64")),
}


def _check_values(values: object, target: Array) -> None:
    """End unless ``values`` can be cast to the dtype of ``target`` and there is one at least."""
    if isinstance(values, Array):
        if values.size == 0:
            raise CannotProve("whether a value is needed depends on the mask")
        if values.dtype.kind == "c" and target.dtype.kind not in "bc":
            raise CannotProve("a ComplexWarning")
    elif not fills_quietly(values, target.dtype):
        raise CannotProve(f"a value of {type(values).__name__}")


@rule("cupy.putmask")
def putmask(a: Array, mask: Array, values: object) -> None:
    """As CuPy."""
    if a.shape != mask.shape:
        raise refusal(ValueError, "mask and data must be the same size")
    if isinstance(values, Array) and not np.can_cast(values.dtype, a.dtype):
        words = f"Cannot cast array data from {values.dtype} to {a.dtype} according to the rule 'safe'"
        raise refusal(TypeError, words)
    _check_values(values, a)


@rule("cupy.place")
def place(arr: Array, mask: Array, vals: object) -> None:
    """As CuPy."""
    if arr.size != mask.size:
        raise refusal(ValueError, "Mask and data must be the same size.")
    _check_values(vals, arr)


@rule("cupy.fill_diagonal")
def fill_diagonal(a: Array, val: object, wrap: object = False) -> None:
    """As CuPy."""
    as_bool(wrap)
    if a.ndim < 2:
        raise refusal(ValueError, "array must be at least 2-d")
    if a.ndim > 2 and len(set(a.shape)) != 1:
        raise refusal(ValueError, "All dimensions of input must be of equal length")
    if a.size == 0 or (isinstance(val, Array) and val.ndim > 1):
        raise CannotProve("nothing to fill, or many values")
    _check_values(val, a)


@rule("cupy.put_along_axis")
def put_along_axis(arr: Array, indices: Array, values: object, axis: object) -> None:
    """As CuPy, along an axis."""
    if axis is None:
        raise CannotProve("an array as one long vector")
    place = as_axis(axis, arr.ndim)
    if indices.dtype.kind not in "iu":
        raise refusal(IndexError, "`indices` must be an integer array")
    if arr.ndim != indices.ndim:
        raise refusal(ValueError, "`indices` and `arr` must have the same number of dimensions")
    key = [np.ix_(*map(range, arr.shape))[one] for one in range(arr.ndim)]
    setitem.check(arr.layout, (*key[:place], indices.layout, *key[place + 1 :]), unwrapped(values))


def _updated(a: object, indices: object, value: object, name: str) -> None:
    """End with what CuPy raises for ``cupy.<name>.at(a, indices, value)``, if it raises."""
    target, chars, listed = array(a), *_ATOMIC[name]
    selected = advanced.select(target.layout, unwrapped(indices))
    if not isinstance(selected, advanced.Selection):
        window = target.window(selected)
        if window.size == 0 or not isinstance(value, (Array, int, float, complex, np.generic)):
            raise CannotProve(f"a value of {type(value).__name__}, or nothing to update")
        ufunc(name, window, value, out=window)
        return
    if isinstance(value, Array) and value.ndim > len(selected.shape):  # nothing, for a mask
        raise CannotProve("more axes than the index selects")
    setitem.check(target.layout, unwrapped(indices), unwrapped(value))
    if target.dtype.char not in chars:
        if selected.mask_ndim is not None:
            raise CannotProve(f"{name} of {target.dtype} under a mask, which may not compile")
        raise refusal(TypeError, f"cupy.{name}.at only supports {listed} as data type")


def _at(name: str) -> Callable[..., None]:
    def at(a: object, indices: object, b: object = None) -> None:
        _updated(a, indices, b, name)

    return at


for _name in _ATOMIC:
    rule(f"cupy.{_name}.at")(_at(_name))


def _scattered(name: str, message: str) -> Callable[..., Warned]:
    def scattered(a: object, slices: object, value: object) -> Warned:
        _updated(a, slices, value, name)
        return Warned(None, "builtins.DeprecationWarning", message)

    return scattered


for _name, _message in {
    "add": "`ndarray.scatter_add` is deprecated. Please use `cupy.add.at` instead.",
    "max": "`ndarray.scatter_max` is deprecated Please use `cupy.maximum.at` instead.",
    "min": "`ndarray.scatter_min` is deprecated Please use `cupy.minimum.at` instead.",
}.items():
    _full = {"max": "maximum", "min": "minimum"}.get(_name, _name)
    rule(f"cupyx.scatter_{_name}", f"cupy.ndarray.scatter_{_name}")(_scattered(_full, _message))
