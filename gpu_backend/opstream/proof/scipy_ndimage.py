"""Rules of the filters of ``cupyx.scipy.ndimage``."""

from __future__ import annotations

from math import prod

from gpu_backend.opstream.proof.arguments import as_axis, as_index
from gpu_backend.opstream.proof.images import (
    as_number,
    axes_of,
    check_modes,
    check_origins,
    image,
    numbers_per_axis,
    one_per_axis,
    output_for,
    widths_of,
)
from gpu_backend.opstream.proof.outcome import CannotProve
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.shadow import Array, array

#: The memory that a rank filter needs grows with its window, for each thread of the device.
_MOST_RANKED = 121
_WEIGHTS = "?bBhHiIlLefd"
#: Below this, sigma squared vanishes.
_LEAST_SIGMA = 1e-6
_MOST_WEIGHTS = 10_000


def _weights(weights: object, ndim: int) -> Array:
    found = array(weights)
    if found.ndim != ndim or found.size == 0 or found.dtype.char not in _WEIGHTS or found.layout.nbytes >= 1 << 31:
        raise CannotProve("weights of another kind")
    return found


@rule("cupyx.scipy.ndimage.correlate", "cupyx.scipy.ndimage.convolve")
def correlate(
    input: object, weights: object, output: object = None, mode: object = "reflect", cval: object = 0.0,
    origin: object = 0, *, axes: object = None,
) -> Array:  # fmt: skip
    """As CuPy."""
    source = image(input)
    along = axes_of(axes, source.ndim)
    window = _weights(weights, len(along))
    check_modes(mode, len(along))
    check_origins(origin, list(window.shape))
    as_number(cval)
    return output_for(output, source)


@rule("cupyx.scipy.ndimage.correlate1d", "cupyx.scipy.ndimage.convolve1d")
def correlate1d(
    input: object, weights: object, axis: object = -1, output: object = None, mode: object = "reflect",
    cval: object = 0.0, origin: object = 0,
) -> Array:  # fmt: skip
    """As CuPy."""
    source = image(input)
    as_axis(axis, source.ndim)
    return _along_one(source, list(_weights(weights, 1).shape), output, mode, cval, origin)


@rule(
    "cupyx.scipy.ndimage.uniform_filter1d",
    "cupyx.scipy.ndimage.minimum_filter1d",
    "cupyx.scipy.ndimage.maximum_filter1d",
)
def uniform_filter1d(
    input: object,
    size: object,
    axis: object = -1,
    output: object = None,
    mode: object = "reflect",
    cval: object = 0.0,
    origin: object = 0,
) -> Array:
    """As CuPy."""
    source = image(input)
    as_axis(axis, source.ndim)
    return _along_one(source, widths_of(size, 1), output, mode, cval, origin)


def _along_one(source: Array, widths: list[int], output: object, mode: object, cval: object, origin: object) -> Array:
    check_modes(mode, source.ndim)
    check_origins(as_index(origin), widths)
    as_number(cval)
    return output_for(output, source)


@rule("cupyx.scipy.ndimage.uniform_filter")
def uniform_filter(
    input: object, size: object = 3, output: object = None, mode: object = "reflect", cval: object = 0.0,
    origin: object = 0, axes: object = None,
) -> Array:  # fmt: skip
    """As CuPy."""
    source = image(input)
    count = len(axes_of(axes, source.ndim))
    return _windowed(source, widths_of(size, count), output, mode, cval, origin)


def _windowed(source: Array, widths: list[int], output: object, mode: object, cval: object, origin: object) -> Array:
    check_modes(mode, len(widths))
    check_origins(origin, widths)
    as_number(cval)
    return output_for(output, source)


@rule("cupyx.scipy.ndimage.gaussian_filter")
def gaussian_filter(
    input: object, sigma: object, order: object = 0, output: object = None, mode: object = "reflect",
    cval: object = 0.0, truncate: object = 4.0, radius: object = None, axes: object = None,
) -> Array:  # fmt: skip
    """As CuPy."""
    source = image(input)
    count = len(axes_of(axes, source.ndim))
    for width in numbers_per_axis(sigma, count):
        _check_sigma(width, truncate, may_be_zero=True)
    for one in one_per_axis(order, count):
        _check_order(one)
    if radius is not None:
        raise CannotProve("a radius")
    check_modes(mode, count)
    as_number(cval)
    return output_for(output, source)


