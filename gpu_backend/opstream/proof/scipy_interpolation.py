"""Rules of the interpolation, Fourier filters and measurements of ``cupyx.scipy.ndimage``."""

from __future__ import annotations

import math

import numpy as np

from gpu_backend.opstream.layout import Shape
from gpu_backend.opstream.proof.arguments import COMPLEX128, FLOAT64, as_axis, as_dtype, as_index, broadcast
from gpu_backend.opstream.proof.images import (
    REAL,
    as_number,
    check_modes,
    image,
    numbers_per_axis,
    output_for,
)
from gpu_backend.opstream.proof.outcome import CannotProve
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.shadow import Array, array, like, new
from gpu_backend.opstream.proof.values import is_items, is_tuple

_MODES = frozenset("constant grid-constant nearest mirror reflect grid-mirror wrap grid-wrap".split())
_PREFILTER_MODES = frozenset("mirror reflect grid-wrap".split())
#: dtypes that ``sum`` of regions takes without a warning about speed.
_SUMMED = "ifdIL"


def _check_spline(order: object, mode: object, cval: object) -> None:
    """Let pass a known spline; an order of None is a warning."""
    if order is None or not 0 <= as_index(order) <= 5:
        raise CannotProve("an unknown order of spline")
    if not isinstance(mode, str) or mode not in _MODES:
        raise CannotProve(f"boundary mode {mode!r}")
    as_number(cval)


@rule("cupyx.scipy.ndimage.shift")
def shift(
    input: object, shift: object, output: object = None, order: object = 3, mode: object = "constant",
    cval: object = 0.0, prefilter: object = True,
) -> Array:  # fmt: skip
    """As CuPy."""
    source = image(input)
    _check_spline(order, mode, cval)
    numbers_per_axis(shift, source.ndim)
    return output_for(output, source)


@rule("cupyx.scipy.ndimage.zoom")
def zoom(
    input: object, zoom: object, output: object = None, order: object = 3, mode: object = "constant",
    cval: object = 0.0, prefilter: object = True, *, grid_mode: object = False,
) -> Array:  # fmt: skip
    """As CuPy."""
    source = image(input)
    _check_spline(order, mode, cval)
    if grid_mode and mode in ("constant", "wrap"):
        raise CannotProve("a warning about the mode")
    factors = numbers_per_axis(zoom, source.ndim)
    shape = tuple([round(extent * factor) for extent, factor in zip(source.shape, factors, strict=True)])
    return output_for(output, source, _filled(shape))


def _filled(shape: Shape) -> Shape:
    if min(shape) < 1:
        raise CannotProve("an output without pixels")
    return shape


@rule("cupyx.scipy.ndimage.rotate")
def rotate(
    input: object, angle: object, axes: object = (1, 0), reshape: object = True, output: object = None,
    order: object = 3, mode: object = "constant", cval: object = 0.0, prefilter: object = True,
) -> Array:  # fmt: skip
    """As CuPy."""
    source = image(input)
    _check_spline(order, mode, cval)
    first, second = _plane(axes, source.ndim)
    extents = list(source.shape)
    if reshape:
        extents[first], extents[second] = _turned(extents[first], extents[second], math.radians(as_number(angle)))
    return output_for(output, source, _filled(tuple(extents)))


def _plane(axes: object, ndim: int) -> tuple[int, int]:
    if not is_items(axes) or len(axes) != 2:
        raise CannotProve("a plane that is not two axes")
    places = [as_index(axis) % ndim for axis in axes if -ndim <= as_index(axis) < ndim]
    if len(set(places)) != 2:
        raise CannotProve("no plane")
    return min(places), max(places)


def _turned(height: int, width: int, angle: float) -> tuple[int, int]:
    """Return the extents of the box around a turned box.

    CuPy rounds them from sums of products, in the precision of the image, so sums close to a half are left to it.
    """
    sine, cosine = abs(math.sin(angle)), abs(math.cos(angle))
    extents = (height * cosine + width * sine, height * sine + width * cosine)
    for extent in extents:
        if abs(extent % 1.0 - 0.5) < 1e-6 * max(height, width) + 1e-6:
            raise CannotProve("an extent at the edge of rounding")
    return int(extents[0] + 0.5), int(extents[1] + 0.5)


