"""Reads the arguments that the functions of ``cupyx.scipy.ndimage`` share.

Only valid calls are proved: what these functions refuse, and in what order, the executor tells.
"""

from __future__ import annotations

import math

import numpy as np

from gpu_backend.opstream.layout import Shape
from gpu_backend.opstream.proof.arguments import as_axis, as_dtype, as_index
from gpu_backend.opstream.proof.outcome import CannotProve
from gpu_backend.opstream.proof.shadow import Array, array, new
from gpu_backend.opstream.proof.values import is_items

#: dtypes that all filters are known to compile for.
REAL = "bBhHiIlLfd"
_MODES = frozenset("reflect constant nearest mirror wrap grid-mirror grid-wrap grid-reflect".split())


def image(value: object, dtypes: str = REAL) -> Array:
    """Return an array that a filter surely takes."""
    found = array(value)
    if found.dtype.char not in dtypes:
        raise CannotProve(f"images of {found.dtype}")
    if found.ndim == 0 or found.size == 0:
        raise CannotProve("an image without pixels")
    return found


def output_for(output: object, source: Array, shape: Shape | None = None) -> Array:
    """Return what a filter writes into: the array given, or a new one of the dtype given or of the image's."""
    extents = source.shape if shape is None else shape
    if isinstance(output, Array):
        if output.shape != extents or output.dtype.char not in REAL:
            raise CannotProve("an output of another kind")
        return output
    if output is None:
        return new(extents, source.dtype)
    if not isinstance(output, (type, np.dtype, str)):
        raise CannotProve(f"an output that is a {type(output).__name__}")
    dtype = as_dtype(output)
    if dtype.char not in REAL:
        raise CannotProve(f"an output of {dtype}")
    return new(extents, dtype)


def one_per_axis(value: object, count: int) -> list[object]:
    """Return the items of a sequence of ``count``, or a single value that often."""
    if is_items(value):
        if len(value) != count:
            raise CannotProve("another number of values than axes")
        return list(value)
    return [value] * count


def numbers_per_axis(value: object, count: int) -> list[float]:
    """Return a finite number for each axis."""
    return [as_number(one) for one in one_per_axis(value, count)]


def as_number(value: object) -> float:
    """Return a finite real number of the host."""
    if not isinstance(value, (int, float, np.integer, np.floating)) or not math.isfinite(value):
        raise CannotProve("a value that is not a finite number")
    return float(value)


def check_modes(mode: object, count: int, known: frozenset[str] = _MODES) -> None:
    """Let pass one mode for all axes, or one for each."""
    if not all(isinstance(one, str) and one in known for one in one_per_axis(mode, count)):
        raise CannotProve(f"boundary mode {mode!r}")


def check_origins(origin: object, widths: list[int]) -> None:
    """Let pass origins inside windows of ``widths``."""
    for place, width in zip(one_per_axis(origin, len(widths)), widths, strict=True):
        if not 0 <= width // 2 + as_index(place) < width:
            raise CannotProve("an origin outside the window")


def axes_of(axes: object, ndim: int) -> list[int]:
    """Return the axes that a filter goes along."""
    if axes is None:
        return list(range(ndim))
    found = [as_axis(axis, ndim) for axis in (axes if is_items(axes) else (axes,))]
    if not found or len(set(found)) != len(found):
        raise CannotProve("no axes, or one twice")
    return found


def widths_of(size: object, count: int) -> list[int]:
    """Return the widths of a window."""
    widths = [as_index(one) for one in one_per_axis(size, count)]
    if min(widths) < 1:
        raise CannotProve("an empty window")
    return widths
