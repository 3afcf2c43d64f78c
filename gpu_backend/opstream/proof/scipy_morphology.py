"""Rules of the morphology of ``cupyx.scipy.ndimage``."""

from __future__ import annotations

from typing import Any

from gpu_backend.opstream.layout import contiguous, strided
from gpu_backend.opstream.proof.arguments import BOOL, as_index
from gpu_backend.opstream.proof.images import (
    REAL,
    as_number,
    axes_of,
    check_modes,
    check_origins,
    image,
    one_per_axis,
    output_for,
    widths_of,
)
from gpu_backend.opstream.proof.outcome import CannotProve
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.scipy_ndimage import check_no_footprint
from gpu_backend.opstream.proof.shadow import Shadow, array, new

_BINARY = "?" + REAL


def _binary(
    input: Any, structure: Any, iterations: Any, mask: Any, output: Any, origin: Any, brute_force: Any, axes: Any
) -> Shadow:
    source = image(input, _BINARY)
    ndim = source.ndim
    if axes is not None:
        raise CannotProve("some of the axes")
    if structure is not None:
        window = array(structure)
        if window.ndim != ndim or window.size == 0 or window.dtype.char not in _BINARY:
            raise CannotProve("a structure of another kind")
    if as_index(iterations) != 1 and not (brute_force is True and source.layout.c_contiguous):
        raise CannotProve("iterations that CuPy may refuse")
    if mask is not None and (array(mask).shape != source.shape or mask.dtype.char not in _BINARY):
        raise CannotProve("a mask of another kind")
    check_origins(origin, [3] * ndim if structure is None else list(structure.shape))
    if isinstance(output, Shadow):
        raise CannotProve("an output array")
    return new(source.shape, BOOL)


@rule("cupyx.scipy.ndimage.binary_erosion", "cupyx.scipy.ndimage.binary_dilation")
def binary_erosion(
    input: Any, structure: Any = None, iterations: Any = 1, mask: Any = None, output: Any = None,
    border_value: Any = 0, origin: Any = 0, brute_force: Any = False, *, axes: Any = None,
) -> Shadow:  # fmt: skip
    """As CuPy."""
    as_number(border_value)
    return _binary(input, structure, iterations, mask, output, origin, brute_force, axes)


@rule("cupyx.scipy.ndimage.binary_opening", "cupyx.scipy.ndimage.binary_closing")
def binary_opening(
    input: Any, structure: Any = None, iterations: Any = 1, output: Any = None, origin: Any = 0, mask: Any = None,
    border_value: Any = 0, brute_force: Any = False, *, axes: Any = None,
) -> Shadow:  # fmt: skip
    """As CuPy."""
    as_number(border_value)
    return _binary(input, structure, iterations, mask, output, origin, brute_force, axes)


@rule("cupyx.scipy.ndimage.binary_propagation")
def binary_propagation(
    input: Any, structure: Any = None, mask: Any = None, output: Any = None, border_value: Any = 0, origin: Any = 0,
    *, axes: Any = None,
) -> Shadow:  # fmt: skip
    """As CuPy."""
    as_number(border_value)
    return _binary(input, structure, -1, mask, output, origin, True, axes)


@rule("cupyx.scipy.ndimage.binary_fill_holes")
def binary_fill_holes(
    input: Any, structure: Any = None, output: Any = None, origin: Any = 0, *, axes: Any = None
) -> Shadow:
    """As CuPy."""
    source = image(input, _BINARY)
    if structure is not None or output is not None or axes is not None:
        raise CannotProve("a structure, an output or axes")
    if any(as_index(place) for place in one_per_axis(origin, source.ndim)):
        raise CannotProve("a warning about the origin")
    padded = contiguous(tuple([extent + 2 for extent in source.shape]), BOOL)
    inner = strided(source.shape, padded.strides, BOOL)
    return Shadow(inner) if inner.c_contiguous else new(source.shape, BOOL)


@rule("cupyx.scipy.ndimage.binary_hit_or_miss")
def binary_hit_or_miss(
    input: Any, structure1: Any = None, structure2: Any = None, output: Any = None, origin1: Any = 0,
    origin2: Any = None, *, axes: Any = None,
) -> Shadow:  # fmt: skip
    """As CuPy."""
    if origin2 is not None:
        raise CannotProve("two origins")
    _binary(input, structure1, 1, None, output, origin1, False, axes)
    if structure1 is not None and structure2 is not None and array(structure1).shape != array(structure2).shape:
        raise CannotProve("structures of two shapes")
    return _binary(input, structure2, 1, None, output, origin1, False, axes)


@rule("cupyx.scipy.ndimage.generate_binary_structure")
def generate_binary_structure(rank: Any, connectivity: Any) -> Shadow:
    """As CuPy."""
    as_number(connectivity)
    ndim = max(as_index(rank), 0)
    if ndim > 8:
        raise CannotProve("many axes")
    return new((3,) * ndim, BOOL)


@rule("cupyx.scipy.ndimage.iterate_structure")
def iterate_structure(structure: Any, iterations: Any, origin: Any = None) -> Shadow:
    """As CuPy."""
    window = image(structure, _BINARY)
    count = as_index(iterations)
    if count < 2:
        return window.copy()
    if count > 2 or origin is not None:
        raise CannotProve("iterations that CuPy may refuse")
    return new(tuple([extent + (extent - 1) for extent in window.shape]), BOOL)


def _grey(
    input: Any, size: Any, footprint: Any, structure: Any, output: Any, mode: Any, cval: Any, origin: Any, axes: Any
) -> Shadow:
    check_no_footprint(footprint, structure)
    source = image(input)
    widths = widths_of(size, len(axes_of(axes, source.ndim)))
    check_modes(mode, len(widths))
    if any(as_index(place) for place in one_per_axis(origin, len(widths))):
        raise CannotProve("an origin")
    as_number(cval)
    return output_for(output, source)


@rule("cupyx.scipy.ndimage.grey_erosion", "cupyx.scipy.ndimage.grey_dilation", "cupyx.scipy.ndimage.grey_closing",
      "cupyx.scipy.ndimage.grey_opening")  # fmt: skip
def grey_erosion(
    input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
    mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Shadow:  # fmt: skip
    """As CuPy."""
    return _grey(input, size, footprint, structure, output, mode, cval, origin, axes)


@rule("cupyx.scipy.ndimage.morphological_gradient", "cupyx.scipy.ndimage.morphological_laplace",
      "cupyx.scipy.ndimage.white_tophat", "cupyx.scipy.ndimage.black_tophat")  # fmt: skip
def tophat(
    input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
    mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Shadow:  # fmt: skip
    """As CuPy."""
    if output is not None:
        raise CannotProve("a difference into an output")
    return _grey(input, size, footprint, structure, None, mode, cval, origin, axes)
