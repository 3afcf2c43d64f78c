"""Rules of taking, putting and filling by index."""

from __future__ import annotations

import math

import numpy as np

from gpu_backend.opstream.layout import Shape, strided
from gpu_backend.opstream.proof.arguments import INT64, as_axis, as_index, as_items, broadcast
from gpu_backend.opstream.proof.outcome import CannotProve, refusal
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.scalars import check_cast_value, check_fill
from gpu_backend.opstream.proof.shadow import Array, array, arrays, new
from gpu_backend.opstream.proof.values import is_items, is_real


@rule("cupy.take", "cupy.ndarray.take")
def take(a: Array, indices: object, axis: object = None, out: Array | None = None) -> Array:
    """As CuPy: indices are wrapped, never checked."""
    shape = _indices_shape(indices)
    place = None
    if axis is not None:
        place = as_axis(axis, max(a.ndim, 1))
    if a.ndim == 0 or axis is None:
        extents = shape
    else:
        assert place is not None
        extents = (*a.shape[:place], *shape, *a.shape[place + 1 :])
    made = new(extents, a.dtype)
    if out is not None:
        if out.dtype != a.dtype:
            raise refusal(TypeError, "Output dtype mismatch")
        if out.shape != extents:
            raise refusal(ValueError, "Output shape mismatch")
        made = out
    if a.size == 0 and made.size:
        raise refusal(IndexError, "cannot do a non-empty take from an empty axes.")
    return made


def _indices_shape(indices: object) -> Shape:
    if isinstance(indices, Array):
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
def take_along_axis(a: Array, indices: Array, axis: object) -> Array:
    """As CuPy."""
    if indices.dtype.kind not in "iu":
        raise refusal(IndexError, "`indices` must be an integer array")
    given = a.ravel() if axis is None else a
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
def choose(a: Array, choices: Array, out: Array | None = None, mode: object = "raise") -> Array:
    """As CuPy, where it does not look at the indices."""
    if mode not in ("wrap", "clip") or out is not None:
        raise CannotProve("indices that are looked at")
    if a.shape != choices.shape[1:] or a.dtype.kind not in "iu":
        raise CannotProve("indices of another shape")
    return new(a.shape, choices.dtype)


@rule("cupy.ndarray.fill")
def fill(a: Array, value: object) -> None:
    """As CuPy."""
    if isinstance(value, Array):
        if value.shape != ():
            raise refusal(ValueError, "non-scalar cupy.ndarray cannot be used for fill")
        if value.dtype.kind == "c" and a.dtype.kind not in "bc":
            raise CannotProve("a ComplexWarning")
        return
    check_fill(value, a.dtype)


@rule("cupy.put", "cupy.ndarray.put")
def put(a: Array, ind: object, v: object, mode: object = "wrap") -> None:
    """As CuPy, where it does not look at the indices."""
    if mode not in ("wrap", "clip") or a.size == 0:
        raise CannotProve("indices that are looked at")
    _indices_shape(ind)
    if isinstance(v, Array):
        if v.dtype.kind == "c":
            raise CannotProve("complex values")
    elif not (type(v) in (int, float) and a.dtype.kind == "f"):
        raise CannotProve(f"values of {type(v).__name__}")


@rule("cupy.copyto")
def copyto(dst: Array, src: object, casting: object = "same_kind", where: object = None) -> None:
    """As CuPy, without a mask."""
    if where is not None:
        raise CannotProve("a mask")
    if type(src) is bool or is_real(src):
        if casting != "same_kind":
            raise CannotProve("another casting")
        if not np.can_cast(np.array(src).dtype, dst.dtype, casting):
            raise CannotProve("a value of another kind")
        check_cast_value(src, dst.dtype)
        return
    source = array(src)
    if casting not in ("no", "equiv", "safe", "same_kind"):
        raise CannotProve("another casting")
    if not np.can_cast(source.dtype, dst.dtype, casting):
        words = f"Cannot cast {source.dtype} to {dst.dtype} in {casting} casting mode"
        raise refusal(TypeError, words)
    lead = max(dst.ndim - source.ndim, 0)
    padded = (1,) * lead + source.shape
    extra = len(padded) - dst.ndim
    fits = all(extent == 1 for extent in padded[:extra]) and all(
        extent in (1, wanted) for extent, wanted in zip(padded[extra:], dst.shape, strict=True)
    )
    if not fits:
        words = f"could not broadcast input array from shape {source.shape} into shape {dst.shape}"
        raise refusal(ValueError, words)


