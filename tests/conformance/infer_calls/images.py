"""Calls of ``cupyx.scipy.ndimage``."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.infer_calls.draw import Array, Draw, template

_NDIMAGE = "cupyx.scipy.ndimage."
_DTYPES = "bBhHiIlLfdfd"
_BINARY = _DTYPES + "???"
_MODES = ("reflect", "constant", "nearest", "mirror", "wrap", "grid-mirror", "grid-wrap", "grid-constant")


def named(*names: str) -> Any:
    """Register a template for functions of ``cupyx.scipy.ndimage``."""
    return template(*[_NDIMAGE + name for name in names])


def _image(draw: Draw, dtypes: str = _DTYPES, high: int = 3) -> Array:
    shape = tuple(draw.one((1, 2, 3, 5, 7)) for _ in range(draw.random.randint(1, high)))
    return draw.array(dtypes=dtypes if draw.chance(0.95) else "eFD", shape=shape)


def _output(draw: Draw, image: Array) -> dict[str, Any]:
    if draw.chance(0.7):
        return {}
    shape = image.shape if draw.chance(0.9) else (2, 2)
    given = Array(shape, draw.one(_DTYPES), draw.one("CFS"))
    return {"output": draw.one((np.float32, "d", np.dtype("i4"), given, given))}


def _boundary(draw: Draw, image: Array) -> dict[str, Any]:
    kwargs: dict[str, Any] = _output(draw, image)
    if draw.chance(0.5):
        kwargs["mode"] = draw.one(_MODES)
    if draw.chance(0.1):
        kwargs["mode"] = tuple(draw.one(_MODES[:5]) for _ in image.shape)
    if draw.chance(0.2):
        kwargs["cval"] = draw.one((1.0, 3, -2.5, float("nan")))
    return kwargs


def _origin(draw: Draw, image: Array) -> dict[str, Any]:
    return {"origin": draw.one((0, 1, -1, (0,) * len(image.shape)))} if draw.chance(0.2) else {}


def _size(draw: Draw, image: Array) -> Any:
    return draw.one((1, 2, 3, 4, 0, tuple(draw.one((1, 2, 3)) for _ in image.shape)))


@named("correlate", "convolve")
def _weighted(draw: Draw) -> Any:
    image = _image(draw)
    ndim = len(image.shape) if draw.chance(0.95) else 1
    weights = draw.array(shape=tuple(draw.one((1, 2, 3)) for _ in range(ndim)), dtypes="?bilfde")
    return (image, weights), _boundary(draw, image) | _origin(draw, image)


@named("correlate1d", "convolve1d")
def _weighted_along(draw: Draw) -> Any:
    image = _image(draw)
    weights = draw.array(shape=(draw.one((1, 2, 3, 5)),), dtypes="bilfd")
    return (image, weights), {"axis": draw.axis(image)} | _boundary(draw, image)


@named("uniform_filter", "minimum_filter", "maximum_filter", "median_filter")
def _windowed(draw: Draw) -> Any:
    image = _image(draw)
    return (image, _size(draw, image)), _boundary(draw, image) | _origin(draw, image)


@named("uniform_filter1d", "minimum_filter1d", "maximum_filter1d")
def _windowed_along(draw: Draw) -> Any:
    image = _image(draw)
    return (image, draw.one((1, 2, 3, 5))), {"axis": draw.axis(image)} | _boundary(draw, image)


@named("rank_filter", "percentile_filter")
def _ranked(draw: Draw) -> Any:
    image = _image(draw)
    return (image, draw.one((0, 1, -1, 3, 50, 200)), _size(draw, image)), _boundary(draw, image)


@named("gaussian_filter", "gaussian_laplace", "gaussian_gradient_magnitude")
def _gaussian(draw: Draw) -> Any:
    image = _image(draw)
    sigma = draw.one((1, 0.5, 2.5, 0, 0.1, tuple(draw.one((0.5, 1.5, 0)) for _ in image.shape)))
    return (image, sigma), _boundary(draw, image)


@named("gaussian_filter1d")
def _gaussian_along(draw: Draw) -> Any:
    image = _image(draw)
    kwargs = {"axis": draw.axis(image), "order": draw.one((0, 0, 1, 2, -1))}
    return (image, draw.one((1, 0.5, 2.5, 0.1))), kwargs | _boundary(draw, image)


@named("prewitt", "sobel")
def _derived(draw: Draw) -> Any:
    image = _image(draw)
    return (image,), {"axis": draw.axis(image)} | _boundary(draw, image)


@named("laplace")
def _laplace(draw: Draw) -> Any:
    image = _image(draw)
    return (image,), _boundary(draw, image)


@named("binary_erosion", "binary_dilation", "binary_opening", "binary_closing", "binary_hit_or_miss")
def _binary(draw: Draw) -> Any:
    image = _image(draw, _BINARY)
    structure = draw.array(shape=tuple(draw.one((1, 2, 3)) for _ in image.shape), dtypes="?il")
    return (image, *((structure,) if draw.chance(0.5) else ())), {}


@named("binary_erosion", "binary_dilation")
def _binary_with_more(draw: Draw) -> Any:
    image = _image(draw, _BINARY)
    kwargs: dict[str, Any] = {"iterations": draw.one((1, 2, 3))} if draw.chance(0.5) else {}
    if draw.chance(0.5):
        kwargs["brute_force"] = True
    if draw.chance(0.3):
        kwargs["mask"] = Array(image.shape, "?", draw.one("CF"))
    if draw.chance(0.3):
        kwargs["border_value"] = 1
    return (image,), kwargs | _origin(draw, image)


@named("binary_propagation", "binary_fill_holes")
def _filled(draw: Draw) -> Any:
    return (_image(draw, _BINARY),), {}


@named("generate_binary_structure")
def _structure(draw: Draw) -> Any:
    return (draw.one((0, 1, 2, 3)), draw.one((1, 2, 0))), {}


@named("iterate_structure")
def _iterated(draw: Draw) -> Any:
    return (Array((3, 3), "?", "C"), draw.one((1, 2))), {}


@named("grey_erosion", "grey_dilation", "grey_closing", "grey_opening", "morphological_gradient",
       "morphological_laplace", "white_tophat", "black_tophat")  # fmt: skip
def _grey(draw: Draw) -> Any:
    image = _image(draw)
    return (image,), {"size": _size(draw, image)} | _boundary(draw, image)


@named("shift", "zoom")
def _moved(draw: Draw) -> Any:
    image = _image(draw)
    amount = draw.one((1, 0.5, 2, 1.5, -1.5, tuple(draw.one((0.5, 1, 2.3)) for _ in image.shape)))
    return (image, amount), _spline(draw) | _boundary(draw, image)


def _spline(draw: Draw) -> dict[str, Any]:
    kwargs: dict[str, Any] = {"order": draw.one((0, 1, 2, 3, 4, 5))} if draw.chance(0.5) else {}
    if draw.chance(0.2):
        kwargs["prefilter"] = False
    return kwargs


@named("rotate")
def _turned(draw: Draw) -> Any:
    image = _image(draw)
    kwargs: dict[str, Any] = {"reshape": draw.chance(0.7)} | _spline(draw)
    if len(image.shape) > 2 and draw.chance(0.5):
        kwargs["axes"] = draw.one(((0, 2), (-1, 1), (2, 1)))
    if not kwargs["reshape"]:
        kwargs |= _output(draw, image)
    return (image, draw.one((0, 30, 45, 90, 123.4, -77, 180, 360, 1e-3))), kwargs


@named("affine_transform")
def _affine(draw: Draw) -> Any:
    image = _image(draw)
    ndim = len(image.shape)
    matrix = Array(draw.one(((ndim,), (ndim, ndim), (ndim, ndim + 1), (ndim + 1, ndim + 1))), draw.one("fdl"), "C")
    kwargs = {"output_shape": tuple(draw.one((2, 4)) for _ in range(ndim))} if draw.chance(0.3) else {}
    return (image, matrix), kwargs | _spline(draw)


@named("map_coordinates")
def _mapped(draw: Draw) -> Any:
    image = _image(draw)
    places = draw.array(shape=(len(image.shape), *draw.shape(0, 2)), dtypes="fdil")
    kwargs = {"mode": draw.one(_MODES)} if draw.chance(0.5) else {}
    return (image, places), kwargs | _spline(draw)


@named("spline_filter", "spline_filter1d")
def _prefiltered(draw: Draw) -> Any:
    image = _image(draw)
    kwargs: dict[str, Any] = {"order": draw.one((2, 3, 4, 5))} if draw.chance(0.5) else {}
    if draw.chance(0.5):
        kwargs["mode"] = draw.one(("mirror", "reflect", "grid-wrap"))
    if draw.chance(0.3):
        kwargs["output"] = draw.one((np.float32, "d", np.int32))
    return (image,), kwargs


@named("fourier_gaussian", "fourier_uniform", "fourier_ellipsoid", "fourier_shift")
def _fourier(draw: Draw) -> Any:
    image = _image(draw, "ilfdfdFDFD")
    kwargs: dict[str, Any] = {"n": draw.one((-1, 4)), "axis": draw.axis(image)} if draw.chance(0.3) else {}
    if draw.chance(0.2):
        kwargs["output"] = draw.one((np.complex64, np.float32, np.float64))
    return (image, draw.one((1, 0.5, (0.5,) * len(image.shape)))), kwargs


@named("sum", "sum_labels")
def _regions(draw: Draw) -> Any:
    image = _image(draw, "ifdIL")
    return (image, Array(image.shape, "i", draw.one("CF")), draw.array(1, 2, "il")), {}
