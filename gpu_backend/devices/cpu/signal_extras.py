"""``cupyx.signal``: filters, channels, radar, beams and cepstra, written from their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.ndimage
import scipy.signal
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.scipy_signal_filters import lfilter
from gpu_backend.devices.cpu.table import define

_PREFIX = "cupyx.signal"
#: Most taps that a channel may have.
_MOST_TAPS = 32


@define(f"{_PREFIX}.firfilter")
def firfilter(b: Array, x: Array, axis: int = -1, zi: object = None) -> Any:
    """Filter ``x`` without feedback."""
    return lfilter(b, np.ones(1), x, axis, zi)


@define(f"{_PREFIX}.firfilter_zi")
def firfilter_zi(b: Array) -> Array:
    """Return the delay line in which a filter that is fed ones gives always the same."""
    return np.cumsum(b[:0:-1])[::-1].astype(np.result_type(b, np.float32))


@define(f"{_PREFIX}.firfilter2")
def firfilter2(
    b: ArrayLike,
    x: ArrayLike,
    axis: int = -1,
    padtype: str = "odd",
    padlen: Any = None,
    method: str = "pad",
    irlen: object = None,
) -> Array:
    """Filter forwards and backwards."""
    if method not in ("pad", "gust"):
        raise ValueError("method must be 'pad' or 'gust'.")
    if method == "gust":
        raise NotImplementedError("gust method not supported yet")
    made: Array = scipy.signal.filtfilt(np.atleast_1d(b), np.ones(1), np.asarray(x), axis, padtype, padlen)
    return made


@define(f"{_PREFIX}.freq_shift")
def freq_shift(x: object, freq: float, fs: float) -> Array:
    """Return ``x`` with all its frequencies moved by ``freq``, at ``fs`` samples a second."""
    x = np.asarray(x, np.float64)
    turns = np.arange(x.size).reshape(x.shape) * (-2 * np.pi * freq / fs)
    made: Array = x * np.exp(1j * turns)
    return made


@define(f"{_PREFIX}.channelize_poly")
def channelize_poly(x: Array, h: Array, n_chans: int) -> Array:
    """Return ``n_chans`` channels of ``x`` by a polyphase filter bank with the prototype ``h``."""
    dtype = np.promote_types(x.dtype, h.dtype)
    if dtype.char not in "fdFD":
        raise NotImplementedError(f"Data type ({dtype}) not allowed.")
    taps, points = len(h) // n_chans, len(x) // n_chans
    if taps > _MOST_TAPS:
        raise NotImplementedError(
            f"The number of calculated taps ({taps}) in each filter is currently capped at {_MOST_TAPS}. "
            "Please reduce filter length or number of channels"
        )
    weights = h.astype(dtype).reshape(taps, n_chans).conj()
    rows = x.astype(dtype)[: points * n_chans].reshape(points, n_chans)[:, ::-1].conj()
    past = np.concatenate([np.zeros((taps - 1, n_chans), dtype), rows])
    windows = sliding_window_view(past, taps, axis=0)[..., ::-1]
    mixed = np.einsum("pct,tc->pc", windows, weights)
    return np.conj(np.fft.fft(mixed)).T.astype(np.promote_types(dtype, np.complex64))


@define(f"{_PREFIX}.convolve1d2o")
def convolve1d2o(in1: Array, in2: Array, mode: str = "valid", method: str = "direct") -> Array:
    """Return the second-order (quadratic) convolution of ``in1`` with the kernel ``in2``."""
    return _of_order(in1, in2, mode, method, 2)


@define(f"{_PREFIX}.convolve1d3o")
def convolve1d3o(in1: Array, in2: Array, mode: str = "valid", method: str = "direct") -> Array:
    """Return the third-order (cubic) convolution of ``in1`` with the kernel ``in2``."""
    return _of_order(in1, in2, mode, method, 3)


def _of_order(in1: Array, in2: Array, mode: str, method: str, order: int) -> Array:
    if in1.ndim != 1:
        raise ValueError("in1 should have one dimension")
    if in2.ndim != order:
        raise ValueError("in2 should have three dimension")
    if mode in ("same", "full"):
        raise NotImplementedError(f"Mode == {mode} not implemented")
    if method != "direct":
        raise NotImplementedError("Only Direct method implemented")
    size = in1.shape[0] - max(in2.shape) + 1
    pasts = [sliding_window_view(in1, length)[:size, ::-1] for length in in2.shape]
    letters = "xyz"[:order]
    terms = ",".join(f"i{letter}" for letter in letters)
    made = np.einsum(f"{terms},{letters}->i", *pasts, in2, optimize=True)
    result: Array = made.astype(np.result_type(in1, in2))
    return result


def _weighted(x: Array, normalize: bool, window: object) -> Array:
    if window is not None:
        length = x.shape[-1]
        if callable(window):
            weights = window(np.fft.fftfreq(length).astype(x.dtype))
        elif isinstance(window, np.ndarray):
            if window.shape != (length,):
                raise ValueError("window must have the same length as data")
            weights = window
        else:
            weights = scipy.signal.get_window(window, length, False).astype(x.dtype)
        x = x * weights
    return x / np.linalg.norm(x) if normalize else x


@define(f"{_PREFIX}.pulse_compression")
def pulse_compression(
    x: Array, template: Array, normalize: bool = False, window: object = None, nfft: int | None = None
) -> Array:
    """Return each pulse (a row of ``x``) correlated with ``template``."""
    length = x.shape[1] if nfft is None else nfft
    spectrum = np.fft.fft(_weighted(template, normalize, window), length)
    made = np.fft.ifft(np.fft.fft(x, length) * spectrum.conj(), length)
    dtype = np.result_type(x, template)
    return (made if dtype.kind == "c" else made.real).astype(dtype)


@define(f"{_PREFIX}.pulse_doppler")
def pulse_doppler(x: Array, window: object = None, nfft: int | None = None) -> Array:
    """Return the spectrum over pulses (rows of ``x``) for each sample."""
    weighted = _weighted(x.T, False, window)
    return np.fft.fft(weighted, x.shape[0] if nfft is None else nfft).T.astype(np.promote_types(x.dtype, np.complex64))


@define(f"{_PREFIX}.cfar_alpha")
def cfar_alpha(pfa: Any, N: int) -> Any:
    """Return the factor on the mean of ``N`` cells that gives false alarms with probability ``pfa``."""
    return N * (pfa ** (-1.0 / N) - 1)


@define(f"{_PREFIX}.ca_cfar")
def ca_cfar(array: Array, guard_cells: Any, reference_cells: Any, pfa: float = 1e-3) -> tuple[Array, Array]:
    """Return the threshold of each cell, from the cells around it, and where it is passed."""
    if array.ndim > 2:
        raise TypeError("Only 1D and 2D arrays are currently supported.")
    guards, references = np.atleast_1d(guard_cells).tolist(), np.atleast_1d(reference_cells).tolist()
    if len(guards) != array.ndim or len(references) != array.ndim:
        raise TypeError("Guard and reference cells must be two dimensional.")
    edges = [guard + reference for guard, reference in zip(guards, references, strict=True)]
    if any(length <= 2 * edge for length, edge in zip(array.shape, edges, strict=True)):
        raise ValueError("Array too small for given parameters")
    weights = np.ones([2 * edge + 1 for edge in edges])
    around_it = zip(guards, references, strict=True)
    weights[tuple(slice(reference, reference + 2 * guard + 1) for guard, reference in around_it)] = 0
    count = int(weights.sum())
    inner = tuple(slice(edge, length - edge) for edge, length in zip(edges, array.shape, strict=True))
    mask = np.zeros(array.shape, np.float32)
    around = scipy.ndimage.convolve(array.astype(np.float64), weights, mode="constant")
    mask[inner] = around[inner] * (cfar_alpha(pfa, count) / count)
    return mask, array - mask > 0


@define(f"{_PREFIX}.mvdr")
def mvdr(x: Array, sv: Array, calc_cov: bool = True) -> Array:
    """Return the weights of the beam of least variance towards ``sv``."""
    if x.shape[0] > x.shape[1]:
        raise ValueError("Matrix has more sensors than samples. Consider transposing: each row is a sensor")
    if x.shape[0] != sv.shape[0]:
        raise ValueError("Steering Vector and input data do not align")
    covariance = np.cov(x, dtype=x.dtype) if calc_cov else x
    towards = np.linalg.inv(covariance).dot(sv)
    made: Array = towards / sv.conj().dot(towards)
    return made


@define(f"{_PREFIX}.real_cepstrum")
def real_cepstrum(x: ArrayLike, n: int | None = None, axis: int = -1) -> Array:
    """Return the inverse transform of the logarithm of the spectrum's size."""
    return np.fft.ifft(np.log(np.abs(np.fft.fft(x, n, axis))), n, axis).real