@rule("cupy.ravel_multi_index")
def ravel_multi_index(multi_index: object, dims: object, mode: object = "wrap", order: object = "C") -> Array:
    """As CuPy, where it does not look at the indices."""
    extents = [as_index(extent) for extent in as_items(dims)]
    if mode not in ("wrap", "clip") or order not in ("C", "F") or not extents:
        raise CannotProve("indices that are looked at")
    if math.prod(extents) > np.iinfo(np.int64).max:
        raise CannotProve("more elements than can be counted")
    if not is_items(multi_index) or len(multi_index) != len(extents):
        raise CannotProve("indices that are no sequence")
    given = arrays(multi_index)
    if any(one.dtype.kind not in "iu" or one.dtype.char == "L" for one in given):
        raise CannotProve("indices that are no integers")
    return new(broadcast([one.shape for one in given]), INT64)


@rule("cupy.delete")
def delete(arr: Array, indices: object, axis: object = None) -> Array:
    """As CuPy, for one index or a slice: how many elements those delete is known."""
    if axis is None:
        arr, place = (arr.ravel() if arr.ndim != 1 else arr), 0
    else:
        place = as_axis(axis, arr.ndim)
    extent = arr.shape[place]
    if isinstance(indices, bool) or not isinstance(indices, (int, np.integer, slice)):
        raise CannotProve("indices that are looked at")
    if isinstance(indices, slice):
        kept = extent - len(range(*indices.indices(extent)))
    else:
        if not -extent <= indices < extent:
            raise CannotProve("an index that is not there")
        kept = extent - 1
    if arr.size == 0:
        raise CannotProve("an empty array")
    return new((*arr.shape[:place], kept, *arr.shape[place + 1 :]), arr.dtype)


def _triangle_size(rows: int, columns: int, k: int, *, lower: bool) -> int:
    below = sum(min(max(row + k + (1 if lower else 0), 0), columns) for row in range(rows))
    return below if lower else rows * columns - below


def _triangle(n: object, k: object, m: object, *, lower: bool) -> tuple[Array, Array]:
    rows = as_index(n)
    columns = rows if m is None else as_index(m)
    if rows < 0 or columns < 0 or rows > 100_000:
        raise CannotProve("a triangle of that size")
    made = new((_triangle_size(rows, columns, as_index(k), lower=lower),), INT64)
    return made, made


@rule("cupy.tril_indices")
def tril_indices(n: object, k: object = 0, m: object = None) -> tuple[Array, Array]:
    """As CuPy."""
    return _triangle(n, k, m, lower=True)


@rule("cupy.triu_indices")
def triu_indices(n: object, k: object = 0, m: object = None) -> tuple[Array, Array]:
    """As CuPy."""
    return _triangle(n, k, m, lower=False)


@rule("cupy.ix_")
def ix_(*args: object) -> tuple[Array, ...]:
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
    x: Array, window_shape: object, axis: object = None, *, subok: object = False, writeable: object = False
) -> Array:
    """As CuPy, over all axes or one."""
    if writeable is True:
        raise refusal(NotImplementedError, "Writeable views are not supported.")
    given_shape = window_shape if is_items(window_shape) else (window_shape,)
    extents = tuple([as_index(one) for one in given_shape])
    axes = tuple(range(x.ndim)) if axis is None else (as_axis(axis, x.ndim),)
    if len(extents) != len(axes) or writeable or subok or any(extent < 0 for extent in extents):
        raise CannotProve("windows that do not fit the axes")
    shape = list(x.shape)
    for place, extent in zip(axes, extents, strict=True):
        shape[place] -= extent - 1
        if shape[place] <= 0:
            raise CannotProve("windows larger than the array")
    strides = (*x.strides, *[x.strides[place] for place in axes])
    return x.window((0, strided((*shape, *extents), strides, x.dtype)))
