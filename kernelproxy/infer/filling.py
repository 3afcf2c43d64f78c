"""Rules of writing where a mask, a diagonal or an index says, apart from ``x[key] = value``."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelproxy.infer import advanced, setitem
from kernelproxy.infer.arguments import as_bool
from kernelproxy.infer.outcome import CannotProve, refusal
from kernelproxy.infer.registry import rule
from kernelproxy.infer.scalars import fills_quietly
from kernelproxy.infer.shadow import Shadow, array, unwrapped

#: dtypes that CUDA adds to atomically.
_ATOMIC = "ilILefd"


def _check_values(values: Any, target: Shadow) -> None:
    """End unless ``values`` can be cast to the dtype of ``target`` and there is one at least."""
    if isinstance(values, Shadow):
        if values.size == 0:
            raise CannotProve("whether a value is needed depends on the mask")
        if values.dtype.kind == "c" and target.dtype.kind not in "bc":
            raise CannotProve("a ComplexWarning")
    elif not fills_quietly(type(values), values, target.dtype):
        raise CannotProve(f"a value of {type(values).__name__}")


@rule("cupy.putmask")
def putmask(a: Any, mask: Any, values: Any) -> None:
    """As CuPy."""
    target, where = array(a), array(mask)
    if target.shape != where.shape:
        raise refusal(ValueError, "mask and data must be the same size")
    if isinstance(values, Shadow) and not np.can_cast(values.dtype, target.dtype):
        words = f"Cannot cast array data from {values.dtype} to {target.dtype} according to the rule 'safe'"
        raise refusal(TypeError, words)
    _check_values(values, target)


@rule("cupy.place")
def place(arr: Any, mask: Any, vals: Any) -> None:
    """As CuPy."""
    target, where = array(arr), array(mask)
    if target.size != where.size:
        raise refusal(ValueError, "Mask and data must be the same size.")
    _check_values(vals, target)


@rule("cupy.fill_diagonal")
def fill_diagonal(a: Any, val: Any, wrap: Any = False) -> None:
    """As CuPy."""
    target = array(a)
    as_bool(wrap)
    if target.ndim < 2:
        raise refusal(ValueError, "array must be at least 2-d")
    if target.ndim > 2 and len(set(target.shape)) != 1:
        raise refusal(ValueError, "All dimensions of input must be of equal length")
    if target.size == 0 or (isinstance(val, Shadow) and val.ndim > 1):
        raise CannotProve("nothing to fill, or many values")
    _check_values(val, target)


@rule("cupy.add.at")
def add_at(a: Any, indices: Any, b: Any = None) -> None:
    """As CuPy, for indices with arrays in them."""
    target = array(a)
    selected = advanced.select(target.layout, unwrapped(indices))
    if not isinstance(selected, advanced.Selection):
        raise CannotProve("an index without arrays")
    if isinstance(b, Shadow) and b.ndim > len(selected.shape):  # nothing, for a mask
        raise CannotProve("more axes than the index selects")
    if target.dtype.char not in _ATOMIC:
        raise CannotProve(f"adding to {target.dtype} one by one")
    setitem.check(target.layout, unwrapped(indices), unwrapped(b))
