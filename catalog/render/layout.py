"""Where a figure's points go. x is the year, in columns; no label ever covers another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from catalog.entry import System
from catalog.render.scene import Dot, Scene, Words
from catalog.render.words import term_name

__all__ = ["category", "lanes", "network"]

_ROW = 24.0
#: Rows are further apart where lines have to pass between the labels.
_NETWORK_ROW = 34.0
_TOP = 36.0
_COLUMN = 62.0
_NETWORK_COLUMN = 86.0
#: Room at the left for the lanes' names.
_LANE_NAMES = 216.0
#: Longest label; what is longer is cut.
_LONGEST = 26
#: Rounds of pulling related systems together; after about thirty nothing moves any more.
_ROUNDS = 40


def category(system: System) -> str:
    """Return the words for the shelf on which a system stands."""
    return term_name("category", system.classification.category.terms[0])


def lanes(title: str, systems: Iterable[System]) -> Scene:
    """Place systems in one lane per category, each lane as many rows high as its labels need."""
    ordered = _by_year(systems)
    x_of = _columns(ordered, _LANE_NAMES, _COLUMN)
    dots: list[Dot] = []
    words = _years(x_of)
    y = _TOP
    for lane in sorted({category(system) for system in ordered}):
        ends: list[float] = []  # where the last label of each row of this lane ends
        words.append(Words(y, lane, "y"))
        for system in (system for system in ordered if category(system) == lane):
            dot = _dot(system, x_of[system.year], y)
            row = next((number for number, end in enumerate(ends) if end < dot.box[0]), len(ends))
            ends[row : row + 1] = [dot.box[2]]
            dots.append(_dot(system, dot.x, y + row * _ROW))
        y += len(ends) * _ROW + 8
    return _scene(title, dots, words, y)


def network(
    title: str, systems: Iterable[System], pairs: Sequence[tuple[str, str]]
) -> tuple[Scene, Mapping[str, tuple[float, float]]]:
    """Place the systems that ``pairs`` of ids connect; return the scene and each system's place in it.

    Related systems are pulled to one height, and pushed apart where their labels would meet. The result depends
    on nothing but the arguments.
    """
    named = {name for pair in pairs for name in pair}
    everyone = _by_year(systems)
    ordered = [system for system in everyone if system.id in named] or everyone
    x_of = _columns(ordered, 10.0, _NETWORK_COLUMN)
    start: dict[str, Dot] = {}
    for number, system in enumerate(sorted(ordered, key=lambda each: (category(each), each.year))):
        start[system.id] = _dot(system, x_of[system.year], number * _NETWORK_ROW, above=True)
    height = {name: dot.y for name, dot in start.items()}
    friends: dict[str, list[str]] = {name: [] for name in start}
    for one, other in pairs:
        friends[one].append(other)
        friends[other].append(one)
    crowds = _crowds(start)
    for _ in range(_ROUNDS):
        for name, near in friends.items():
            if near:
                height[name] += 0.35 * (sum(height[other] for other in near) / len(near) - height[name])
        _apart(crowds, height)
    _close_gaps(height)
    shift = max(0.0, 6 - min(dot.box[0] for dot in start.values()))
    x_of = {year: x + shift for year, x in x_of.items()}
    dots = [_dot(system, x_of[system.year], _TOP + 14 + height[system.id], above=True) for system in ordered]
    at = {system.id: (dot.x, dot.y) for system, dot in zip(ordered, dots, strict=True)}
    return _scene(title, dots, _years(x_of), max(dot.y for dot in dots) + _ROW), at


def _crowds(dots: Mapping[str, Dot]) -> dict[str, list[str]]:
    """Return, for every system, those whose labels would meet its own at the same height."""
    sides = {name: (dot.box[0], dot.box[2]) for name, dot in dots.items()}
    return {
        name: [other for other, (start, end) in sides.items() if left - 8 < end and start - 8 < right and other != name]
        for name, (left, right) in sides.items()
    }


def _apart(crowds: Mapping[str, Sequence[str]], height: dict[str, float]) -> None:
    """Move systems down, from the top on, until no label meets one above it."""
    placed: set[str] = set()
    for name in sorted(crowds, key=lambda each: (height[each], each)):
        above = sorted(height[other] for other in crowds[name] if other in placed)
        for taken in above:
            if height[name] < taken + _NETWORK_ROW:
                height[name] = taken + _NETWORK_ROW
        placed.add(name)


def _close_gaps(height: dict[str, float]) -> None:
    """Move groups of systems that have nothing to do with each other together, in place."""
    before = min(height.values())
    moved = 0.0
    for name in sorted(height, key=lambda each: (height[each], each)):
        y = height[name]
        moved += max(0.0, y - before - _NETWORK_ROW)
        before = y
        height[name] = y - moved
    top = min(height.values())
    for name in height:
        height[name] -= top


def _by_year(systems: Iterable[System]) -> list[System]:
    return sorted(systems, key=lambda system: (system.year, system.name.casefold()))


def _columns(systems: Iterable[System], left: float, column: float) -> dict[int, float]:
    """Return the x of every year; years without a system take no room."""
    years = sorted({system.year for system in systems})
    return {year: left + 14 + number * column for number, year in enumerate(years)}


def _years(x_of: Mapping[int, float]) -> list[Words]:
    return [Words(x, str(year), "x") for year, x in x_of.items()]


def _dot(system: System, x: float, y: float, *, above: bool = False) -> Dot:
    name = system.name
    label = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1].rstrip()}…"
    hint = f"{name}, {system.venue} {system.year}: {system.summary}"
    return Dot(x, y, label, category(system), hint, above)


def _scene(title: str, dots: Sequence[Dot], words: Sequence[Words], height: float) -> Scene:
    last_year = max(each.at for each in words if each.axis == "x") + 30
    # In the order of the groups' names, so that a group looks the same in every figure of the same systems.
    ordered = tuple(sorted(dots, key=lambda dot: (dot.group, dot.x, dot.y)))
    return Scene(title, max(last_year, *(dot.box[2] for dot in dots)) + 4, height, ordered, words=tuple(words))
