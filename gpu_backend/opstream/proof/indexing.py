"""Basic indexing: which window of memory ``x[key]`` is. CuPy's own rules, which differ from NumPy's in places."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType

import numpy as np

from gpu_backend.opstream.layout import Layout, strided
from gpu_backend.opstream.proof.outcome import CannotProve, Unproved, WillRaise, Window, refusal
from gpu_backend.opstream.proof.values import BasicIndex, is_integer

#: Windows already worked out, by layout and key, or by layout, method and what that was given. Bounded: a loop may
#: slice at ever new places.
WINDOWS: dict[tuple[object, ...], Window] = {}
#: The layouts of ``x[0]``, by those of ``x``.
ROWS: dict[Layout, Layout] = {}
#: Those of what ints and slices without a step select, by those of ``x`` and, for each that is given, how many elements
#: of its axis are shown, None of which one is chosen: wherever that lies, nothing else is to be worked out.
RUNS: dict[tuple[object, ...], Layout] = {}
_MOST_WINDOWS = 16_384
#: What stands in slices whose windows are remembered. True, which equals 1, does not.
_BOUNDS = frozenset({int, type(None)})


def getitem(layout: Layout, key: object) -> Window | Unproved:
    """Return the window that a basic index selects.

    Parameters
    ----------
    key
        Ints, slices, None, Ellipsis, or a tuple of such.

    Raises
    ------
    IndexError, ValueError
        As CuPy: out of bounds, too many indices, a zero step.
    """
    found = known_window(layout, key)
    if found is not None:
        return found
    cached = _cache_key(layout, key if type(key) is tuple else (key,))
    return _remember(cached, _select(layout, key)) if cached is not None else _select(layout, key)


def known_window(layout: Layout, key: object) -> Window | None:
    """Return the window that an index selects if there is nothing to work out; None does not mean that there is none.

    It is an int within bounds, or a slice or tuple that has been asked for before.
    """
    if type(key) is slice:
        start, stop, step = key.start, key.stop, key.step
        if (
            (start is None or type(start) is int)
            and (stop is None or type(stop) is int)
            and (step is None or type(step) is int)
        ):  # spelled out: three look-ups would cost more than the one that they are for
            return WINDOWS.get((layout, slice, start, stop, step))
    elif type(key) is tuple:
        cached = _cache_key(layout, key)
        return WINDOWS.get(cached) if cached is not None else None
    elif type(key) is int:
        shape = layout.shape
        if shape:
            extent = shape[0]
            place = key + extent if key < 0 else key
            if 0 <= place < extent:
                return (place * layout.strides[0] if layout.size else 0), _row(layout)
    return None


def window(layout: Layout, key: tuple[object, ...]) -> Window:
    """Return the window that a basic index selects, for the use of other rules."""
    return _window(layout, key)


def remember(layout: Layout, method: str, args: tuple[object, ...], found: Window) -> None:
    """Have ``found`` be what ``method`` shows of arrays that lie so, if ``args`` are ints, or tuples of ints."""
    parts = [part for one in args for part in (one if type(one) is tuple else (one,))]
    if all(type(part) is int for part in parts):
        _remember((layout, method, *args), found)


def _remember(cached: tuple[object, ...], found: Window | Unproved) -> Window | Unproved:
    if isinstance(found, tuple):
        if len(WINDOWS) >= _MOST_WINDOWS:
            WINDOWS.clear()
        WINDOWS[cached] = found
    return found


def _select(layout: Layout, key: object) -> Window | Unproved:
    parts = key if isinstance(key, tuple) else (key,)
    try:
        return _run(layout, parts) or _window(layout, parts)
    except CannotProve as unknown:
        return Unproved(str(unknown))
    except WillRaise as known:
        raise known.release() from None


def _row(layout: Layout) -> Layout:
    """Return the layout of ``x[0]``."""
    row = ROWS.get(layout)
    if row is None:
        if len(ROWS) >= _MOST_WINDOWS:
            ROWS.clear()
        row = ROWS[layout] = strided(layout.shape[1:], layout.strides[1:], layout.dtype)
    return row


def _run(layout: Layout, key: tuple[object, ...]) -> Window | None:
    """Return the window of ints within bounds and slices without a step; None if there is anything else."""
    shape, strides = layout.shape, layout.strides
    if len(key) > len(shape):
        return None
    offset = 0
    lengths: list[int | None] = []
    for axis, part in enumerate(key):
        run = _run_of_axis(part, shape[axis])
        if run is None:
            return None
        offset += run[0] * strides[axis]
        lengths.append(run[1])
    shown = RUNS.get((layout, *lengths))
    return (offset if layout.size else 0), (_shown(layout, lengths) if shown is None else shown)


def _run_of_axis(part: object, extent: int) -> tuple[int, int | None] | None:
    """Return where a part of an index begins, and how many elements it shows; None for these if it chooses one."""
    if type(part) is int:
        place = part + extent if part < 0 else part
        return (place, None) if 0 <= place < extent else None
    if type(part) is not slice or part.step is not None:
        return None
    start, stop = _clipped(part.start, 0, extent), _clipped(part.stop, extent, extent)
    return None if start is None or stop is None else (start, max(0, stop - start))


def _clipped(bound: object, default: int, extent: int) -> int | None:
    """Return where a bound of a slice is; None if it is no int."""
    if type(bound) is int:
        place = bound + extent if bound < 0 else bound
        return 0 if place < 0 else extent if place > extent else place
    return default if bound is None else None


def _shown(layout: Layout, lengths: Sequence[int | None]) -> Layout:
    """Return the layout of what has these ``lengths`` of the first axes, None of which one element is chosen."""
    kept = [(length, layout.strides[axis]) for axis, length in enumerate(lengths) if length is not None]
    shape = tuple([length for length, _ in kept]) + layout.shape[len(lengths) :]
    strides = tuple([stride for _, stride in kept]) + layout.strides[len(lengths) :]
    if len(RUNS) >= _MOST_WINDOWS:
        RUNS.clear()
    shown = RUNS[layout, *lengths] = strided(shape, strides, layout.dtype)
    return shown


def _cache_key(layout: Layout, key: tuple[object, ...]) -> tuple[object, ...] | None:
    """Return what a window depends on, or None if the key holds other than ints and slices of ints."""
    parts: list[object] = [layout]
    for part in key:
        if type(part) is slice:
            start, stop, step = part.start, part.stop, part.step
            if type(start) in _BOUNDS and type(stop) in _BOUNDS and type(step) in _BOUNDS:
                parts += (slice, start, stop, step)
            else:
                return None
        elif type(part) is int or part is None or part is Ellipsis:
            parts.append(part)
        else:
            return None
    return tuple(parts)


def _window(layout: Layout, key: tuple[object, ...]) -> Window:
    expanded = _expand(layout, key)
    shape: list[int] = []
    strides: list[int] = []
    offset = axis = 0
    for part in expanded:
        if part is None or part is Ellipsis:  # of which none is left
            shape.append(1)
            strides.append(0)
            continue
        extent, stride = layout.shape[axis], layout.strides[axis]
        if isinstance(part, slice):
            start, length, step = slice_of(part, extent)
            strides.append(stride * step if length else stride)
            shape.append(length)
            if start > 0:
                offset += stride * start
        else:
            offset += stride * _place(part, axis, extent)
        axis += 1
    shape += layout.shape[axis:]
    strides += layout.strides[axis:]
    return (offset if layout.size else 0), strided(tuple(shape), tuple(strides), layout.dtype)


def _expand(layout: Layout, key: tuple[object, ...]) -> list[BasicIndex]:
    """Return the key with its Ellipsis spelled out, once it is known not to hold too many indices."""
    ellipses = [place for place, part in enumerate(key) if part is Ellipsis]
    if len(ellipses) > 1:
        raise refusal(IndexError, "an index can only have a single ellipsis ('...')")
    indexed = sum(part is not None and part is not Ellipsis for part in key)
    expanded = [_basic(part) for part in key]
    if indexed > layout.ndim:
        raise refusal(
            IndexError,
            f"too many indices for array: array is {layout.ndim}-dimensional, but {indexed} were indexed",
        )
    if ellipses:
        expanded[ellipses[0] : ellipses[0] + 1] = [slice(None)] * (layout.ndim - indexed)
    return expanded


def _basic(part: object) -> BasicIndex:
    if part is None or isinstance(part, (slice, EllipsisType)):
        return part
    if is_integer(part) and not isinstance(part, bool):
        return part
    raise CannotProve(f"an index of {type(part).__name__}")


def _place(part: int | np.integer, axis: int, extent: int) -> int:
    place = int(part)
    if not -(1 << 63) <= place < 1 << 63:
        raise refusal(OverflowError, "Python int too large to convert to C ssize_t")
    if place < 0:
        place += extent
    if not 0 <= place < extent:
        raise refusal(IndexError, f"Index {part} is out of bounds for axis {axis} with size {extent}")
    return place


def slice_of(part: slice, extent: int) -> tuple[int, int, int]:
    """Return start, length and step of a slice of an axis, by CuPy's rules."""
    step = _bound(part.step)
    step = 1 if step is None else step
    if step == 0:
        raise refusal(ValueError, "Slice step must be nonzero.")
    start = _bound(part.start)
    stop = _bound(part.stop)
    start = start + extent if start is not None and start < 0 else start
    stop = stop + extent if stop is not None and stop < 0 else stop
    if step > 0:
        start = 0 if start is None else max(0, min(extent, start))
        stop = extent if stop is None else max(start, min(extent, stop))
        return start, (stop - start - 1) // step + 1, step
    start = extent - 1 if start is None else max(-1, min(extent - 1, start))
    stop = -1 if stop is None else max(-1, min(start, stop))
    return start, (stop - start + 1) // step + 1, step


def _bound(value: object) -> int | None:
    if value is None or is_integer(value):
        return None if value is None else int(value)
    raise CannotProve(f"a slice of {type(value).__name__}")
