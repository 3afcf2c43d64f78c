"""Names that CuPy keeps for older programs, and functions that are made of others: they run in the notebook."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

import numpy as np

from kernelproxy.calls.argument_types import ArrayLike, AxisLike, DTypeLike
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.namespace.creation import asarray
from kernelproxy.namespace.names import make


def _warn(text: str) -> None:
    warnings.warn(text, DeprecationWarning, stacklevel=3)


def row_stack(tup: Sequence[ArrayLike], *, dtype: DTypeLike = None, casting: str = "same_kind") -> Any:
    """Stack rows; the older name of `vstack`."""
    _warn("`row_stack` alias is deprecated. Use `cp.vstack` directly.")
    return make("cupy.vstack")(tup, dtype=dtype, casting=casting)


def product(
    a: ArrayLike, axis: AxisLike = None, dtype: DTypeLike = None, out: ArrayCore | None = None, keepdims: bool = False
) -> Any:
    """Multiply along an axis; the older name of `prod`."""
    _warn("Please use `prod` instead.")
    return make("cupy.prod")(a, axis, dtype, out, keepdims)


def cumproduct(a: ArrayLike, axis: AxisLike = None, dtype: DTypeLike = None, out: ArrayCore | None = None) -> Any:
    """Multiply up along an axis; the older name of `cumprod`."""
    _warn("Please use `cumprod` instead.")
    return make("cupy.cumprod")(a, axis, dtype, out)


def msort(a: ArrayLike) -> Any:
    """Sort along the first axis."""
    _warn("msort is deprecated, use cupy.sort(a, axis=0) instead")
    return make("cupy.sort")(a, axis=0)


def round_(a: ArrayLike, decimals: int = 0, out: ArrayCore | None = None) -> Any:
    """Round; the older name of `round`."""
    _warn("Please use `round` instead.")
    return make("cupy.around")(a, decimals, out=out)


def apply_over_axes(
    func: Callable[[ArrayCore, int], ArrayCore], a: ArrayLike, axes: SupportsIndex | Sequence[SupportsIndex]
) -> Any:
    """Apply ``func(array, axis)`` over each of ``axes`` in turn.

    Raises
    ------
    ValueError
        If what ``func`` returns has neither as many axes as it was given nor one less.
    """
    result = asarray(a)
    count = result.ndim
    for axis in axes if isinstance(axes, (Sequence, np.ndarray)) else (axes,):
        given = operator.index(axis)
        place = given + count if given < 0 else given
        made = func(result, place)
        if made.ndim != result.ndim:
            made = make("cupy.expand_dims")(made, place)
        if made.ndim != result.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        result = made
    return result
