"""Rules of functions that give views or copies of an array: reshape, transpose, split, tile, roll, pad, ..."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_backend.opstream.layout import Layout, Shape, contiguous, strided
from gpu_backend.opstream.proof import setitem, windows
from gpu_backend.opstream.proof.arguments import as_axis, as_index, as_shape, broadcast, is_known, native
from gpu_backend.opstream.proof.outcome import CannotProve, Later, Window, refusal
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.shadow import Shadow, array, like, new, unwrapped
from gpu_backend.opstream.proof.value_shapes import selected_by_mask


def _views(*qualnames: str) -> Callable[[Callable[..., Window | Layout]], None]:
    """Register a function of windows as the rule of functions that return a view of their first argument."""

    def register(function: Callable[..., Window | Layout]) -> None:
        @rule(*qualnames, any_dtype=True)
        def view(a: Any, *args: Any, **kwargs: Any) -> Shadow:
            return array(a).window(function(a.layout, *args, **kwargs))

    return register


_views("cupy.swapaxes", "cupy.ndarray.swapaxes")(windows.swapaxes)
_views("cupy.expand_dims")(windows.expand_dims)
_views("cupy.broadcast_to")(windows.broadcast_to)
_views("cupy.diagonal", "cupy.ndarray.diagonal")(windows.diagonal)
_views("cupy.flip")(windows.flip)
_views("cupy.rot90")(windows.rot90)


@rule("cupy.ndarray.view", any_dtype=True)
def view(a: Any, dtype: Any = None, type: Any = None) -> Shadow:
    """As CuPy, for a dtype."""
    if type is not None:
        raise CannotProve("a view of another class")
    return array(a).window(windows.view(a.layout, dtype))


@rule("cupy.transpose", any_dtype=True)
def transpose(a: Any, axes: Any = None) -> Shadow:
    """As CuPy."""
    return array(a).transpose(axes)


@rule("cupy.ndarray.transpose", any_dtype=True)
def transpose_method(a: Any, *axes: Any) -> Shadow:
    """As CuPy."""
    return array(a).transpose(*axes)


@rule("cupy.ndarray.T", any_dtype=True)
def reversed_axes(a: Any) -> Shadow:
    """As CuPy."""
    return array(a).T


@rule("cupy.matrix_transpose", "cupy.linalg.matrix_transpose", "cupy.ndarray.mT", any_dtype=True)
def matrix_transpose(x: Any) -> Shadow:
    """As CuPy, with at least two axes."""
    source = array(x)
    if source.ndim < 2:
        raise CannotProve("fewer than two axes")
    return source.window(windows.swapaxes(source.layout, -1, -2))


@rule("cupy.moveaxis", any_dtype=True)
def moveaxis(a: Any, source: Any, destination: Any) -> Shadow:
    """As CuPy: the array itself if a single axis stays."""
    given = array(a)
    made = windows.moveaxis(given.layout, source, destination)
    if isinstance(source, int) and isinstance(destination, int) and (source - destination) % max(given.ndim, 1) == 0:
        return given
    return given.window(made)


@rule("cupy.rollaxis", any_dtype=True)
def rollaxis(a: Any, axis: Any, start: Any = 0) -> Shadow:
    """As CuPy: the array itself if its axis stays."""
    given = array(a)
    made = windows.rollaxis(given.layout, axis, start)
    moved, before = axis % given.ndim, start + given.ndim if start < 0 else start
    return given if before in (moved, moved + 1) else given.window(made)


@rule("cupy.squeeze", "cupy.ndarray.squeeze", any_dtype=True)
def squeeze(a: Any, axis: Any = None) -> Shadow:
    """As CuPy."""
    return array(a).squeeze(axis)


@rule("cupy.reshape", any_dtype=True)
def reshape(a: Any, newshape: Any, order: Any = "C", *, copy: Any = None) -> Shadow:
    """As CuPy."""
    return array(a).reshape(newshape, order=order, copy=copy)


@rule("cupy.ndarray.reshape", any_dtype=True)
def reshape_method(a: Any, *shape: Any, order: Any = "C", copy: Any = None) -> Shadow:
    """As CuPy."""
    return array(a).reshape(*shape, order=order, copy=copy)


@rule("cupy.ravel", "cupy.ndarray.ravel", any_dtype=True)
def ravel(a: Any, order: Any = "C") -> Shadow:
    """As CuPy."""
    return array(a).ravel(order)


@rule("cupy.ndarray.flatten")
def flatten(a: Any, order: Any = "C") -> Shadow:
    """As CuPy."""
    if order not in ("C", "F", "A", "K"):
        raise CannotProve(f"order {order!r}")
    return array(a).flatten()


@rule("cupy.flipud", any_dtype=True)
def flipud(a: Any) -> Shadow:
    """As CuPy."""
    if array(a).ndim < 1:
        raise refusal(ValueError, "Input must be >= 1-d")
    return array(a)[::-1]


@rule("cupy.fliplr", any_dtype=True)
def fliplr(a: Any) -> Shadow:
    """As CuPy."""
    if array(a).ndim < 2:
        raise refusal(ValueError, "Input must be >= 2-d")
    return array(a)[:, ::-1]


def _sections(a: Any, made: list[Window]) -> list[Shadow]:
    return [a] if len(made) == 1 else [a.window(window) for window in made]


@rule("cupy.array_split", any_dtype=True)
def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Shadow]:
    """As CuPy."""
    return _sections(ary, windows.array_split(array(ary).layout, indices_or_sections, axis))


@rule("cupy.split", any_dtype=True)
def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Shadow]:
    """As CuPy."""
    return _sections(ary, windows.split(array(ary).layout, indices_or_sections, axis))


@rule("cupy.vsplit", any_dtype=True)
def vsplit(ary: Any, indices_or_sections: Any) -> list[Shadow]:
    """As CuPy."""
    if array(ary).ndim <= 1:
        raise refusal(ValueError, "Cannot vsplit an array with less than 2 dimensions")
    return split(ary, indices_or_sections, 0)


@rule("cupy.hsplit", any_dtype=True)
def hsplit(ary: Any, indices_or_sections: Any) -> list[Shadow]:
    """As CuPy."""
    if array(ary).ndim == 0:
        raise refusal(ValueError, "Cannot hsplit a zero-dimensional array")
    return split(ary, indices_or_sections, 0 if ary.ndim == 1 else 1)


@rule("cupy.dsplit", any_dtype=True)
def dsplit(ary: Any, indices_or_sections: Any) -> list[Shadow]:
    """As CuPy."""
    if array(ary).ndim <= 2:
        raise refusal(ValueError, "Cannot dsplit an array with less than 3 dimensions")
    return split(ary, indices_or_sections, 2)


def at_least(ndim: int, a: Shadow) -> Shadow:
    """Return ``cupy.atleast_<ndim>d`` of an array."""
    if a.ndim >= ndim:
        return a
    shape = a.shape
    if a.ndim == 0:
        return a.reshape((1,) * ndim)
    if ndim == 3:
        return a.reshape((1, *shape, 1) if a.ndim == 1 else (*shape, 1))
    return a.reshape((1, *shape))


def _at_least_rule(ndim: int) -> Callable[..., Any]:
    def atleast(*arys: Any) -> Any:
        made = [at_least(ndim, array(one)) for one in arys]
        return made[0] if len(made) == 1 else made

    return atleast


for _ndim in (1, 2, 3):
    rule(f"cupy.atleast_{_ndim}d", any_dtype=True)(_at_least_rule(_ndim))


@rule("cupy.broadcast_arrays", any_dtype=True)
def broadcast_arrays(*args: Any) -> tuple[Shadow, ...]:
    """As CuPy: an array itself if it has the shape already."""
    shape = broadcast([array(one).shape for one in args])
    return tuple([one if one.shape == shape else one.window(windows.broadcast_to(one.layout, shape)) for one in args])


@rule("cupy.tile")
def tile(A: Any, reps: Any) -> Shadow:  # noqa: N803 (CuPy's name)
    """As CuPy."""
    counts = tuple([as_index(one) for one in reps]) if isinstance(reps, (tuple, list)) else (as_index(reps),)
    if any(count < 0 for count in counts):
        raise CannotProve("a negative count")
    source = array(A)
    lead = max(len(counts) - source.ndim, 0)
    if all(count == 1 for count in counts):
        made = like(source.layout, source.dtype, "K")
        return Shadow(made) if not lead else Shadow(made).reshape((1,) * lead + source.shape)
    shape = (1,) * lead + source.shape
    counts = (1,) * (len(shape) - len(counts)) + counts
    made_shape = tuple([extent * count for extent, count in zip(shape, counts, strict=True)])
    if source.size and 0 in made_shape:
        return Shadow(contiguous(_interleaved(shape, counts), source.dtype)).reshape(made_shape)
    return new(made_shape, source.dtype)


def _interleaved(shape: Shape, counts: Shape) -> Shape:
    parts: list[int] = []
    for extent, count in zip(shape, counts, strict=True):
        parts += [extent] if count == 1 else [count] if extent == 1 else [count, extent]
    return tuple(parts)


@rule("cupy.repeat", "cupy.ndarray.repeat")
def repeat(a: Any, repeats: Any, axis: Any = None) -> Shadow:
    """As CuPy, for one count."""
    if isinstance(repeats, np.ndarray):
        raise refusal(TypeError, "'repeats' does not accept numpy.ndarray; convert with cupy.array() first")
    if isinstance(repeats, (list, tuple, Shadow)):
        raise CannotProve("counts that are looked at")
    count = as_index(repeats)
    source = array(a).ravel() if axis is None else a
    place = 0 if axis is None else as_axis(axis, source.ndim)
    if count < 0:
        raise refusal(ValueError, f"'repeats' should not be negative: {count}")
    shape = (*source.shape[:place], source.shape[place] * count, *source.shape[place + 1 :])
    if shape[place] == 0:
        return new(shape, source.dtype)
    expanded = (*source.shape[: place + 1], count, *source.shape[place + 1 :])
    return new(expanded, source.dtype).reshape(shape)


@rule("cupy.roll")
def roll(a: Any, shift: Any, axis: Any = None) -> Shadow:
    """As CuPy, for host shifts."""
    source = array(a)
    if axis is None:
        return roll(source.ravel(), shift, 0).reshape(source.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    for one in axes:
        as_axis(one, source.ndim)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,)
    if not all(isinstance(one, (int, np.integer)) for one in shifts) or len({len(shifts), len(axes), 1}) > 2:
        raise CannotProve("shifts that are arrays, or not one an axis")
    return Shadow(like(source.layout, source.dtype, "K"))


@rule("cupy.resize")
def resize(a: Any, new_shape: Any) -> Shadow:
    """As CuPy, for arrays."""
    return new(as_shape(new_shape), array(a).dtype)


@rule("cupy.pad")
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Shadow:
    """As CuPy, for the simple modes."""
    if not isinstance(array, Shadow) or mode not in ("constant", "empty", "edge", "reflect", "symmetric", "wrap"):
        raise CannotProve(f"mode {mode!r}")
    allowed = {"constant": {"constant_values"}, "reflect": {"reflect_type"}, "symmetric": {"reflect_type"}}
    if not set(kwargs) <= allowed.get(mode, set()):
        raise CannotProve("other keywords")
    if mode not in ("constant", "empty") and array.size == 0:
        raise CannotProve("nothing to repeat")
    value = kwargs.get("constant_values", 0)
    if type(value) not in (int, float) or not -128 <= value <= 127 or (value < 0 and array.dtype.kind == "u"):
        raise CannotProve("values of another kind")
    if type(value) is float and array.dtype.kind not in "fc":
        raise CannotProve("values of another kind")
    widths = _pad_widths(pad_width, array.ndim)
    shape = tuple([extent + before + after for extent, (before, after) in zip(array.shape, widths, strict=True)])
    fortran = array.layout.f_contiguous and not array.layout.c_contiguous
    return new(shape, array.dtype, "F" if fortran else "C")


def _pad_widths(given: Any, ndim: int) -> list[tuple[int, int]]:
    if isinstance(given, int) and not isinstance(given, bool):
        if given < 0:
            raise CannotProve("a negative width")
        return [(given, given)] * ndim
    widths = np.asarray(given)
    if widths.dtype.kind != "i" or widths.size == 0 or widths.min() < 0 or widths.ndim > 2:
        raise CannotProve("widths of another kind")
    if widths.size == 1:
        return [(int(widths.flat[0]),) * 2] * ndim
    if widths.size == 2 and widths.shape != (2, 1):
        return [(int(widths.flat[0]), int(widths.flat[1]))] * ndim
    if widths.size != 2 * ndim:
        raise CannotProve("widths that do not fit")
    return [(int(before), int(after)) for before, after in widths.reshape(ndim, 2)]


@rule("cupy.ndarray.__getitem__", any_dtype=True)
def getitem(a: Any, key: Any) -> Shadow | Later:
    """As CuPy."""
    if isinstance(key, str):
        return array(a).window(_field(a.layout, key))
    by_mask = selected_by_mask(array(a).layout, unwrapped(key)) if _has_mask(key) else None
    return a[key] if by_mask is None else by_mask


def _has_mask(key: Any) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return any(isinstance(part, Shadow) and part.dtype.kind == "b" for part in parts)


@rule("cupy.ndarray.__setitem__", any_dtype=True)
def set_item(a: Any, key: Any, value: Any) -> None:
    """As CuPy, where it surely succeeds or surely fails."""
    if isinstance(key, str):
        setitem.check_assignment(_field(array(a).layout, key)[1], unwrapped(value))
    else:
        setitem.check(array(a).layout, unwrapped(key), unwrapped(value))


def _field(layout: Layout, name: str) -> Window:
    """Return the window on one field of a structured array."""
    fields = layout.dtype.fields
    if fields is None or name not in fields or not is_known(fields[name][0]):
        raise CannotProve("no field of numbers")
    dtype, offset = native(fields[name][0]), fields[name][1]
    if layout.size and any(stride % dtype.itemsize for stride in layout.strides):
        raise refusal(
            ValueError,
            f"result array with dtype {dtype} would not be sufficiently aligned for GPU operations. When using "
            "structured dtypes you must manually align the dtype and its fields; CuPy may provide utilities for this "
            "in the future.",
        )
    if offset % dtype.itemsize or not layout.ndim:
        raise CannotProve("a field whose address may not be aligned")
    return offset, strided(layout.shape, layout.strides, dtype)


@rule("cupy.require")
def require(a: Any, dtype: Any = None, requirements: Any = None) -> Shadow:
    """As CuPy, without requirements."""
    if requirements:
        raise CannotProve("requirements")
    return array(a) if dtype is None else array(a).astype(dtype, copy=False)
