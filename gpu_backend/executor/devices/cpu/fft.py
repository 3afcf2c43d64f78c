"""``cupy.fft`` and ``cupyx.scipy.fft``: SciPy's transforms, which keep single precision as cuFFT does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import scipy.fft

from gpu_backend.executor.devices.cpu.arrays import Array, in_c_order, np
from gpu_backend.executor.devices.cpu.creation import arange
from gpu_backend.executor.devices.cpu.table import define, define_plain

_ONE_AXIS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
_MANY_AXES = ("fftn", "ifftn", "rfftn", "irfftn")
_TO_REAL = ("irfft", "hfft", "irfftn")
_TWO_AXES = ("fft2", "ifft2", "rfft2", "irfft2")


def _checked(a: Array, norm: Any) -> None:
    if a.ndim == 0:
        raise IndexError("tuple index out of range")
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f'Invalid norm value {norm}, should be "backward", "ortho", or "forward".')


def _one_axis(name: str) -> Callable[..., Array]:
    transform = getattr(scipy.fft, name)

    def function(a: Array, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
        _checked(a, norm)
        if n is not None and n < 1:
            raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
        made = in_c_order(transform(a, n, axis, norm))
        return _in_precision_of(a, made) if name in _TO_REAL else made

    return function


def _in_precision_of(a: Array, made: Array) -> Array:
    """Return the real result of a transform along one axis as CuPy casts it, which keeps half precision."""
    return made.astype(np.result_type(a.real.dtype, 1.0), copy=False)


def _many_axes(name: str, default: Any) -> Callable[..., Array]:
    transform = getattr(scipy.fft, name)

    def function(a: Array, s: Any = None, axes: Any = default, norm: str | None = None) -> Array:
        _checked(a, norm)
        if s is not None and any(n is not None and n < 1 for n in s):
            raise ValueError(f"Invalid number of FFT data points ({s}) specified.")
        if axes is not None and not len(axes):
            if name.startswith(("rfft", "irfft")):
                raise IndexError("list index out of range")
            return a.astype(np.result_type(a, np.complex64))
        made = in_c_order(transform(a, s, axes, norm))
        return _in_precision_of(a, made) if name in _TO_REAL and axes is not None and len(axes) == 1 else made

    return function


for _name in _ONE_AXIS:
    define(f"cupy.fft.{_name}")(_one_axis(_name))
for _name in _MANY_AXES:
    define(f"cupy.fft.{_name}")(_many_axes(_name, None))
for _name in _TWO_AXES:
    define(f"cupy.fft.{_name}")(_many_axes(_name.replace("2", "n"), (-2, -1)))


@define("cupy.fft.fftfreq")
def fftfreq(n: int, d: float = 1.0) -> Array:
    return np.fft.fftfreq(n, d)


@define("cupy.fft.rfftfreq")
def rfftfreq(n: int, d: float = 1.0) -> Array:
    return arange(0, n // 2 + 1, dtype=np.float64) * (1.0 / n / d)


define_plain("cupy.fft", np.fft, ("fftshift", "ifftshift"))
