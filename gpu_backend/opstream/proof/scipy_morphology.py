"""Rules of the morphology of ``cupyx.scipy.ndimage``."""

from __future__ import annotations

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
from gpu_backend.opstream.proof.shadow import Array, new

_BINARY = "?" + REAL


def _binary(
    input: object,
    structure: Array | None,
    iterations: object,
    mask: Array | None,
    output: object,
    origin: object,
    brute_force: object,
    axes: object,
) -> Array:
    source = image(input, _BINARY)
    ndim = source.ndim
    if axes is not None:
        raise CannotProve("some of the axes")
    if structure is not None and (structure.ndim != ndim or not structure.size or structure.dtype.char not in _BINARY):
        raise CannotProve("a structure of another kind")
    if as_index(iterations) != 1 and not (brute_force is True and source.layout.c_contiguous):
        raise CannotProve("iterations that CuPy may refuse")
    if mask is not None and (mask.shape != source.shape or mask.dtype.char not in _BINARY):
        raise CannotProve("a mask of another kind")
    check_origins(origin, [3] * ndim if structure is None else list(structure.shape))
    if isinstance(output, Array):
        raise CannotProve("an output array")
    return new(source.shape, BOOL)


@rule("cupyx.scipy.ndimage.binary_erosion", "cupyx.scipy.ndimage.binary_dilation")
def binary_erosion(
    input: object, structure: Array | None = None, iterations: object = 1, mask: Array | None = None,
    output: object = None, border_value: object = 0, origin: object = 0, brute_force: object = False, *,
    axes: object = None,
) -> Array:  # fmt: skip
    """As CuPy."""
    as_number(border_value)
    return _binary(input, structure, iterations, mask, output, origin, brute_force, axes)


@rule("cupyx.scipy.ndimage.binary_opening", "cupyx.scipy.ndimage.binary_closing")
def binary_opening(
    input: object, structure: Array | None = None, iterations: object = 1, output: object = None, origin: object = 0,
    mask: Array | None = None, border_value: object = 0, brute_force: object = False, *, axes: object = None,
) -> Array:  # fmt: skip
    """As CuPy."""
    as_number(border_value)
    return _binary(input, structure, iterations, mask, output, origin, brute_force, axes)


@rule("cupyx.scipy.ndimage.binary_propagation")
def binary_propagation(
    input: object, structure: Array | None = None, mask: Array | None = None, output: object = None,
    border_value: object = 0, origin: object = 0, *, axes: object = None,
) -> Array:  # fmt: skip
    """As CuPy."""
    as_number(border_value)
    return _binary(input, structure, -1, mask, output, origin, True, axes)


@rule("cupyx.scipy.ndimage.binary_fill_holes")
def binary_fill_holes(
    input: object, structure: object = None, output: object = None, origin: object = 0, *, axes: object = None
) -> Array:
    """As CuPy."""
    source = image(input, _BINARY)
    if structure is not None or output is not None or axes is not None:
        raise CannotProve("a structure, an output or axes")
    if any(as_index(place) for place in one_per_axis(origin, source.ndim)):
        raise CannotProve("a warning about the origin")
    padded = contiguous(tuple([extent + 2 for extent in source.shape]), BOOL)
    inner = strided(source.shape, padded.strides, BOOL)
    return Array(inner) if inner.c_contiguous else new(source.shape, BOOL)


@rule("cupyx.scipy.ndimage.binary_hit_or_miss")
def binary_hit_or_miss(
    input: object, structure1: Array | None = None, structure2: Array | None = None, output: object = None,
    origin1: object = 0, origin2: object = None, *, axes: object = None,
) -> Array:  # fmt: skip
    """As CuPy."""
    if origin2 is not None:
        raise CannotProve("two origins")
    _binary(input, structure1, 1, None, output, origin1, False, axes)
    if structure1 is not None and structure2 is not None and structure1.shape != structure2.shape:
        raise CannotProve("structures of two shapes")
    return _binary(input, structure2, 1, None, output, origin1, False, axes)


@rule("cupyx.scipy.ndimage.generate_binary_structure")
def generate_binary_structure(rank: object, connectivity: object) -> Array:
    """As CuPy."""
    as_number(connectivity)
    ndim = max(as_index(rank), 0)
    if ndim > 8:
        raise CannotProve("many axes")
    return new((3,) * ndim, BOOL)


@rule("cupyx.scipy.ndimage.iterate_structure")
def iterate_structure(structure: object, iterations: object, origin: object = None) -> Array:
    """As CuPy."""
    window = image(structure, _BINARY)
    count = as_index(iterations)
    if count < 2:
        return window.copy()
    if count > 2 or origin is not None:
        raise CannotProve("iterations that CuPy may refuse")
    return new(tuple([extent + (extent - 1) for extent in window.shape]), BOOL)


def _grey(
    input: object,
    size: object,
    footprint: object,
    structure: object,
    output: object,
    mode: object,
    cval: object,
    origin: object,
    axes: object,
) -> Array:
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
    input: object, size: object = None, footprint: object = None, structure: object = None, output: object = None,
    mode: object = "reflect", cval: object = 0.0, origin: object = 0, *, axes: object = None,
) -> Array:  # fmt: skip
    """As CuPy."""
    return _grey(input, size, footprint, structure, output, mode, cval, origin, axes)


@rule("cupyx.scipy.ndimage.morphological_gradient", "cupyx.scipy.ndimage.morphological_laplace",
      "cupyx.scipy.ndimage.white_tophat", "cupyx.scipy.ndimage.black_tophat")  # fmt: skip
def tophat(
    input: object, size: object = None, footprint: object = None, structure: object = None, output: object = None,
    mode: object = "reflect", cval: object = 0.0, origin: object = 0, *, axes: object = None,
) -> Array:  # fmt: skip
    """As CuPy."""
    if output is not None:
        raise CannotProve("a difference into an output")
    return _grey(input, size, footprint, structure, None, mode, cval, origin, axes)
