"""Indexing by arrays: the shape of what ``x[key]`` selects. Index arrays are never range-checked: CuPy wraps them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpu_backend.opstream.layout import Layout, Shape, contiguous
from gpu_backend.opstream.proof.indexing import window
from gpu_backend.opstream.proof.outcome import CannotProve, Window, refusal
from gpu_backend.opstream.proof.reshaping import permuted
from gpu_backend.opstream.proof.values import is_tuple


class Selection(NamedTuple):
    """What an index with arrays in it selects from a view.

    Attributes
    ----------
    view
        The array after the basic parts of the index, its indexed axes side by side.
    axis
        The first indexed axis of ``view``.
    shape
        Of the selected elements; meaningless for a mask.
    mask_ndim
        The number of axes of the mask, None if the index arrays are of integers.
    known
        How many elements the mask selects, if that is known: of a mask of the host it is.
    """

    view: Layout
    axis: int
    shape: Shape
    mask_ndim: int | None
    known: int | None = None

    @property
    def masked_shape(self) -> Shape:
        """The shape of what a mask with a known count selects."""
        assert self.mask_ndim is not None
        assert self.known is not None
        return (*self.view.shape[: self.axis], self.known, *self.view.shape[self.axis + self.mask_ndim :])


class _Index(NamedTuple):
    """An index array: its shape, and for a mask the number of axes it stands for."""

    shape: Shape
    mask: bool
    known: int | None = None

    @property
    def axes(self) -> int:
        return len(self.shape) if self.mask else 1


def take(layout: Layout, key: object) -> Layout:
    """Return the layout of ``x[key]``, a new array, for a key with integer arrays in it."""
    selected = select(layout, key)
    if not isinstance(selected, Selection):
        raise CannotProve("a view")
    if selected.mask_ndim is not None:
        if selected.known is None:
            raise CannotProve("the number of elements that a mask selects")
        return contiguous(selected.masked_shape, layout.dtype)
    made = contiguous(selected.shape, layout.dtype)
    if selected.view.size == 0 and made.size:
        raise refusal(IndexError, "cannot do a non-empty take from an empty axes.")
    return made


def select(layout: Layout, key: object) -> Selection | Window:
    """Return what an index selects: a window, or the elements that its arrays name."""
    parts = [_part(part) for part in (key if is_tuple(key) else (key,))]
    arrays = [part for part in parts if isinstance(part, _Index)]
    if not arrays:
        return window(layout, tuple(parts))
    _check_count(layout, parts)
    places, view, apart = _view(layout, parts)
    axis = places[0]
    if apart:
        indexed = [place + step for place, one in zip(places, arrays, strict=True) for step in range(one.axes)]
        view = permuted(view, (*indexed, *[place for place in range(view.ndim) if place not in indexed]))
        axis = 0
    count = sum(one.axes for one in arrays)
    if len(arrays) == 1 and arrays[0].mask:
        return Selection(view, axis, (), count, arrays[0].known if 0 not in arrays[0].shape else None)
    if any(one.mask for one in arrays):
        raise CannotProve("the number of elements that a mask selects")
    shape = _together([one.shape for one in arrays])
    return Selection(view, axis, (*view.shape[:axis], *shape, *view.shape[axis + count :]), None)


def _part(part: object) -> object:
    """Return one part of a key, index arrays as `_Index`."""
    if part is None or part is Ellipsis or isinstance(part, slice):
        return part
    if isinstance(part, Layout):
        if part.dtype.kind not in "biu":
            raise refusal(
                IndexError,
                f"arrays used as indices must be of integer or boolean type. (actual: {part.dtype.type})",
            )
        return _Index(part.shape, part.dtype.kind == "b")
    if isinstance(part, (bool, np.bool_)):
        return _Index((), mask=True)
    if isinstance(part, (int, np.integer)):
        return part
    if isinstance(part, (list, np.ndarray)):
        made = np.asarray(part)
        if made.size == 0 and isinstance(part, list):
            return _Index(made.shape, mask=False)
        if made.dtype.kind in "biu":
            is_mask = made.dtype.kind == "b"
            return _Index(made.shape, is_mask, int(np.count_nonzero(made)) if is_mask else None)
        if isinstance(part, np.ndarray) and part.size:
            words = f"arrays used as indices must be of integer or boolean type. (actual: {part.dtype.type})"
            raise refusal(IndexError, words)
    raise CannotProve(f"an index of {type(part).__name__}")


def _check_count(layout: Layout, parts: list[object]) -> None:
    if sum(part is Ellipsis for part in parts) > 1:
        raise refusal(IndexError, "an index can only have a single ellipsis ('...')")
    indexed = sum(_axes(part) for part in parts)
    if indexed > layout.ndim:
        raise refusal(
            IndexError,
            f"too many indices for array: array is {layout.ndim}-dimensional, but {indexed} were indexed",
        )


def _axes(part: object) -> int:
    if part is None or part is Ellipsis:
        return 0
    return part.axes if isinstance(part, _Index) else 1


def _view(layout: Layout, parts: list[object]) -> tuple[list[int], Layout, bool]:
    """Return the first view axis of each index array, the view, and whether the array-like parts stand apart."""
    basic: list[object] = []
    places: list[int] = []
    flags: list[bool] = []
    axis = place = 0
    rest = layout.ndim - sum(_axes(part) for part in parts)
    if not any(part is Ellipsis for part in parts):
        parts = [*parts, Ellipsis]
    for part in parts:
        if isinstance(part, _Index):
            _check_mask(layout, part, axis)
            places.append(place)
            basic += [slice(None)] * part.axes
            axis, place = axis + part.axes, place + part.axes
        else:
            basic.append(part)
            axis += rest if part is Ellipsis else _axes(part)
            place += rest if part is Ellipsis else int(part is None or isinstance(part, slice))
        flags.append(isinstance(part, (_Index, int, np.integer)))
    return places, window(layout, tuple(basic))[1], _stand_apart(flags)


def _stand_apart(flags: list[bool]) -> bool:
    """Tell whether something else stands between the parts that are arrays or ints."""
    first = flags.index(True)
    last = len(flags) - flags[::-1].index(True)
    return not all(flags[first:last])


def _check_mask(layout: Layout, part: _Index, axis: int) -> None:
    if not part.mask:
        return
    for place, (extent, wanted) in enumerate(zip(part.shape, layout.shape[axis : axis + part.axes], strict=True), axis):
        if extent not in (0, wanted):
            raise refusal(
                IndexError,
                f"boolean index did not match indexed array along dimension {place}; dimension is {wanted} "
                f"but corresponding boolean dimension is {extent}",
            )


def _together(shapes: list[Shape]) -> Shape:
    if len(shapes) == 1:
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        text = "operands could not be broadcast together with shapes" + " ".join(map(str, shapes))
        raise refusal(ValueError, text) from None
