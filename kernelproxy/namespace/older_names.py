"""Names that CuPy keeps for older programs, and functions that are made of others: they run in the notebook."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelproxy.namespace.creation import asarray
from kernelproxy.namespace.names import make


def _warn(text: str) -> None:
    warnings.warn(text, DeprecationWarning, stacklevel=3)


def row_stack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Stack rows; the older name of `vstack`."""
    _warn("`row_stack` alias is deprecated. Use `cp.vstack` directly.")
    return make("cupy.vstack")(tup, dtype=dtype, casting=casting)


def product(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """Multiply along an axis; the older name of `prod`."""
    _warn("Please use `prod` instead.")
    return make("cupy.prod")(a, axis, dtype, out, keepdims)


def cumproduct(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Multiply up along an axis; the older name of `cumprod`."""
    _warn("Please use `cumprod` instead.")
    return make("cupy.cumprod")(a, axis, dtype, out)


def msort(a: Any) -> Any:
    """Sort along the first axis."""
    _warn("msort is deprecated, use cupy.sort(a, axis=0) instead")
    return make("cupy.sort")(a, axis=0)


def round_(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """Round; the older name of `round`."""
    _warn("Please use `round` instead.")
    return make("cupy.around")(a, decimals, out=out)


def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    """Apply ``func(array, axis)`` over each of ``axes`` in turn.

    Raises
    ------
    ValueError
        If what ``func`` returns has neither as many axes as it was given nor one less.
    """
    result = asarray(a)
    count = result.ndim
    for axis in (axes,) if np.ndim(axes) == 0 else axes:
        place = axis + count if axis < 0 else axis
        made = func(result, place)
        if made.ndim != result.ndim:
            made = make("cupy.expand_dims")(made, place)
        if made.ndim != result.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        result = made
    return result
