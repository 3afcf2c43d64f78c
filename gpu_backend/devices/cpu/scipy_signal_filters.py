"""Recursive filters of ``cupyx.scipy.signal``, whose state is other than SciPy's.

CuPy keeps the last inputs and the last outputs of a filter, oldest first, one behind the other along the axis; SciPy
keeps what direct form II transposed has in its delay line, which is a linear function of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.table import define

_PREFIX = "cupyx.scipy.signal"


@define(f"{_PREFIX}.lfilter")
def lfilter(b: Array, a: Array, x: Array, axis: int = -1, zi: Any = None) -> Any:
    """Filter ``x``; with a state ``zi`` of ``b.size + a.size - 2`` along ``axis`` return the state behind it too."""
    if zi is None:
        return scipy.signal.lfilter(b, a, x, axis)
    state = np.moveaxis(np.broadcast_to(zi, _state_shape(x.shape, np.shape(zi), axis)), axis, -1)
    line = np.moveaxis(state @ _to_delay_line(b, a).T, -1, axis)
    dtype = np.result_type(x, b / a[0], *([a] if a.size > 1 else []))  # the state's does not matter
    made = scipy.signal.lfilter(b, a, x, axis, zi=line)[0].astype(dtype)
    inputs, outputs = _last(x, b.size - 1, axis), _last(made, a.size - 1, axis)
    return made, np.concatenate([inputs.astype(made.dtype), outputs], axis)


def _state_shape(shape: tuple[int, ...], given: tuple[int, ...], axis: int) -> tuple[int, ...]:
    wanted = list(shape)
    wanted[axis] = given[axis]
    return tuple(wanted)


def _to_delay_line(b: Array, a: Array) -> Array:
    """Return the matrix from past inputs and outputs to SciPy's state; shape (delays, inputs + outputs)."""
    inputs, outputs = b.size - 1, a.size - 1
    matrix = np.zeros((max(inputs, outputs), inputs + outputs), np.result_type(b, a, np.float64))
    for delay in range(len(matrix)):
        for ago in range(1, inputs - delay + 1):
            matrix[delay, inputs - ago] = b[delay + ago] / a[0]
        for ago in range(1, outputs - delay + 1):
            matrix[delay, inputs + outputs - ago] = -a[delay + ago] / a[0]
    return matrix


def _last(x: Array, count: int, axis: int) -> Array:
    length = x.shape[axis]
    return np.take(x, np.arange(length - count, length), axis)


@define(f"{_PREFIX}.lfiltic")
def lfiltic(b: Array, a: Array, y: Array | None, x: Array | None = None) -> Array | None:
    """Return the state after the outputs ``y`` and the inputs ``x``, latest first."""
    if y is None and x is None:
        return None
    state = np.empty(0)
    for past, count in ((y, a.size - 1), (x, b.size - 1)):
        if past is not None and count > 0:
            padded = np.concatenate([past, np.zeros(max(count - past.shape[-1], 0))], axis=-1)
            state = np.concatenate([np.flip(padded[..., :count], -1), state], axis=-1)
    return state


@define(f"{_PREFIX}.lfilter_zi")
def lfilter_zi(b: Array, a: Array) -> Array:
    """Return the state in which a filter that is fed ones gives always the same."""
    gain = np.nan_to_num(np.sum(b) / np.sum(a), nan=0, posinf=np.inf, neginf=-np.inf)
    return np.concatenate([np.ones(b.size - 1), np.full(a.size - 1, gain)])


@define(f"{_PREFIX}.sosfilt")
def sosfilt(sos: Array, x: Array, axis: int = -1, zi: Any = None) -> Any:
    """Filter by sections of second order; with a state of 4 for each section return the state behind it too."""
    sos = np.concatenate([sos[:, :3], np.ones((len(sos), 1), sos.dtype), sos[:, 4:]], axis=1)  # CuPy takes it for one
    if zi is None:
        return scipy.signal.sosfilt(sos, x, axis)
    dtype = np.result_type(x, sos)
    made, behind = x.astype(dtype), []
    for section, state in zip(sos.astype(dtype), zi.astype(dtype), strict=True):
        made, after = lfilter(section[:3], section[3:], made, axis, state)
        made = made.astype(dtype)
        behind.append(after.astype(dtype))
    return np.ascontiguousarray(made), np.stack(behind)


@define(f"{_PREFIX}.sosfilt_zi")
def sosfilt_zi(sos: Array) -> Array:
    """Return the states in which sections that are fed ones give always the same."""
    states, level = np.empty((len(sos), 4), sos.dtype), np.ones((), sos.dtype)
    for place, section in enumerate(sos):
        states[place, :2] = level
        level = np.nan_to_num(level * section[:3].sum() / section[3:].sum(), nan=0, posinf=np.inf, neginf=-np.inf)
        states[place, 2:] = level
    return states
