"""What lies in the arrays of a random structure: ordinary numbers, and those that are told apart badly."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.mirrored_ops import special

__all__ = ["DTYPES", "FIXED", "GIVEN", "given", "specials"]

#: The dtypes that arrays have, by their characters.
DTYPES = "?bBhHiIqQefdFD"
#: Names of the arrays that are there, and their shapes as they are written in a structure.
GIVEN = {
    "a": "(n, m)", "b": "(n, m)", "c": "(m,)", "d": "(n,)", "q": "(n, n)", "z": "()",
    "e": "(n * m,)", "f": "(n * m,)", "k": "(n, m)", "l": "(n,)", "i": "(n,)", "v": "(n * m,)",
}  # fmt: skip
#: Those of one dtype always: what kernels of the user's are written for, masks, places in a row, and doubles that are
#: whole numbers: sums of them are the same in any order, and CuPy's own atomic additions come in any.
FIXED = {"e": "d", "f": "d", "k": "?", "l": "?", "i": "q", "v": "d"}
#: How many numbers of a hundred are special ones.
_SPECIAL = 8
#: NaNs with a payload and a sign, by what they are read as.
_NANS = {"e": (np.uint16, 0xFE2B), "f": (np.uint32, 0xFFC0_1234), "d": (np.uint64, 0xFFF8_0000_0000_BEEF)}
_PARTS = {"F": "f", "D": "d"}

Array = np.ndarray[Any, np.dtype[Any]]


def given(name: str, seed: int, dtypes: dict[str, str], n: int, m: int, repeat: int) -> Array:
    """Return one of the arrays of a structure: another for each shape and repeat, whichever others are used."""
    drawn = np.random.default_rng((seed, n, m, repeat, ord(name)))
    if name == "i":
        return drawn.permutation(n)
    if name == "v":
        return drawn.integers(-40, 40, n * m).astype("d")
    return _array(drawn, FIXED.get(name) or dtypes[name], eval(GIVEN[name], {"n": n, "m": m}))


def _array(drawn: np.random.Generator, char: str, shape: tuple[int, ...]) -> Array:
    if char in _PARTS:
        parts = _array(drawn, _PARTS[char], (*shape, 2))
        return parts.view(char).reshape(shape)
    dtype = np.dtype(char)
    if dtype.kind == "b":
        return drawn.random(shape) < 0.5
    if dtype.kind in "iu":
        found = drawn.integers(0 if dtype.kind == "u" else -20, 90, shape).astype(dtype)
    else:
        found = np.asarray(drawn.normal(size=shape) * 4).astype(dtype)
    is_special = drawn.random(shape) < _SPECIAL / 100
    numbers = drawn.choice(specials(char), shape)
    return np.where(is_special, numbers, found)


def specials(char: str) -> Array:
    """Return the numbers of a dtype that are told apart badly, NaNs with payloads and signs among them."""
    numbers = special(char)
    if char not in _NANS:
        return numbers
    kind, bits = _NANS[char]
    return np.concatenate([numbers, -numbers[-2:], np.array([bits], kind).view(char)])
