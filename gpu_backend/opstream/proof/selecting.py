"""Rules of taking, putting and filling by index."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpu_backend.opstream.layout import Shape, strided
from gpu_backend.opstream.proof.arguments import INT64, as_axis, as_index, broadcast
from gpu_backend.opstream.proof.outcome import CannotProve, refusal
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.scalars import check_cast_value, check_fill
from gpu_backend.opstream.proof.shadow import Shadow, array, new


@rule("cupy.take", "cupy.ndarray.take")
def take(a: Any, indices: Any, axis: Any = None, out: Any = None) -> Shadow:
    """As CuPy: indices are wrapped, never checked."""
    given = array(a)
    shape = _indices_shape(indices)
    place = None
    if axis is not None:
        place = as_axis(axis, max(given.ndim, 1))
    if given.ndim == 0 or axis is None:
        extents = shape
    else:
        assert place is not None
        extents = (*given.shape[:place], *shape, *given.shape[place + 1 :])
    made = new(extents, given.dtype)
    if out is not None:
        if array(out).dtype != given.dtype:
            raise refusal(TypeError, "Output dtype mismatch")
        if out.shape != extents:
            raise refusal(ValueError, "Output shape mismatch")
        made = out
    if given.size == 0 and made.size:
        raise refusal(IndexError, "cannot do a non-empty take from an empty axes.")
    return made


def _indices_shape(indices: Any) -> Shape:
    if isinstance(indices, Shadow):
        if indices.dtype.kind not in "iu":
            raise CannotProve("indices that are no integers")
        return indices.shape
    if isinstance(indices, (int, np.integer)) and not isinstance(indices, bool):
        return ()
    if isinstance(indices, (list, tuple, np.ndarray)):
        made = np.asarray(indices)
        if made.dtype.kind in "iu" or made.size == 0:
            return made.shape
    raise CannotProve(f"indices of {type(indices).__name__}")


@rule("cupy.take_along_axis")
def take_along_axis(a: Any, indices: Any, axis: Any) -> Shadow:
    """As CuPy."""
    if array(indices).dtype.kind not in "iu":
        raise refusal(IndexError, "`indices` must be an integer array")
    given = array(a).ravel() if axis is None else array(a)
    place = as_axis(0 if axis is None else axis, given.ndim)
    if given.ndim != indices.ndim:
        raise refusal(ValueError, "`indices` and `a` must have the same number of dimensions")
    grid = [(1,) * one + (extent,) + (1,) * (given.ndim - one - 1) for one, extent in enumerate(given.shape)]
    grid[place] = indices.shape
    try:
        shape = np.broadcast_shapes(*grid)
    except ValueError:
        raise CannotProve("indices that do not broadcast") from None
    made = new(shape, given.dtype)
    if given.size == 0 and made.size:
        raise refusal(IndexError, "cannot do a non-empty take from an empty axes.")
    return made


@rule("cupy.choose", "cupy.ndarray.choose")
def choose(a: Any, choices: Any, out: Any = None, mode: Any = "raise") -> Shadow:
    """As CuPy, where it does not look at the indices."""
    if mode not in ("wrap", "clip") or out is not None:
        raise CannotProve("indices that are looked at")
    if array(a).shape != array(choices).shape[1:] or a.dtype.kind not in "iu":
        raise CannotProve("indices of another shape")
    return new(a.shape, choices.dtype)


@rule("cupy.ndarray.fill")
def fill(a: Any, value: Any) -> None:
    """As CuPy."""
    if isinstance(value, Shadow):
        if value.shape != ():
            raise refusal(ValueError, "non-scalar cupy.ndarray cannot be used for fill")
        if value.dtype.kind == "c" and array(a).dtype.kind not in "bc":
            raise CannotProve("a ComplexWarning")
        return
    check_fill(value, array(a).dtype)


@rule("cupy.put", "cupy.ndarray.put")
def put(a: Any, ind: Any, v: Any, mode: Any = "wrap") -> None:
    """As CuPy, where it does not look at the indices."""
    if mode not in ("wrap", "clip") or array(a).size == 0:
        raise CannotProve("indices that are looked at")
    _indices_shape(ind)
    if isinstance(v, Shadow):
        if v.dtype.kind == "c":
            raise CannotProve("complex values")
    elif not (type(v) in (int, float) and a.dtype.kind == "f"):
        raise CannotProve(f"values of {type(v).__name__}")


@rule("cupy.copyto")
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = None) -> None:
    """As CuPy, without a mask."""
    if where is not None:
        raise CannotProve("a mask")
    target = array(dst)
    if type(src) in (bool, int, float):
        if casting != "same_kind":
            raise CannotProve("another casting")
        if not np.can_cast(np.array(src).dtype, target.dtype, casting):
            raise CannotProve("a value of another kind")
        check_cast_value(src, target.dtype)
        return
    source = array(src)
    if casting not in ("no", "equiv", "safe", "same_kind"):
        raise CannotProve("another casting")
    if not np.can_cast(source.dtype, target.dtype, casting):
        words = f"Cannot cast {source.dtype} to {target.dtype} in {casting} casting mode"
        raise refusal(TypeError, words)
    lead = max(target.ndim - source.ndim, 0)
    padded = (1,) * lead + source.shape
    extra = len(padded) - target.ndim
    fits = all(extent == 1 for extent in padded[:extra]) and all(
        extent in (1, wanted) for extent, wanted in zip(padded[extra:], target.shape, strict=True)
    )
    if not fits:
        words = f"could not broadcast input array from shape {source.shape} into shape {target.shape}"
        raise refusal(ValueError, words)


@rule("cupy.ravel_multi_index")
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "wrap", order: Any = "C") -> Shadow:
    """As CuPy, where it does not look at the indices."""
    extents = [as_index(extent) for extent in dims]
    if mode not in ("wrap", "clip") or order not in ("C", "F") or not extents:
        raise CannotProve("indices that are looked at")
    if math.prod(extents) > np.iinfo(np.int64).max:
        raise CannotProve("more elements than can be counted")
    if not isinstance(multi_index, (list, tuple)) or len(multi_index) != len(extents):
        raise CannotProve("indices that are no sequence")
    if any(array(one).dtype.kind not in "iu" or one.dtype.char == "L" for one in multi_index):
        raise CannotProve("indices that are no integers")
    return new(broadcast([one.shape for one in multi_index]), INT64)


@rule("cupy.delete")
def delete(arr: Any, indices: Any, axis: Any = None) -> Shadow:
    """As CuPy, for one index or a slice: how many elements those delete is known."""
    given = array(arr)
    if axis is None:
        given, place = (given.ravel() if given.ndim != 1 else given), 0
    else:
        place = as_axis(axis, given.ndim)
    extent = given.shape[place]
    if isinstance(indices, bool) or not isinstance(indices, (int, np.integer, slice)):
        raise CannotProve("indices that are looked at")
    if isinstance(indices, slice):
        kept = extent - len(range(*indices.indices(extent)))
    else:
        if not -extent <= indices < extent:
            raise CannotProve("an index that is not there")
        kept = extent - 1
    if given.size == 0:
        raise CannotProve("an empty array")
    return new((*given.shape[:place], kept, *given.shape[place + 1 :]), given.dtype)


def _triangle_size(rows: int, columns: int, k: int, *, lower: bool) -> int:
    below = sum(min(max(row + k + (1 if lower else 0), 0), columns) for row in range(rows))
    return below if lower else rows * columns - below


def _triangle(n: Any, k: Any, m: Any, *, lower: bool) -> tuple[Shadow, Shadow]:
    rows = as_index(n)
    columns = rows if m is None else as_index(m)
    if rows < 0 or columns < 0 or rows > 100_000:
        raise CannotProve("a triangle of that size")
    made = new((_triangle_size(rows, columns, as_index(k), lower=lower),), INT64)
    return made, made


@rule("cupy.tril_indices")
def tril_indices(n: Any, k: Any = 0, m: Any = None) -> tuple[Shadow, Shadow]:
    """As CuPy."""
    return _triangle(n, k, m, lower=True)


@rule("cupy.triu_indices")
def triu_indices(n: Any, k: Any = 0, m: Any = None) -> tuple[Shadow, Shadow]:
    """As CuPy."""
    return _triangle(n, k, m, lower=False)


@rule("cupy.ix_")
def ix_(*args: Any) -> tuple[Shadow, ...]:
    """As CuPy, for integers: views."""
    made = []
    for place, one in enumerate(args):
        given = array(one)
        if given.ndim != 1:
            raise refusal(ValueError, "Cross index must be 1 dimensional")
        if given.dtype.kind == "b" or given.size == 0:
            raise CannotProve("the number of elements that a mask selects")
        made.append(given.reshape((1,) * place + given.shape + (1,) * (len(args) - place - 1)))
    return tuple(made)


@rule("cupy.lib.stride_tricks.sliding_window_view")
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: Any = False, writeable: Any = False
) -> Shadow:
    """As CuPy, over all axes or one."""
    if writeable is True:
        raise refusal(NotImplementedError, "Writeable views are not supported.")
    given = array(x)
    given_shape = window_shape if isinstance(window_shape, (list, tuple)) else (window_shape,)
    extents = tuple([as_index(one) for one in given_shape])
    axes = tuple(range(given.ndim)) if axis is None else (as_axis(axis, given.ndim),)
    if len(extents) != len(axes) or writeable or subok or any(extent < 0 for extent in extents):
        raise CannotProve("windows that do not fit the axes")
    shape = list(given.shape)
    for place, extent in zip(axes, extents, strict=True):
        shape[place] -= extent - 1
        if shape[place] <= 0:
            raise CannotProve("windows larger than the array")
    strides = (*given.strides, *[given.strides[place] for place in axes])
    return given.window((0, strided((*shape, *extents), strides, given.dtype)))
