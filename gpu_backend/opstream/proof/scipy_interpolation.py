"""Rules of the interpolation, Fourier filters and measurements of ``cupyx.scipy.ndimage``."""

from __future__ import annotations

import math
from typing import Any

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
from gpu_backend.opstream.proof.shadow import Shadow, array, like, new

_MODES = frozenset("constant grid-constant nearest mirror reflect grid-mirror wrap grid-wrap".split())
_PREFILTER_MODES = frozenset("mirror reflect grid-wrap".split())
#: dtypes that ``sum`` of regions takes without a warning about speed.
_SUMMED = "ifdIL"


def _check_spline(order: Any, mode: Any, cval: Any) -> None:
    """Let pass a known spline; an order of None is a warning."""
    if order is None or not 0 <= as_index(order) <= 5:
        raise CannotProve("an unknown order of spline")
    if not isinstance(mode, str) or mode not in _MODES:
        raise CannotProve(f"boundary mode {mode!r}")
    as_number(cval)


@rule("cupyx.scipy.ndimage.shift")
def shift(
    input: Any, shift: Any, output: Any = None, order: Any = 3, mode: Any = "constant", cval: Any = 0.0,
    prefilter: Any = True,
) -> Shadow:  # fmt: skip
    """As CuPy."""
    source = image(input)
    _check_spline(order, mode, cval)
    numbers_per_axis(shift, source.ndim)
    return output_for(output, source)


@rule("cupyx.scipy.ndimage.zoom")
def zoom(
    input: Any, zoom: Any, output: Any = None, order: Any = 3, mode: Any = "constant", cval: Any = 0.0,
    prefilter: Any = True, *, grid_mode: Any = False,
) -> Shadow:  # fmt: skip
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
    input: Any, angle: Any, axes: Any = (1, 0), reshape: Any = True, output: Any = None, order: Any = 3,
    mode: Any = "constant", cval: Any = 0.0, prefilter: Any = True,
) -> Shadow:  # fmt: skip
    """As CuPy."""
    source = image(input)
    _check_spline(order, mode, cval)
    first, second = _plane(axes, source.ndim)
    extents = list(source.shape)
    if reshape:
        extents[first], extents[second] = _turned(extents[first], extents[second], math.radians(as_number(angle)))
    return output_for(output, source, _filled(tuple(extents)))


def _plane(axes: Any, ndim: int) -> tuple[int, int]:
    if not isinstance(axes, (tuple, list)) or len(axes) != 2:
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
    input: Any, matrix: Any, offset: Any = 0.0, output_shape: Any = None, output: Any = None, order: Any = 3,
    mode: Any = "constant", cval: Any = 0.0, prefilter: Any = True, *, float64_coords: Any = False,
) -> Shadow:  # fmt: skip
    """As CuPy."""
    source = image(input)
    _check_spline(order, mode, cval)
    ndim = source.ndim
    numbers_per_axis(offset, ndim)
    given = array(matrix)
    if given.dtype.char not in REAL + "e" or given.shape not in (
        (ndim,),
        (ndim, ndim),
        (ndim, ndim + 1),
        (ndim + 1,) * 2,
    ):
        raise CannotProve("a matrix of another kind")
    shape = source.shape
    if output_shape is not None:
        if not isinstance(output_shape, tuple) or len(output_shape) != ndim:
            raise CannotProve("an unusual output shape")
        shape = tuple([as_index(extent) for extent in output_shape])
    return output_for(output, source, _filled(shape))


@rule("cupyx.scipy.ndimage.map_coordinates")
def map_coordinates(
    input: Any, coordinates: Any, output: Any = None, order: Any = 3, mode: Any = "constant", cval: Any = 0.0,
    prefilter: Any = True,
) -> Shadow:  # fmt: skip
    """As CuPy."""
    source = image(input)
    _check_spline(order, mode, cval)
    places = array(coordinates)
    if places.dtype.char not in REAL or places.ndim == 0 or places.shape[0] != source.ndim:
        raise CannotProve("coordinates of another kind")
    return output_for(output, source, places.shape[1:])


@rule("cupyx.scipy.ndimage.spline_filter1d")
def spline_filter1d(
    input: Any, order: Any = 3, axis: Any = -1, output: Any = np.float64, mode: Any = "mirror"
) -> Shadow:
    """As CuPy."""
    source = image(input)
    place = as_axis(axis, source.ndim)
    made = _prefiltered(source, order, output, mode, 0)
    return output_for(output, source) if order < 2 or source.shape[place] == 1 else made


@rule("cupyx.scipy.ndimage.spline_filter")
def spline_filter(input: Any, order: Any = 3, output: Any = np.float64, mode: Any = "mirror") -> Shadow:
    """As CuPy."""
    return _prefiltered(image(input), order, output, mode, 2)


def _prefiltered(source: Shadow, order: Any, output: Any, mode: Any, least: int) -> Shadow:
    if not least <= as_index(order) <= 5:
        raise CannotProve("an unknown order of spline")
    check_modes(mode, 1, _PREFILTER_MODES)
    if isinstance(output, Shadow):
        raise CannotProve("an output array")
    wanted = output_for(output, source).dtype
    computed = source.astype(np.promote_types(wanted, np.float32), copy=False)
    if computed is source or not computed.layout.c_contiguous:
        computed = new(source.shape, computed.dtype)
    return computed.astype(wanted, copy=False)


@rule("cupyx.scipy.ndimage.fourier_gaussian")
def fourier_gaussian(input: Any, sigma: Any, n: Any = -1, axis: Any = -1, output: Any = None) -> Shadow:
    """As CuPy."""
    return _fourier(input, sigma, n, axis, output, complex_only=False)


@rule("cupyx.scipy.ndimage.fourier_uniform", "cupyx.scipy.ndimage.fourier_ellipsoid")
def fourier_uniform(input: Any, size: Any, n: Any = -1, axis: Any = -1, output: Any = None) -> Shadow:
    """As CuPy."""
    return _fourier(input, size, n, axis, output, complex_only=False)


@rule("cupyx.scipy.ndimage.fourier_shift")
def fourier_shift(input: Any, shift: Any, n: Any = -1, axis: Any = -1, output: Any = None) -> Shadow:
    """As CuPy."""
    return _fourier(input, shift, n, axis, output, complex_only=True)


def _fourier(input: Any, amount: Any, n: Any, axis: Any, output: Any, *, complex_only: bool) -> Shadow:
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
def sum_labels(input: Any, labels: Any = None, index: Any = None) -> Shadow:
    """As CuPy, for regions that an array names."""
    source = image(input, _SUMMED)
    regions, named = array(labels), array(index)
    if regions.dtype.char not in REAL or named.dtype.char not in REAL or named.size == 0:
        raise CannotProve("regions of another kind")
    broadcast([source.shape, regions.shape])
    return Shadow(like(named.layout, FLOAT64, "K"))
