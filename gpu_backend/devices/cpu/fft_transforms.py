"""How a transform goes: with which plan, along one axis after the other or along several at once.

CuPy's choices are kept where they show: in the memory order of results, in what a plan is refused for, and in which
setting counts. Along one axis after the other, each result lies as if its axis were the last; along several at once,
the result lies as the array does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from gpu_backend.devices.cpu.arrays import Array, in_c_order
from gpu_backend.devices.cpu.fft_config import config
from gpu_backend.devices.cpu.fft_plans import (
    C2C,
    C2R,
    R2C,
    Plan,
    Plan1d,
    PlanNd,
    computed,
    get_current_plan,
    type_number,
)  # fmt: skip

_NORMS = ("backward", "ortho", "forward")
_TWICE = "Use the cuFFT plan either as a context manager or as an argument."

#: Transform this array, of these lengths, along these axes, with this norm.
Way = Callable[..., Array]


def converted(dtype: Any, kind: str) -> Any:
    """Return the dtype that an array of ``dtype`` is transformed in."""
    if kind == R2C:
        real = np.dtype(dtype.char.lower()) if dtype.kind == "c" else dtype
        return real if real.char in "fd" else np.dtype("f" if real.char == "e" else "d")
    return dtype if dtype.char in "FD" else np.dtype("F" if dtype.char in "ef" else "D")


def _check(a: object, s: Any, axes: Any) -> None:
    if not isinstance(a, np.ndarray):
        raise TypeError("The input array a must be a cupy.ndarray")
    if s is not None and axes is not None and len(s) != len(axes):
        raise ValueError("Shape and axes have different lengths.")


def _check_norm(norm: str | None) -> str:
    norm = "backward" if norm is None else norm
    if norm not in _NORMS:
        raise ValueError(f'Invalid norm value {norm}, should be "backward", "ortho", or "forward".')
    return norm


def _cut(a: Array, s: Any, axes: Sequence[int], kind: str, order: Literal["C", "F"] = "C") -> Array:
    """Return ``a`` cut to the lengths ``s`` or filled up with zeros; as it is if they are its shape, as CuPy does."""
    if s is None or s == a.shape:  # whatever the order of the axes is
        return a
    if kind == C2R and s[-1] is not None:
        s = (*s[:-1], s[-1] // 2 + 1)
    for length, axis in zip(s, axes, strict=False):
        if length is None or length == a.shape[axis]:
            continue
        shape, window = list(a.shape), [slice(None)] * a.ndim
        window[axis] = slice(0, min(length, shape[axis]))
        if length < shape[axis]:
            a = a[tuple(window)]
        else:
            shape[axis] = length
            filled = np.zeros(shape, a.dtype, order)
            filled[tuple(window)] = a
            a = filled
    return a


def result_size(shape: Sequence[int], s: Any, last_axis: int, kind: str) -> int | None:
    """Return how long the last axis of a result is; None if it stays as it is."""
    if kind == C2C:
        return None
    if kind == R2C:
        return shape[last_axis] // 2 + 1
    return 2 * (shape[last_axis] - 1) if s is None or s[-1] is None else s[-1]


def one_by_one(
    a: Array, s: Any, axes: Any, norm: str | None, forward: bool, kind: str = C2C, *, overwrite_x: bool = False,
    plan: Plan | None = None,
) -> Array:  # fmt: skip
    """Transform along one axis after the other."""
    _check(a, s, axes)
    places = range(-(a.ndim if s is None else len(s)), 0) if axes is None else tuple(axes)
    if not places:
        if kind == C2C:
            return a
        raise IndexError("list index out of range")
    norm = _check_norm(norm)
    a = _cut(a.astype(converted(a.dtype, kind), copy=False), s, places, kind)
    if kind == C2C:
        for axis in places:
            a = _along(a, axis, C2C, norm, forward, overwrite_x, plan)
        return a
    if kind == R2C:
        a = _along(a, places[-1], R2C, norm, forward, overwrite_x)
    for axis in places[:-1]:
        a = _along(a, axis, C2C, norm, forward, overwrite_x)
    if kind == C2R:
        a = _along(a, places[-1], C2R, norm, forward, overwrite_x, size=result_size(a.shape, s, places[-1], kind))
    return a


def _along(
    a: Array, axis: int, kind: str, norm: str, forward: bool, overwrite_x: bool, plan: Plan | None = None,
    size: int | None = None,
) -> Array:  # fmt: skip
    """Transform along one axis; the result lies as if it were the last."""
    number = type_number(kind, a.dtype)
    is_last = axis % a.ndim == a.ndim - 1
    given = a if is_last else a.swapaxes(axis, -1)
    a = given.copy(order="C") if given.base is not None or not given.flags.c_contiguous else given
    length = a.shape[-1]
    if length < 1:
        raise ValueError(f"Invalid number of FFT data points ({length}) specified.")
    size, batch = length if size is None else size, a.size // length
    _check_plan_1d(_chosen(plan), number, size, batch)
    made = computed(kind, a, (a.ndim - 1,), (size,), norm, forward=forward)
    if overwrite_x and kind == C2C:
        a[...] = made
        made = a
    return made if is_last else made.swapaxes(axis, -1)


def _chosen(plan: Plan | None) -> Plan | None:
    current = get_current_plan()
    if current is not None and plan is not None:
        raise RuntimeError(_TWICE)
    return plan if current is None else current


def _check_plan_1d(plan: Plan | None, number: int, size: int, batch: int) -> None:
    """Refuse a plan that does not fit; without one, make it and keep it, as cuFFT has to."""
    if plan is None:
        plan_1d(size, number, batch)
        return
    if not isinstance(plan, Plan1d):
        raise ValueError("expected plan to have type cufft.Plan1d")
    if number != plan.fft_type:
        raise ValueError("cuFFT plan dtype mismatch.")
    if size != plan.nx:
        raise ValueError("Target array size does not match the plan.", size, plan.nx)
    if batch != plan.batch:
        raise ValueError("Batch size does not match the plan.")
    if config.use_multi_gpus != (plan.gpus is not None):
        raise ValueError("Unclear if multiple GPUs are to be used or not.")


def plan_1d(size: int, number: int, batch: int, *, keep: bool = True) -> Plan1d:
    """Return the plan of ``batch`` transforms of a length: one that is kept, else a new one."""
    key = (size, number, batch, config.devices)
    cache = config.get_plan_cache()
    plan: Plan1d | None = cache.get(key)
    if plan is None:
        plan = Plan1d(size, number, batch, devices=config.devices)
        if keep:
            for one in [cache] if plan.gpus is None else map(config.cache_of, plan.gpus):
                one.keep(key, plan)
    return plan


def together(
    a: Array, s: object, axes: object, norm: str | None, forward: bool, kind: str = C2C, *, overwrite_x: bool = False,
    plan: Plan | None = None,
) -> Array:  # fmt: skip
    """Transform along neighbouring axes at once."""
    _check(a, None, None)
    norm = _check_norm(norm)
    places, ordered = sorted_axes(a.ndim, s, axes, kind)
    if not ordered:
        if kind == C2C:
            return a
        raise IndexError("list index out of range")
    a = a.astype(converted(a.dtype, kind), copy=False)
    order: Literal["C", "F"] = "F" if a.flags.f_contiguous else "C"
    a = _cut(a if order == "F" else in_c_order(a), s, places, kind, order)
    if 0 in a.shape:
        raise ValueError("Invalid number of FFT data points (0) specified.")
    a = np.asarray(a, order=order)
    return _at_once(a, ordered, kind, norm, forward, overwrite_x, plan, result_size(a.shape, s, ordered[-1], kind))


def _at_once(
    a: Array, axes: tuple[int, ...], kind: str, norm: str, forward: bool, overwrite_x: bool, plan: Plan | None,
    size: int | None,
) -> Array:  # fmt: skip
    number = type_number(kind, a.dtype)
    order: Literal["C", "F"] = "C" if a.flags.c_contiguous else "F"
    current = get_current_plan()
    plan = plan if current is None else current
    if plan is None:
        plan_nd(a.shape, number, axes, order, size)
    else:
        _check_plan_nd(plan, a, axes, kind, number, order, size)
    sizes = (*(a.shape[axis] for axis in axes[:-1]), a.shape[axes[-1]] if size is None else size)
    turned = order == "F" and kind == C2C  # as SciPy gives C order, the transposed array gives the other one
    made = computed(kind, a.T if turned else a, tuple(a.ndim - 1 - axis for axis in axes) if turned else axes, sizes,
                    norm, forward=forward)  # fmt: skip
    made = np.asarray(made.T if turned else made, order=order)
    if overwrite_x and kind == C2C:
        a[...] = made
        return a
    return made


def _check_plan_nd(
    plan: Plan, a: Array, axes: tuple[int, ...], kind: str, number: int, order: str, size: int | None
) -> None:
    if not isinstance(plan, PlanNd):
        raise ValueError("expected plan to have type cufft.PlanNd")
    if order != plan.order:
        raise ValueError(f"array orders mismatch (plan: {plan.order}, input: {order})")
    wanted = [a.shape[axis] for axis in axes]
    if order == "F":
        wanted.reverse()
    elif kind == C2R:
        wanted[-1] = size
    if tuple(wanted) != plan.shape:
        raise ValueError(
            f"The cuFFT plan and a.shape do not match: plan.shape = {plan.shape}, expected_shape={tuple(wanted)}, "
            f"a.shape = {a.shape}"
        )
    if number != plan.fft_type:
        raise ValueError("cuFFT plan dtype mismatch.")
    if kind != C2C and axes[-1] != plan.last_axis:
        raise ValueError("The last axis for R2C/C2R mismatch")
    if kind != C2C and size != plan.last_size:
        raise ValueError("The size along the last R2C/C2R axis mismatch")


def plan_nd(
    shape: tuple[int, ...], number: int, axes: tuple[int, ...], order: str, size: int | None, *, keep: bool = True
) -> PlanNd:
    """Return the plan for transforms of an array of ``shape`` along sorted ``axes``: one that is kept, else a new one.

    Raises
    ------
    ValueError
        If the axes are no neighbours, too many, or neither the first nor the last, or if there are no points.
    """
    if not _can_be_at_once(axes, len(shape)):
        raise ValueError(
            "An n-dimensional cuFFT plan could not be created. The axes must be contiguous and non-repeating. Between "
            "one and three axes can be transformed and either the first or last axis must be included in axes."
        )
    inner = [shape[axis] for axis in axes]
    dims = tuple(inner[::-1] if order == "F" else inner)
    outer = dims if size is None else (*dims[:-1], size)
    lengths = outer if number in (44, 108) else dims
    if min(lengths) < 1:
        raise ValueError("Invalid number of FFT data points specified.")
    batch = math.prod(length for axis, length in enumerate(shape) if axis not in axes)
    if len(axes) == len(shape):
        places = (1, 1, 1, 1)
    elif (0 in axes) == (order == "C"):  # the transforms lie between each other
        places = (batch, 1, batch, 1)
    else:
        places = (1, math.prod(dims), 1, math.prod(outer))
    key = (lengths, dims, *places[:2], outer, *places[2:], number, batch, order, axes[-1], size)
    cache = config.get_plan_cache()
    plan: PlanNd | None = cache.get(key)
    if plan is None:
        plan = PlanNd(*key)
        if keep:
            cache.keep(key, plan)
    return plan


def sorted_axes(ndim: int, s: Any, axes: Any, kind: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes as they are meant and sorted; of a transform from or to reals, the last one stays the last."""
    if s is not None and axes is not None and len(s) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    if axes is None:
        meant = tuple(range(ndim - (ndim if s is None else len(s)), ndim))
        return meant, meant
    meant = tuple(axes)
    if meant and (min(meant) < -ndim or max(meant) > ndim - 1):
        raise ValueError("The specified axes exceed the array dimensions.")
    places = [axis % ndim for axis in meant]
    return meant, tuple(sorted(places) if kind == C2C else sorted(places[:-1]) + places[-1:])


def _can_be_at_once(axes: tuple[int, ...], ndim: int) -> bool:
    joined = all(after - before == 1 for before, after in pairwise(axes))
    return 0 < len(axes) <= 3 and (0 in axes or ndim - 1 in axes) and joined


def way(a: Array, s: object = None, axes: object = None, plan: Plan | None = None, kind: str = C2C) -> Way:
    """Return how ``a`` is to be transformed: as its plan says, else along several axes at once if that can be."""
    chosen = _chosen(plan)
    if isinstance(chosen, PlanNd):
        return together
    if isinstance(chosen, Plan1d) or a.ndim == 1 or not config.plans_together:
        return one_by_one
    if a.flags.f_contiguous and kind != C2C:
        return one_by_one
    ordered = sorted_axes(a.ndim, s, axes, kind)[1]
    return together if len(ordered) > 1 and _can_be_at_once(ordered, a.ndim) else one_by_one