@rule("cupyx.scipy.ndimage.gaussian_filter1d")
def gaussian_filter1d(
    input: object, sigma: object, axis: object = -1, order: object = 0, output: object = None, mode: object = "reflect",
    cval: object = 0.0, truncate: object = 4.0,
) -> Array:  # fmt: skip
    """As CuPy."""
    source = image(input)
    _check_order(order)
    _check_sigma(as_number(sigma), truncate)
    as_axis(axis, source.ndim)
    return _along_one(source, [1], output, mode, cval, 0)


def _check_sigma(sigma: float, truncate: object, *, may_be_zero: bool = False) -> None:
    if not (sigma >= _LEAST_SIGMA or (may_be_zero and sigma == 0)):
        raise CannotProve("a tiny or negative sigma")
    if not 0 <= as_number(truncate) * sigma <= _MOST_WEIGHTS:
        raise CannotProve("a vast window")


def _check_order(order: object) -> None:
    if not 0 <= as_index(order) <= 10:
        raise CannotProve("an unusual order of derivative")


@rule("cupyx.scipy.ndimage.prewitt", "cupyx.scipy.ndimage.sobel")
def sobel(
    input: object, axis: object = -1, output: object = None, mode: object = "reflect", cval: object = 0.0
) -> Array:
    """As CuPy."""
    source = image(input)
    as_axis(axis, source.ndim)
    return _windowed(source, [3] * source.ndim, output, _one_mode(mode), cval, 0)


def _one_mode(mode: object) -> str:
    if not isinstance(mode, str):
        raise CannotProve("several boundary modes")
    return mode


@rule("cupyx.scipy.ndimage.laplace")
def laplace(
    input: object, output: object = None, mode: object = "reflect", cval: object = 0.0, *, axes: object = None
) -> Array:
    """As CuPy."""
    source = image(input)
    return _windowed(source, [3] * len(axes_of(axes, source.ndim)), output, mode, cval, 0)


@rule("cupyx.scipy.ndimage.gaussian_laplace", "cupyx.scipy.ndimage.gaussian_gradient_magnitude")
def gaussian_laplace(
    input: object,
    sigma: object,
    output: object = None,
    mode: object = "reflect",
    cval: object = 0.0,
    *,
    truncate: object = 4.0,
) -> Array:
    """As CuPy."""
    source = image(input)
    for one in numbers_per_axis(sigma, source.ndim):
        _check_sigma(one, truncate)
    return _windowed(source, [1] * source.ndim, output, mode, cval, 0)


@rule("cupyx.scipy.ndimage.minimum_filter", "cupyx.scipy.ndimage.maximum_filter")
def minimum_filter(
    input: object, size: object = None, footprint: object = None, output: object = None, mode: object = "reflect",
    cval: object = 0.0, origin: object = 0, axes: object = None,
) -> Array:  # fmt: skip
    """As CuPy."""
    check_no_footprint(footprint)
    source = image(input)
    widths = widths_of(size, len(axes_of(axes, source.ndim)))
    return _windowed(source, widths, output, mode, cval, origin)


def check_no_footprint(*footprints: object) -> None:
    """Let pass windows that are boxes: CuPy looks at others to see whether there is anything in them."""
    if any(footprint is not None for footprint in footprints):
        raise CannotProve("a footprint, whose contents matter")


@rule("cupyx.scipy.ndimage.median_filter")
def median_filter(
    input: object, size: object = None, footprint: object = None, output: object = None, mode: object = "reflect",
    cval: object = 0.0, origin: object = 0, axes: object = None,
) -> Array:  # fmt: skip
    """As CuPy."""
    return rank_filter(input, 0, size, footprint, output, mode, cval, origin, axes)


@rule("cupyx.scipy.ndimage.percentile_filter")
def percentile_filter(
    input: object, percentile: object, size: object = None, footprint: object = None, output: object = None,
    mode: object = "reflect", cval: object = 0.0, origin: object = 0, axes: object = None,
) -> Array:  # fmt: skip
    """As CuPy."""
    if not -100 <= as_number(percentile) <= 100:
        raise CannotProve("no percentile")
    return rank_filter(input, 0, size, footprint, output, mode, cval, origin, axes)


@rule("cupyx.scipy.ndimage.rank_filter")
def rank_filter(
    input: object, rank: object, size: object = None, footprint: object = None, output: object = None,
    mode: object = "reflect", cval: object = 0.0, origin: object = 0, axes: object = None,
) -> Array:  # fmt: skip
    """As CuPy."""
    check_no_footprint(footprint, axes)
    source = image(input)
    widths = widths_of(size, source.ndim)
    count = prod(widths)
    if count > _MOST_RANKED:
        raise CannotProve("a vast window")
    if not -count <= as_index(rank) < count:
        raise CannotProve("a rank outside the window")
    return _windowed(source, widths, output, mode, cval, origin)
