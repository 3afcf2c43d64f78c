"""Every op that the notebook computes on the side, beside the device: each element that is not refused has its bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from kernelproxy.mirror import elementwise
from kernelproxy.mirror.casts import Unknown, cast
from kernelproxy.namespace.names import make
from tests.mirrored_programs import DTYPES, shown

_REFUSED = (Unknown, ArithmeticError, ValueError, TypeError)


def special(char: str) -> np.ndarray[Any, Any]:
    """Return numbers of a dtype that are told apart badly: the outermost, the smallest, both zeros, halves."""
    dtype = np.dtype(char)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.array([limits.min, limits.max, limits.max - 1, 0, 1, 2, 3, 7, limits.min + 1], dtype)
    tiny = np.finfo(dtype).tiny
    numbers = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        2.5,
        0.1,
        3.7,
        255.5,
        float(np.finfo(dtype).max),
        float(tiny),
        float(tiny) / 4,
        np.inf,
    ]
    return np.array([*numbers, np.nan], dtype)


def differences() -> Iterator[str]:
    """Yield each element that the notebook would take for another number than the device of the current client."""
    for name in elementwise.names():
        function = make(f"cupy.{name}")
        for one in DTYPES:
            if function.nin == 1:
                yield from _compared(name, function, special(one))
                continue
            for other in DTYPES:
                x, y = np.meshgrid(special(one), special(other))
                yield from _compared(name, function, x.ravel(), y.ravel())
    for one in DTYPES:
        for other in DTYPES:
            yield from _cast(special(one), np.dtype(other))


def _compared(name: str, function: Any, *operands: np.ndarray[Any, Any]) -> Iterator[str]:
    try:
        made = function(*map(make("cupy.asarray"), operands)).get()
    except TypeError:  # no loop takes these
        return
    for place in range(len(made)):
        parts = tuple([operand[place : place + 1] for operand in operands])
        try:
            found = elementwise.compute(f"cupy.{name}", parts, True)
        except _REFUSED:
            continue
        if shown(found) != shown(made[place : place + 1]):
            yield f"{name}{parts}: {found} here, {made[place]} on the device"


def _cast(values: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> Iterator[str]:
    made = make("cupy.asarray")(values).astype(dtype).get()
    for place in range(len(made)):
        try:
            found = cast(values[place : place + 1], dtype)
        except _REFUSED:
            continue
        if shown(found) != shown(made[place : place + 1]):
            yield f"{values[place]!r} as {dtype}: {found} here, {made[place]} on the device"
