"""Numbers of many systems on one logarithmic scale, a row each."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from catalog.render.scene import CHARACTER, Dot, Line, Scene, Words

__all__ = ["Mark", "scale"]

_ROW = 24.0
_TOP = 40.0
_WIDTH = 460.0
#: Room at the left for the systems' names.
_NAMES = 190.0


class Mark(msgspec.Struct, frozen=True):
    """One row: whose number it is, the number or both ends of a range, and what stands beside it."""

    name: str
    numbers: tuple[float, ...]
    label: str
    group: str
    hint: str


def scale(title: str, marks: Sequence[Mark], unit: str) -> Scene:
    """Place ``marks`` from top to bottom in their order; x is the logarithm of the number, ticks are in ``unit``."""
    logs = [math.log10(number) for mark in marks for number in mark.numbers if number > 0]
    low, high = math.floor(min(logs) * 2) / 2, math.ceil(max(logs) * 2) / 2
    high = max(high, low + 0.5)

    def place(number: float) -> float:
        log = math.log10(number) if number > 0 else low
        return _NAMES + 14 + (log - low) / (high - low) * _WIDTH

    dots: list[Dot] = []
    lines: list[Line] = []
    words = [Words(place(tick), f"{tick:g}{unit}", "x") for tick in _ticks(low, high)]
    for row, mark in enumerate(marks):
        y = _TOP + row * _ROW
        words.append(Words(y, mark.name, "y"))
        first, *others = sorted(map(place, mark.numbers))
        for last in others:
            lines.append(Line(first, y, last, y, group="range", arrow=False, hint=mark.hint, straight=True))
            dots.append(Dot(first, y, "", mark.group, mark.hint))
        dots.append(Dot(others[-1] if others else first, y, mark.label, mark.group, mark.hint))
    longest = max(len(mark.label) for mark in marks)
    width = _NAMES + _WIDTH + 40 + CHARACTER * longest
    return Scene(title, width, _TOP + len(marks) * _ROW, tuple(dots), tuple(lines), tuple(words))


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers between the powers of ten: few enough to read."""
    steps = (1, 2, 5) if high - low <= 2 else (1,)
    powers = range(math.floor(low), math.ceil(high) + 1)
    ticks = [step * 10.0**power for power in powers for step in steps]
    return [tick for tick in ticks if low - 1e-9 <= math.log10(tick) <= high + 1e-9]