@rule("cupyx.scipy.ndimage.affine_transform")
def affine_transform(
    input: object, matrix: Array, offset: object = 0.0, output_shape: object = None, output: object = None,
    order: object = 3, mode: object = "constant", cval: object = 0.0, prefilter: object = True, *,
    float64_coords: object = False,
) -> Array:  # fmt: skip
    """As CuPy."""
    source = image(input)
    _check_spline(order, mode, cval)
    ndim = source.ndim
    numbers_per_axis(offset, ndim)
    if matrix.dtype.char not in REAL + "e" or matrix.shape not in (
        (ndim,),
        (ndim, ndim),
        (ndim, ndim + 1),
        (ndim + 1,) * 2,
    ):
        raise CannotProve("a matrix of another kind")
    shape = source.shape
    if output_shape is not None:
        if not is_tuple(output_shape) or len(output_shape) != ndim:
            raise CannotProve("an unusual output shape")
        shape = tuple([as_index(extent) for extent in output_shape])
    return output_for(output, source, _filled(shape))


@rule("cupyx.scipy.ndimage.map_coordinates")
def map_coordinates(
    input: object, coordinates: Array, output: object = None, order: object = 3, mode: object = "constant",
    cval: object = 0.0, prefilter: object = True,
) -> Array:  # fmt: skip
    """As CuPy."""
    source = image(input)
    _check_spline(order, mode, cval)
    if coordinates.dtype.char not in REAL or coordinates.ndim == 0 or coordinates.shape[0] != source.ndim:
        raise CannotProve("coordinates of another kind")
    return output_for(output, source, coordinates.shape[1:])


@rule("cupyx.scipy.ndimage.spline_filter1d")
def spline_filter1d(
    input: object, order: object = 3, axis: object = -1, output: object = np.float64, mode: object = "mirror"
) -> Array:
    """As CuPy."""
    source = image(input)
    place = as_axis(axis, source.ndim)
    made = _prefiltered(source, order, output, mode, 0)
    return output_for(output, source) if as_index(order) < 2 or source.shape[place] == 1 else made


@rule("cupyx.scipy.ndimage.spline_filter")
def spline_filter(input: object, order: object = 3, output: object = np.float64, mode: object = "mirror") -> Array:
    """As CuPy."""
    return _prefiltered(image(input), order, output, mode, 2)


def _prefiltered(source: Array, order: object, output: object, mode: object, least: int) -> Array:
    if not least <= as_index(order) <= 5:
        raise CannotProve("an unknown order of spline")
    check_modes(mode, 1, _PREFILTER_MODES)
    if isinstance(output, Array):
        raise CannotProve("an output array")
    wanted = output_for(output, source).dtype
    computed = source.astype(np.promote_types(wanted, np.float32), copy=False)
    if computed is source or not computed.layout.c_contiguous:
        computed = new(source.shape, computed.dtype)
    return computed.astype(wanted, copy=False)


@rule("cupyx.scipy.ndimage.fourier_gaussian")
def fourier_gaussian(input: object, sigma: object, n: object = -1, axis: object = -1, output: object = None) -> Array:
    """As CuPy."""
    return _fourier(input, sigma, n, axis, output, complex_only=False)


@rule("cupyx.scipy.ndimage.fourier_uniform", "cupyx.scipy.ndimage.fourier_ellipsoid")
def fourier_uniform(input: object, size: object, n: object = -1, axis: object = -1, output: object = None) -> Array:
    """As CuPy."""
    return _fourier(input, size, n, axis, output, complex_only=False)


@rule("cupyx.scipy.ndimage.fourier_shift")
def fourier_shift(input: object, shift: object, n: object = -1, axis: object = -1, output: object = None) -> Array:
    """As CuPy."""
    return _fourier(input, shift, n, axis, output, complex_only=True)


def _fourier(input: object, amount: object, n: object, axis: object, output: object, *, complex_only: bool) -> Array:
    source = image(input, REAL + "FD")
    if source.ndim > 3:
        raise CannotProve("many axes")
    as_axis(axis, source.ndim)
    as_index(n)
    numbers_per_axis(amount, source.ndim)
    kept = "FD" if complex_only else "FDfd"
    if output is not None:
        if not isinstance(output, type) or as_dtype(output).char not in kept:
            raise CannotProve("an output of another kind")
        if source.dtype.kind == "c" and as_dtype(output).kind != "c":
            raise CannotProve("a ComplexWarning")
        return new(source.shape, as_dtype(output))
    if source.dtype.char in kept:
        return new(source.shape, source.dtype)
    return new(source.shape, COMPLEX128 if complex_only else FLOAT64)


@rule("cupyx.scipy.ndimage.sum", "cupyx.scipy.ndimage.sum_labels")
def sum_labels(input: object, labels: object = None, index: object = None) -> Array:
    """As CuPy, for regions that an array names."""
    source = image(input, _SUMMED)
    regions, named = array(labels), array(index)
    if regions.dtype.char not in REAL or named.dtype.char not in REAL or named.size == 0:
        raise CannotProve("regions of another kind")
    broadcast([source.shape, regions.shape])
    return Array(like(named.layout, FLOAT64, "K"))
