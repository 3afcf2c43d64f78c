"""``cupyx.scipy.fftpack``, and the plans that it and ``cupyx.scipy.fft`` take."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.fft import KINDS
from gpu_backend.devices.cpu.fft_plans import C2C, C2R, R2C, Plan, type_number
from gpu_backend.devices.cpu.fft_transforms import (
    converted,
    one_by_one,
    plan_1d,
    plan_nd,
    result_size,
    sorted_axes,
    way,
)  # fmt: skip
from gpu_backend.devices.cpu.table import define


@define("cupyx.scipy.fft.get_fft_plan", "cupyx.scipy.fftpack.get_fft_plan")
def get_fft_plan(a: Array, shape: Any = None, axes: Any = None, value_type: str = C2C) -> Plan:
    """Return the plan for transforms of arrays that lie as ``a`` does.

    Raises
    ------
    ValueError
        If cuFFT has no such plan.
    """
    if not (a.flags.c_contiguous or a.flags.f_contiguous):
        raise ValueError("Input array a must be contiguous")
    shape = (shape,) if isinstance(shape, int) else shape
    axes = (axes,) if isinstance(axes, int) else axes
    if shape is not None and axes is not None and len(shape) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    places = _places(a, shape, axes)
    number = type_number(value_type, converted(a.dtype, value_type))
    taken = _taken_shape(a, shape, places, value_type)
    size = result_size(taken, shape, places[-1], value_type)
    if len(places) > 1:
        if value_type != C2C and a.flags.f_contiguous:
            raise ValueError("C2R/R2C PlanNd for F-order arrays is not supported")
        ordered = sorted_axes(a.ndim, None, places, value_type)[1]
        return plan_nd(taken, number, ordered, "C" if a.flags.c_contiguous else "F", size, keep=False)
    length = taken[places[0]]
    batch = math.prod(taken) // length if length else 0
    return plan_1d(length if size is None or value_type == R2C else size, number, batch, keep=False)


def _places(a: Array, shape: Any, axes: Any) -> tuple[int, ...]:
    if axes is None:
        return tuple(range(-(a.ndim if shape is None else len(shape)), 0))
    if len(axes) == 1 and not -a.ndim <= axes[0] < a.ndim:
        raise ValueError(f"The chosen axis ({axes[0]}) exceeds the number of dimensions of a ({a.ndim})")
    if len(axes) > 3:
        raise ValueError("Only up to three axes is supported")
    return tuple(axes)


def _taken_shape(a: Array, shape: Any, axes: tuple[int, ...], kind: str) -> tuple[int, ...]:
    """Return the shape of an array like ``a`` once it is cut to the lengths that a transform takes."""
    taken = list(a.shape)
    for length, axis in zip(shape or (), axes, strict=False):
        if length is not None:
            taken[axis] = length // 2 + 1 if kind == C2R and axis == axes[-1] else length
    return tuple(taken)


def _one_axis(name: str) -> Callable[..., Array]:
    kind, forward = KINDS[name]

    def function(
        x: Array, n: int | None = None, axis: int = -1, overwrite_x: bool = False, plan: Plan | None = None
    ) -> Array:
        return one_by_one(x, (n,), (axis,), None, forward, kind, overwrite_x=overwrite_x, plan=plan)

    return function


def _many_axes(name: str, default: object) -> Callable[..., Array]:
    _, forward = KINDS[name]

    def function(
        x: Array, shape: object = None, axes: object = default, overwrite_x: bool = False, plan: Plan | None = None
    ) -> Array:
        go = way(x, shape, axes, plan)
        return go(x, shape, axes, None, forward, overwrite_x=overwrite_x, plan=plan)

    return function


for _name in ("fft", "ifft"):
    define(f"cupyx.scipy.fftpack.{_name}")(_one_axis(_name))
    define(f"cupyx.scipy.fftpack.{_name}n")(_many_axes(_name, None))
    define(f"cupyx.scipy.fftpack.{_name}2")(_many_axes(_name, (-2, -1)))


@define("cupyx.scipy.fftpack.rfft")
def rfft(x: Array, n: int | None = None, axis: int = -1, overwrite_x: bool = False, plan: Plan | None = None) -> Array:
    """Return real and imaginary parts in turns: Re(0), Re(1), Im(1), Re(2), ..."""
    n = x.shape[axis] if n is None else n
    made = np.moveaxis(one_by_one(x, (n,), (axis,), None, True, R2C, overwrite_x=overwrite_x, plan=plan), axis, -1)
    packed = np.empty((*x.shape[:axis], n, *x.shape[axis % x.ndim + 1 :]), made.real.dtype)
    parts = np.moveaxis(packed, axis, -1)
    parts[..., :1] = made[..., :1].real
    parts[..., 1::2] = made[..., 1:].real
    parts[..., 2::2] = made[..., 1 : (n + 1) // 2].imag
    return packed


@define("cupyx.scipy.fftpack.irfft")
def irfft(x: Array, n: int | None = None, axis: int = -1, overwrite_x: bool = False) -> Array:
    """Return the array whose transform is ``x``, in which real and imaginary parts take turns."""
    n = x.shape[axis] if n is None else n
    given = np.moveaxis(x, axis, -1)[..., :n]
    parts = np.zeros((*given.shape[:-1], n // 2 + 1), "F" if x.dtype.char in "ef" else "D")
    parts[..., :1] = given[..., :1]
    parts.real[..., 1 : given.shape[-1] // 2 + 1] = given[..., 1::2]
    parts.imag[..., 1 : (given.shape[-1] + 1) // 2] = given[..., 2::2]
    return one_by_one(np.moveaxis(parts, -1, axis), (n,), (axis,), None, False, C2R, overwrite_x=overwrite_x)
