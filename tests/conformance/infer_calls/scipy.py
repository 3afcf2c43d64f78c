"""Calls of ``cupyx.scipy``, beyond its ufuncs and ``ndimage``."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.infer_calls.draw import REALS, Array, Draw, Made, template

_SINGLE = "fft ifft rfft irfft hfft ihfft".split()
_MATRICES = "hilbert helmert dft hadamard".split()
_WINDOWS = (
    "barthann bartlett blackman blackmanharris bohman boxcar cosine flattop hamming hann nuttall parzen triang".split()
)


def named(module: str, *names: str) -> Any:
    """Register a template for functions of a module of ``cupyx.scipy``."""
    return template(*[f"cupyx.scipy.{module}.{name}" for name in names])


def _filled(draw: Draw, low: int, high: int, dtypes: str) -> Array:
    shape = tuple(draw.one((1, 2, 3, 4, 5)) for _ in range(draw.random.randint(low, high)))
    return draw.array(dtypes=dtypes, shape=shape)


def _norm(draw: Draw) -> dict[str, Any]:
    return {"norm": draw.one((None, "ortho", "forward", "backward"))} if draw.chance(0.3) else {}


@named("fft", *_SINGLE)
def _transform(draw: Draw) -> Any:
    array = draw.array(0 if draw.chance(0.05) else 1, 3, "fdFDe" if draw.chance(0.7) else REALS)
    kwargs: dict[str, Any] = {"axis": draw.axis(array)} if draw.chance(0.5) else {}
    if draw.chance(0.4):
        kwargs["n"] = draw.one((1, 2, 4, 7))
    return (array,), kwargs | _norm(draw)


@named("fft", *[f"{name}{suffix}" for name in _SINGLE for suffix in "2n"])
def _transform_of_several(draw: Draw) -> Any:
    array = draw.array(1, 3, "fdFD" if draw.chance(0.7) else REALS)
    ndim = len(array.shape)
    kwargs: dict[str, Any] = {}
    if draw.chance(0.5):
        kwargs["axes"] = tuple(draw.random.sample(range(ndim), draw.random.randint(1, ndim)))
    if draw.chance(0.3):
        kwargs["s"] = tuple(draw.one((2, 4, 5)) for _ in range(len(kwargs.get("axes", (0,)))))
    return (array,), kwargs | _norm(draw)


@named("fft", "dct", "idct", "dst", "idst")
def _cosine(draw: Draw) -> Any:
    array = _filled(draw, 1, 3, "fdFDeil?")
    kwargs: dict[str, Any] = {"axis": draw.axis(array)} if draw.chance(0.5) else {}
    if draw.chance(0.5):
        kwargs["type"] = draw.one((2, 3))
    return (array,), kwargs | _norm(draw)


@named("fft", "dctn", "idctn", "dstn", "idstn")
def _cosines(draw: Draw) -> Any:
    array = _filled(draw, 1, 3, "fdeil")
    ndim = len(array.shape)
    axes = tuple(draw.random.sample(range(ndim), draw.random.randint(1, ndim)))
    kwargs: dict[str, Any] = {"axes": axes} if draw.chance(0.5) else {}
    if draw.chance(0.5):
        kwargs["type"] = draw.one((2, 3))
    return (array,), kwargs | _norm(draw)


@named("special", "softmax", "log_softmax", "logsumexp")
def _exponentials(draw: Draw) -> Any:
    array = _filled(draw, 0, 3, "fdeilbhH")
    return (array,), {"axis": draw.axes(array)} if draw.chance(0.7) else {}


@named("special", "polygamma")
def _polygamma(draw: Draw) -> Any:
    array = _filled(draw, 1, 2, "fd")
    return (Array(array.shape, draw.one("fdli"), "C"), array), {}


@named("stats", "zscore")
def _scored(draw: Draw) -> Any:
    array = _filled(draw, 1, 3, "fdil")
    return (array,), {"axis": draw.axis(array)} if draw.chance(0.5) else {}


@named("stats", "zmap")
def _mapped(draw: Draw) -> Any:
    array = _filled(draw, 1, 3, "fdil")
    return (draw.partner(array, "fdil"), array), {}


@named("stats", "entropy")
def _entropy(draw: Draw) -> Any:
    array = _filled(draw, 1, 3, "fdile")
    second = (Array(array.shape, draw.one("fdil"), draw.one("CF")),) if draw.chance(0.4) else ()
    return (array, *second), {"base": 2} if draw.chance(0.3) else {}


@named("linalg", *_MATRICES)
def _made_matrix(draw: Draw) -> Any:
    return (draw.one((1, 2, 3, 4, 8)),), {}


@named("linalg", "toeplitz", "hankel", "circulant", "fiedler", "companion", "fiedler_companion")
def _from_vector(draw: Draw) -> Any:
    return (_filled(draw, 1, 1, "fdilFD"),), {}


@named("linalg", "toeplitz", "hankel")
def _from_two_vectors(draw: Draw) -> Any:
    return (_filled(draw, 1, 2, "fdilFD"), _filled(draw, 1, 1, "fdilFD")), {}


@named("linalg", "leslie")
def _leslie(draw: Draw) -> Any:
    count = draw.one((1, 2, 4))
    return (Array((count + 1,), draw.one("fdl")), Array((count,), draw.one("fdl"))), {}


@named("linalg", "convolution_matrix")
def _convolution_matrix(draw: Draw) -> Any:
    return (_filled(draw, 1, 1, "fdilFD"), draw.one((1, 2, 5))), {"mode": draw.one(("full", "same", "valid"))}


@named("linalg", "block_diag")
def _blocks(draw: Draw) -> Any:
    return tuple(draw.array(0, 2) for _ in range(draw.random.randint(1, 3))), {}


@named("linalg", "khatri_rao")
def _khatri_rao(draw: Draw) -> Any:
    columns = draw.one((1, 2, 3))
    return tuple(draw.array(dtypes="fdlF", shape=(draw.one((1, 2, 4)), columns)) for _ in range(2)), {}


@named("linalg", "solve_triangular")
def _triangular(draw: Draw) -> Any:
    rows = draw.one((1, 2, 4))
    sides = draw.one(((rows,), (rows, 1), (rows, 3)))
    kwargs = {"lower": draw.chance(0.5), "trans": draw.one((0, 1, 2, "N", "T", "C"))}
    return (draw.array(dtypes="fdFDl?e", shape=(rows, rows)), draw.array(dtypes="fdFDle", shape=sides)), kwargs


@named("linalg", "lu_solve")
def _factored(draw: Draw) -> Any:
    rows = draw.one((1, 2, 4))
    # Pivots are places of rows: CuPy reads wherever they say.
    factors = Array((rows, rows), draw.one("fdFDl"), draw.one("CFS")), Made("cupy.zeros", (rows, draw.one("iiil")))
    sides = draw.array(dtypes="fdFDle", shape=draw.one(((rows,), (rows, 1), (rows, 3))))
    return (factors, sides), {"trans": draw.one((0, 0, 1, 2, 3)), "check_finite": draw.chance(0.2)}


@named("signal", "convolve", "correlate", "fftconvolve", "oaconvolve")
def _convolved(draw: Draw) -> Any:
    ndim = draw.random.randint(1, 2)
    kwargs = {"mode": draw.one(("full", "same", "valid"))} if draw.chance(0.6) else {}
    return (_filled(draw, ndim, ndim, "fdFDil"), _filled(draw, ndim, ndim, "fdFDil")), kwargs


@named("signal", "convolve", "correlate")
def _convolved_by_method(draw: Draw) -> Any:
    kwargs = {"method": draw.one(("direct", "fft"))}
    return (_filled(draw, 1, 2, "fdFDilhB"), _filled(draw, 1, 2, "fdFDil")), kwargs


@named("signal", "convolve2d", "correlate2d")
def _convolved_images(draw: Draw) -> Any:
    kwargs = {"mode": draw.one(("full", "same", "valid"))} if draw.chance(0.6) else {}
    if draw.chance(0.5):
        kwargs["boundary"] = draw.one(("fill", "wrap", "symm"))
    return (_filled(draw, 2, 2, "fdFDil"), _filled(draw, 2, 2, "fdFDil")), kwargs


@named("signal", "medfilt", "medfilt2d")
def _median(draw: Draw) -> Any:
    array = draw.array(dtypes="fdilB", shape=(draw.one((3, 5)), draw.one((3, 6))))
    return (array,), {"kernel_size": draw.one((3, 1, (1, 3), [3, 1]))} if draw.chance(0.7) else {}


@named("signal.windows", *_WINDOWS)
def _window(draw: Draw) -> Any:
    return (draw.one((0, 1, 2, 5, 8)),), {"sym": draw.chance(0.5)} if draw.chance(0.5) else {}


@named("signal.windows", "gaussian", "general_hamming", "kaiser", "tukey")
def _shaped_window(draw: Draw) -> Any:
    return (draw.one((1, 2, 5, 8)), draw.one((0.3, 2, np.float64(1.5)))), {}


@named("signal.windows", "general_gaussian")
def _general_gaussian(draw: Draw) -> Any:
    return (draw.one((1, 2, 5)), 1.5), {"sig": 7}


@named("signal", "get_window")
def _any_window(draw: Draw) -> Any:
    return (draw.one(("hann", "boxcar", ("gaussian", 2.0), ("kaiser", 4), ("hamming",))), draw.one((1, 2, 5))), {}


@template("cupyx.scipy.signal.fftconvolve", "cupyx.scipy.signal.oaconvolve")
def _convolved_along_axes(draw: Draw) -> Any:
    a = draw.array(1, 3, "fdFDl")
    shape = tuple(extent if draw.chance(0.7) else draw.extent() for extent in a.shape)
    axes = draw.one((None, draw.axis(a), [draw.axis(a)], tuple(range(len(a.shape)))))
    return (a, draw.array(shape=shape, dtypes="fdFDl"), draw.one(("full", "same", "valid"))), {"axes": axes}


@template("cupyx.scipy.signal.lfilter")
def _filtered(draw: Draw) -> Any:
    x = draw.array(1, 3, "fdfdlD")
    b, a = Array((draw.one((1, 2, 3)),), draw.one("fd")), Array((draw.one((1, 2, 4)),), draw.one("fd"))
    return (b, a, x), {} if draw.chance(0.4) else {"axis": draw.axis(x)}


@template("cupyx.scipy.signal.sosfilt")
def _filtered_by_sections(draw: Draw) -> Any:
    x = draw.array(1, 3, "fdfdlD")
    return (Array((draw.one((1, 2)), 6), draw.one("fd")), x), {} if draw.chance(0.4) else {"axis": draw.axis(x)}
