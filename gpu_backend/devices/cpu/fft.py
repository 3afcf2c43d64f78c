"""``cupy.fft``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.creation import arange
from gpu_backend.devices.cpu.fft_plans import C2C, C2R, R2C
from gpu_backend.devices.cpu.fft_transforms import one_by_one, way
from gpu_backend.devices.cpu.table import define, define_plain

#: What each function makes of what, and whether forward.
KINDS = {"fft": (C2C, True), "ifft": (C2C, False), "rfft": (R2C, True), "irfft": (C2R, False)}

_SWAPPED = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def swapped(norm: str | None) -> str:
    """Return the norm of the opposite direction."""
    if norm not in _SWAPPED:
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho", or "forward".')
    return _SWAPPED[norm]


def _in_precision_of(a: Array, made: Array) -> Array:
    """Return the real result of a transform along one axis as CuPy casts it, which keeps half precision."""
    return made.astype(np.result_type(a.real.dtype, 1.0), copy=False)


def _one_axis(name: str) -> Callable[..., Array]:
    kind, forward = KINDS[name]

    def function(a: Array, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
        made = one_by_one(a, (n,), (axis,), norm, forward, kind)
        return _in_precision_of(a, made) if kind == C2R else made

    return function


def _many_axes(name: str, default: Any) -> Callable[..., Array]:
    kind, forward = KINDS[name]

    def function(a: Array, s: object = None, axes: Any = default, norm: str | None = None) -> Array:
        made = way(a, s, axes, None, kind)(a, s, axes, norm, forward, kind)
        return _in_precision_of(a, made) if kind == C2R and axes is not None and len(axes) == 1 else made

    return function


for _name in KINDS:
    define(f"cupy.fft.{_name}")(_one_axis(_name))
    define(f"cupy.fft.{_name}n")(_many_axes(_name, None))
    define(f"cupy.fft.{_name}2")(_many_axes(_name, (-2, -1)))


@define("cupy.fft.hfft")
def hfft(a: Array, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    return _one_axis("irfft")(a.conj(), n, axis, swapped(norm))


@define("cupy.fft.ihfft")
def ihfft(a: Array, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    return one_by_one(a, (n,), (axis,), swapped(norm), True, R2C).conj()


@define("cupy.fft.fftfreq")
def fftfreq(n: float, d: float = 1.0) -> Array:
    return np.hstack([np.arange(0, (n - 1) // 2 + 1, dtype=np.float64), np.arange(-(n // 2), 0, dtype=np.float64)]) / (
        n * d
    )


@define("cupy.fft.rfftfreq")
def rfftfreq(n: int, d: float = 1.0) -> Array:
    return arange(0, n // 2 + 1, dtype=np.float64) * (1.0 / n / d)


define_plain("cupy.fft", np.fft, ("fftshift", "ifftshift"))