@define(f"{_PREFIX}.complex_cepstrum")
def complex_cepstrum(x: ArrayLike, n: int | None = None, axis: int = -1) -> tuple[Array, Array]:
    """Return the inverse transform of the logarithm of the spectrum, its phase straightened, and by how many turns."""
    spectrum = np.fft.fft(x, n, axis)
    phase = np.unwrap(np.angle(spectrum))
    samples = phase.shape[-1]
    center = (samples + 1) // 2 if samples > 1 else 0
    delay = np.round(phase[..., center] / np.pi)
    phase = phase - np.pi * delay[..., None] * np.arange(samples) / max(center, 1)
    return np.fft.ifft(np.log(np.abs(spectrum)) + 1j * phase, n, axis).real, delay


@define(f"{_PREFIX}.inverse_complex_cepstrum")
def inverse_complex_cepstrum(ceps: Any, ndelay: object) -> Array:
    """Return the signal whose `complex_cepstrum` is given."""
    logarithm = np.fft.fft(ceps)
    samples = logarithm.shape[-1]
    turned = np.pi * np.asarray(ndelay)[..., None] * np.arange(samples) / max((samples + 1) // 2, 1)
    return np.fft.ifft(np.exp(logarithm + 1j * turned)).real


@define(f"{_PREFIX}.minimum_phase")
def minimum_phase(x: Any, n: int | None = None) -> Array:
    """Return the signal with the same size of spectrum and the least phase."""
    length = len(x) if n is None else n
    cepstrum = real_cepstrum(x, length)
    folded = np.zeros(length, cepstrum.dtype)
    folded[0] = 1
    folded[1 : (length + 1) // 2] = 2
    folded[length // 2] += 1 if length % 2 == 0 else 0
    return np.fft.ifft(np.exp(np.fft.fft(folded * cepstrum))).real
