"""Rules of ``cupyx.scipy.signal``: convolutions, windows and median filters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpu_backend.opstream.layout import DType, Shape
from gpu_backend.opstream.proof.arguments import COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, as_axes, as_axis, as_index
from gpu_backend.opstream.proof.images import as_number
from gpu_backend.opstream.proof.outcome import CannotProve, refusal
from gpu_backend.opstream.proof.promotion import result_type
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.scipy_ndimage import rank_filter
from gpu_backend.opstream.proof.shadow import Shadow, array, new

_SIGNAL, _WINDOWS = "cupyx.scipy.signal.", "cupyx.scipy.signal.windows."
_BOUNDARIES = frozenset("fill pad wrap circular symm symmetric".split())
_SAMPLES = "bBhHiIlLfdFD"


def _pair(in1: Any, in2: Any, ndim: int | None = None) -> tuple[Shadow, Shadow]:
    first, second = array(in1), array(in2)
    if first.ndim != second.ndim or first.ndim == 0 or not first.size or not second.size:
        raise CannotProve("signals that do not fit, or empty ones")
    if ndim is not None and first.ndim != ndim:
        raise CannotProve(f"signals of {first.ndim} axes")
    if first.dtype.char not in _SAMPLES or second.dtype.char not in _SAMPLES:
        raise CannotProve("signals of another dtype")
    return first, second


def _convolved_shape(first: Shape, second: Shape, mode: Any) -> Shape:
    pairs = list(zip(first, second, strict=True))
    if mode == "full":
        shape = tuple([one + other - 1 for one, other in pairs])
    elif mode == "same":
        shape = first
    elif mode == "valid":
        if any(one < other for one, other in pairs) and any(one > other for one, other in pairs):
            raise CannotProve("signals neither of which holds the other")
        shape = tuple([abs(one - other) + 1 for one, other in pairs])
    else:
        raise CannotProve("an unknown mode")
    return shape


def _thick(shape: Shape) -> Shape:
    if len(shape) > 1 and 1 in shape:
        raise CannotProve("a result one sample thin, whose strides may be any")
    return shape


def _by_fft(first: Shadow, second: Shadow) -> DType:
    single = first.dtype.char in "fF" and second.dtype.char in "fF"
    if "c" in (first.dtype.kind, second.dtype.kind):
        return COMPLEX64 if single else COMPLEX128
    return FLOAT32 if single else FLOAT64


def _require_one_complex_type(first: Shadow, second: Shadow) -> None:
    if "c" in (first.dtype.kind, second.dtype.kind) and first.dtype != second.dtype:
        raise CannotProve("a product of a complex number and another type, which may not compile")


@rule(_SIGNAL + "convolve", _SIGNAL + "correlate")
def convolve(in1: Any, in2: Any, mode: Any = "full", method: Any = "auto") -> Shadow:
    """As CuPy."""
    first, second = _pair(in1, in2)
    if method not in ("direct", "fft") and (method != "auto" or first.ndim > 1):
        raise CannotProve("an unknown method, or a choice among them for images, which CuPy refuses")
    _require_one_complex_type(first, second)
    return new(_thick(_convolved_shape(first.shape, second.shape, mode)), result_type(first.dtype, second.dtype))


@rule(_SIGNAL + "fftconvolve", _SIGNAL + "oaconvolve")
def fftconvolve(in1: Any, in2: Any, mode: Any = "full", axes: Any = None) -> Shadow:
    """As CuPy."""
    first, second = _pair(in1, in2)
    if isinstance(axes, list):
        raise refusal(TypeError, "'list' object cannot be interpreted as an integer")
    places = as_axes(axes, first.ndim)
    joined = [place for place in places if 1 not in (first.shape[place], second.shape[place])]
    if not joined:
        raise CannotProve("no axes")
    pairs = list(zip(first.shape, second.shape, strict=True))
    if any(one != other and 1 not in (one, other) for place, (one, other) in enumerate(pairs) if place not in joined):
        raise refusal(ValueError, f"incompatible shapes for in1 and in2: {first.shape} {second.shape}")
    apart = [place for place in range(first.ndim) if place not in joined]
    if mode != "full" and any(pairs[place][0] < pairs[place][1] for place in apart):
        raise CannotProve("an axis that only the second signal has")
    convolved = _convolved_shape(
        tuple(pairs[place][0] for place in joined), tuple(pairs[place][1] for place in joined), mode
    )
    shape = [max(pair) for pair in pairs]
    for place, extent in zip(joined, convolved, strict=True):
        shape[place] = extent
    return new(_thick(tuple(shape)), _by_fft(first, second))


@rule(_SIGNAL + "convolve2d", _SIGNAL + "correlate2d")
def convolve2d(in1: Any, in2: Any, mode: Any = "full", boundary: Any = "fill", fillvalue: Any = 0) -> Shadow:
    """As CuPy."""
    first, second = _pair(in1, in2, 2)
    if boundary not in _BOUNDARIES or as_number(fillvalue) != 0:
        raise CannotProve("an unknown boundary, or filled with other than zeros")
    _require_one_complex_type(first, second)
    return new(_thick(_convolved_shape(first.shape, second.shape, mode)), result_type(first.dtype, second.dtype))


def _filtered(x: Shadow, axis: Any, dtype: DType) -> Shadow:
    """Return what comes of a recursive filter: in C order, as its kernels leave it."""
    if x.ndim == 0 or x.size == 0:
        raise CannotProve("nothing to filter")
    as_axis(axis, x.ndim)
    return new(x.shape, dtype)


@rule(_SIGNAL + "lfilter")
def lfilter(b: Any, a: Any, x: Any, axis: Any = -1, zi: Any = None) -> Shadow:
    """As CuPy, of real signals and a filter with feedback, from rest."""
    numerator, denominator, signal = array(b), array(a), array(x)
    if zi is not None or numerator.ndim != 1 or denominator.ndim != 1 or not numerator.size or denominator.size < 2:
        raise CannotProve("a state, or other than a filter with feedback")
    if any(one.dtype.char not in "fd" for one in (numerator, denominator, signal)):
        raise CannotProve("signals of another dtype")
    return _filtered(signal, axis, result_type(signal.dtype, numerator.dtype, denominator.dtype))


@rule(_SIGNAL + "sosfilt")
def sosfilt(sos: Any, x: Any, axis: Any = -1, zi: Any = None) -> Shadow:
    """As CuPy, of real signals, from rest."""
    sections, signal = array(sos), array(x)
    if zi is not None or sections.ndim != 2 or sections.shape[1] != 6 or not sections.size:
        raise CannotProve("a state, or no sections of second order")
    if any(one.dtype.char not in "fd" for one in (sections, signal)):
        raise CannotProve("signals of another dtype")
    return _filtered(signal, axis, result_type(signal.dtype, sections.dtype))


@rule(_SIGNAL + "medfilt")
def medfilt(volume: Any, kernel_size: Any = None) -> Shadow:
    """As CuPy."""
    return _median(array(volume), 3 if kernel_size is None else kernel_size)


@rule(_SIGNAL + "medfilt2d")
def medfilt2d(input: Any, kernel_size: Any = 3) -> Shadow:
    """As CuPy."""
    if array(input).ndim != 2:
        raise CannotProve("other than an image")
    return _median(input, kernel_size)


def _median(signal: Shadow, size: Any) -> Shadow:
    widths = list(size) if isinstance(size, (tuple, list)) else [size] * signal.ndim
    if len(widths) != signal.ndim or any(as_index(width) % 2 == 0 for width in widths):
        raise CannotProve("windows of even width, or another number of them")
    if any(width > extent for width, extent in zip(widths, signal.shape, strict=True)):
        raise CannotProve("a warning about the width")
    return rank_filter(signal, 0, widths, mode="constant")


def _samples(M: Any) -> Shadow:  # noqa: N803 (the field's name for it)
    count = as_index(M)
    if not 0 <= count < 1 << 31:
        raise CannotProve("an unusual number of samples")
    return new((count,), FLOAT64)


def _window(M: Any, sym: Any = True) -> Shadow:  # noqa: N803
    return _samples(M)


def _window_with(*names: str) -> Callable[..., Shadow]:
    """Return the rule of a window with parameters of these names."""

    def window(M: Any, *parameters: Any, **named: Any) -> Shadow:  # noqa: N803
        sym_by_place = len(parameters) > len(names)
        given = list(parameters[: len(names)])
        given += [value for name, value in named.items() if name in names]
        if len(given) != len(names) or len(parameters) > len(names) + 1 or not {*names, "sym"}.issuperset(named):
            raise CannotProve("other parameters than the window has")
        if sym_by_place and "sym" in named:
            raise CannotProve("a parameter given twice")
        if any(as_number(one) <= 0 for one in given):
            raise CannotProve("an unusual parameter")
        return _samples(M)

    return window


_PLAIN = (
    "barthann bartlett blackman blackmanharris bohman boxcar cosine flattop hamming hann nuttall parzen triang".split()
)
_SHAPED = {
    "gaussian": ("std",),
    "general_gaussian": ("p", "sig"),
    "general_hamming": ("alpha",),
    "kaiser": ("beta",),
    "tukey": ("alpha",),
}
for _name in _PLAIN:
    rule(_WINDOWS + _name)(_window)
for _name, _names in _SHAPED.items():
    rule(_WINDOWS + _name)(_window_with(*_names))


@rule(_SIGNAL + "get_window", _WINDOWS + "get_window")
def get_window(window: Any, Nx: Any, fftbins: Any = True) -> Shadow:  # noqa: N803
    """As CuPy."""
    name, *parameters = window if isinstance(window, tuple) else (window,)
    if name in _PLAIN and not parameters:
        return _window(Nx)
    if name in _SHAPED:
        return _window_with(*_SHAPED[name])(Nx, *parameters)
    raise CannotProve("an unknown window")
