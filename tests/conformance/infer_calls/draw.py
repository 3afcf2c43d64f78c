"""Random calls on the CuPy surface, for what inference claims to be held against a device.

Every template draws the arguments of one function. Most draws are valid; some are not, on purpose.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

INTS, REALS = "bBhHiIlL", "?bBhHiIlLefd"
ALL = "?bBhHiIlLefdFD"
LAYOUTS = "CCCFTSNB"


class Array(NamedTuple):
    """An array to be made on the device. ``layout``: C, F, Transposed, Strided, Negative, Broadcast."""

    shape: tuple[int, ...]
    dtype: str = "d"
    layout: str = "C"


class Made(NamedTuple):
    """An object to be made on the device by calling ``qualname``."""

    qualname: str
    args: tuple[Any, ...] = ()


class Call(NamedTuple):
    """One call; `Array` in its arguments stands for arrays."""

    qualname: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Draw:
    """Draws arguments."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one(self, choices: Any) -> Any:
        """Return one of ``choices``."""
        return self.random.choice(choices)

    def chance(self, share: float) -> bool:
        """Return True in ``share`` of all cases."""
        return self.random.random() < share

    def extent(self) -> int:
        """Return the length of an axis; zero now and then."""
        return self.one((1, 1, 2, 3, 4, 5, 7, 0) if self.chance(0.3) else (2, 3, 4, 5))

    def shape(self, low: int = 0, high: int = 4) -> tuple[int, ...]:
        """Return a shape of ``low`` to ``high`` axes."""
        return tuple(self.extent() for _ in range(self.random.randint(low, high)))

    def array(self, low: int = 0, high: int = 4, dtypes: str = ALL, shape: tuple[int, ...] | None = None) -> Array:
        """Return an array."""
        return Array(self.shape(low, high) if shape is None else shape, self.one(dtypes), self.one(LAYOUTS))

    def partner(self, other: Array, dtypes: str = ALL) -> Array:
        """Return an array that mostly broadcasts with another."""
        shape = tuple(1 if self.chance(0.2) else extent for extent in other.shape)
        if self.chance(0.3):
            shape = shape[self.random.randint(0, len(shape)) :]
        if self.chance(0.05):
            shape = self.shape(0, 3)
        return Array(shape, self.one(dtypes), self.one(LAYOUTS))

    def scalar(self) -> Any:
        """Return a Python or NumPy scalar."""
        return self.one(
            (0, 1, 2, -1, 3, 127, 128, 255, 300, -129, 40000, 2**31, 2**40, 1.5, 0.0, -2.5, 1e5, 1e40, float("nan"),
             True, False, 1j, 2.5 + 1j, np.float32(2), np.int8(3), np.float64(1), np.uint64(7), np.bool_(True),
             np.complex64(1))
        )  # fmt: skip

    def axis(self, array: Array) -> int:
        """Return an axis; now and then one that is not there."""
        ndim = len(array.shape)
        if self.chance(0.05) or ndim == 0:
            return self.one((ndim, -ndim - 1, 0, -1))
        return self.random.randint(-ndim, ndim - 1)

    def axes(self, array: Array) -> Any:
        """Return the axis argument of a reduction."""
        ndim = len(array.shape)
        if self.chance(0.35) or ndim == 0:
            return None
        if self.chance(0.6):
            return self.axis(array)
        return tuple(self.random.sample(range(ndim), self.random.randint(0, ndim)))

    def order(self) -> str:
        """Return a memory order."""
        return self.one(("C", "F", "A", "K"))

    def dtype(self) -> Any:
        """Return a dtype as users write it."""
        return self.one((np.float32, "f8", int, float, np.dtype("i4"), "complex64", bool, "e", np.uint8, "int16"))


Template = Callable[[Draw], tuple[tuple[Any, ...], dict[str, Any]]]
TEMPLATES: dict[str, list[Template]] = {}


def template(*qualnames: str) -> Callable[[Template], Template]:
    """Register a template for each of ``qualnames``."""

    def register(function: Template) -> Template:
        for qualname in qualnames:
            TEMPLATES.setdefault(qualname, []).append(function)
        return function

    return register


def calls(seed: int, count: int, names: list[str] | None = None) -> list[Call]:
    """Return ``count`` calls of each template."""
    made = []
    for qualname in sorted(TEMPLATES) if names is None else names:
        for number, draw_arguments in enumerate(TEMPLATES[qualname]):
            for place in range(count):
                draw = Draw(hash_of(qualname, number, place, seed))
                made.append(Call(qualname, *draw_arguments(draw)))
    return made


def hash_of(*parts: Any) -> int:
    """Return a number that depends on the parts only."""
    return random.Random(repr(parts)).getrandbits(32)
