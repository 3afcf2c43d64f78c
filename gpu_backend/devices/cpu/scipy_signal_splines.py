"""Smoothing by two filters, forth and back, of a signal that goes on mirrored: as CuPy computes their first outputs.

The first outputs are sums over the mirrored signal. CuPy ends a sum at the first term of the filter's response that is
as small as ``precision``; and, of the filter of second order, it looks for that term 128 at a time, and sums from where
it has begun to look. SciPy's sums are others, so that results differ by more than rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.signal

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.table import define

_PREFIX = "cupyx.scipy.signal"
#: How many terms CuPy looks at together.
_BLOCK = 128
_NOT_CONVERGED = "Sum to find symmetric boundary conditions did not converge."


@define(f"{_PREFIX}.symiirorder1")
def symiirorder1(input: Array, c0: object, z1: object, precision: float = -1.0) -> Array:
    """Filter the signal ``input`` (n,) by c0 / ((1 - z1 / z) (1 - z1 z)).

    Raises
    ------
    ValueError
        If ``z1`` is no less than one, or no term is as small as ``precision``.
    """
    scale, pole = np.asarray([c0], input.dtype), np.asarray([z1], input.dtype)
    if abs(pole) >= 1:
        raise ValueError("|z1| must be less than 1.0")
    if precision <= 0.0 or precision > 1.0:
        precision = np.finfo(input.dtype).resolution
    powers = pole ** np.arange(1, input.size + 1, dtype=input.dtype)
    sums = np.cumsum(powers * input) + input[0]
    first = _at_first(powers * np.conjugate(powers) <= precision * precision, sums, input.size)
    if first is None:
        raise ValueError(_NOT_CONVERGED)
    forth = _recursive(np.ones(1, input.dtype), [pole[0]], input[1:], first)
    last = -scale / (pole - 1.0) * forth[-1:]
    back = _recursive(scale, [pole[0]], forth[-2::-1], last)
    return np.ascontiguousarray(back[::-1])


@define(f"{_PREFIX}.symiirorder2")
def symiirorder2(input: Array, r: Any, omega: Any, precision: float = -1.0) -> Array:
    """Filter along the last axis by cs^2 / ((1 - a2/z - a3/z^2) (1 - a2 z - a3 z^2)).

    There a2 is ``2 r cos(omega)``, a3 is ``-r^2``, and cs is ``1 - a2 - a3``.

    Raises
    ------
    ValueError
        If ``r`` is no less than one, or no term is as small as ``precision``.
    """
    if r >= 1.0:
        raise ValueError("r must be less than 1.0")
    if precision <= 0.0 or precision > 1.0:
        known = {"d": 1e-11, "f": 1e-6}
        precision = known.get(input.dtype.char) or 10.0 ** -np.finfo(input.dtype).iexp
    cs = np.atleast_1d(1 - 2 * r * np.cos(omega) + r * r)
    response = _Response(cs[0], cs.dtype.type(r), cs.dtype.type(omega), precision * precision)
    scale, poles = cs.astype(input.dtype), np.array([2 * r * np.cos(omega), -(r * r)]).ravel().astype(input.dtype)
    start = response.forth(np.arange(2))

    def begun(terms: Array, part: Array) -> Array:
        made: Array = np.cumsum(terms * part, axis=-1) + start[0] * input[..., :1]
        return made

    def begun_one_later(terms: Array, part: Array) -> Array:
        made: Array = np.cumsum(terms * part, axis=-1) + start[0] * input[..., 1:2] + start[1] * input[..., :1]
        return made

    first = response.sum_until_small(lambda k: response.forth(k + 1), begun, input)
    second = response.sum_until_small(lambda k: response.forth(k + 2), begun_one_later, input)
    forth = _recursive(scale, poles, input[..., 2:], np.concatenate([first, second], axis=-1).astype(input.dtype))
    forth = np.concatenate([first, second, forth[..., 2:]], axis=-1)

    def plain(terms: Array, part: Array) -> Array:
        return np.cumsum(terms * part, axis=-1)

    mirrored = input[..., ::-1]
    last = response.sum_until_small(lambda k: response.back(k) + response.back(k + 1), plain, mirrored)
    before = response.sum_until_small(lambda k: response.back(k - 1) + response.back(k + 2), plain, mirrored)
    known_outputs = np.concatenate([last, before], axis=-1)
    back = _recursive(scale, poles, forth[..., -3::-1], known_outputs.astype(input.dtype))
    made = np.concatenate([known_outputs, back[..., 2:]], axis=-1)[..., ::-1]
    return np.ascontiguousarray(made)


class _Response:
    """How the filter of second order answers to one impulse."""

    def __init__(self, cs: float, r: float, omega: float, smallest: float) -> None:
        self._cs, self._r, self._omega, self._smallest = cs, r, omega, smallest

    def forth(self, k: Array) -> Array:
        """Return the terms ``k``, none below zero, of the filter that goes forth."""
        grown = self._cs * self._r**k
        if self._omega == 0.0:
            made: Array = grown * (k + 1)
            return made
        if self._omega == np.pi:
            answer: Array = grown * (k + 1) * (1 - 2 * (k % 2))
            return answer
        result: Array = grown * np.sin(self._omega * (k + 1)) / np.sin(self._omega)
        return result

    def back(self, k: Array) -> Array:
        """Return the terms ``k`` of both filters, one behind the other."""
        k, rsq, omega = np.abs(k), self._r * self._r, self._omega
        grown = rsq ** (k / 2.0)
        if omega in (0.0, np.pi):
            scale = (1 + rsq) / (1 - rsq) ** 3 * self._cs**2
            sign = 1 if omega == 0.0 else 1 - 2 * (k % 2)
            made: Array = scale * grown * (1 + (1 - rsq) / (1 + rsq) * sign * k)
            return made
        scale = self._cs**2 * (1 + rsq) / (1 - rsq) / (1 - 2 * rsq * np.cos(2 * omega) + rsq * rsq)
        result: Array = scale * grown * (np.cos(omega * k) + (1 - rsq) / (1 + rsq) / np.tan(omega) * np.sin(omega * k))
        return result

    def sum_until_small(
        self, term: Callable[[Array], Array], summed: Callable[[Array, Array], Array], signal: Array
    ) -> Array:
        """Return the sum over the last axis of ``signal`` up to the first small term, that axis kept."""
        for begin in range(0, signal.shape[-1] + 1, _BLOCK):
            part = signal[..., begin : begin + _BLOCK]
            terms = term(np.arange(begin, begin + part.shape[-1]))
            found = _at_first(terms * terms <= self._smallest, summed(terms, part), signal.shape[-1] - begin)
            if found is not None:
                return found
        raise ValueError(_NOT_CONVERGED)


def _at_first(is_small: Array, sums: Array, length: int) -> Array | None:
    """Return the column of ``sums`` where the first is small; None if none is but the last, or if it is no number."""
    places = np.flatnonzero(is_small)
    if not places.size or places[0] + 1 >= length:
        return None
    found = sums[..., places[0] : places[0] + 1]
    return None if np.isnan(found).any() else found


def _recursive(scale: Array, poles: Any, x: Array, before: Array) -> Array:
    """Return ``before`` and behind it what the recursion y[n] = scale x[n] + poles[0] y[n-1] + ... makes of ``x``."""
    a = np.concatenate([[1], [-pole for pole in poles]]).astype(x.dtype)
    before = np.broadcast_to(before, (*x.shape[:-1], len(poles))).astype(x.dtype)
    line = np.apply_along_axis(lambda one: scipy.signal.lfiltic(scale, a, one[::-1]), -1, before)
    made, _ = scipy.signal.lfilter(scale, a, x, axis=-1, zi=line.astype(x.dtype))
    return np.concatenate([before, made.astype(x.dtype)], axis=-1)
