"""What policies trade on this pool: how much the one session keeps against what the other one gets.

Policies that were measured in the same way stand on one field. Who keeps more *and* gives more than another beats it;
those whom nobody beats are the front, and which of them is best is the reader's question, not ours.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from catalog.measured import Measured, measured

__all__ = ["FIELDS", "Field", "Point", "points"]


class Field(msgspec.Struct, frozen=True):
    """Systems that one phase of the benchmark measures alike, with the names of the two figures."""

    situation: str
    systems: tuple[str, ...]
    kept: str
    given: str


FIELDS = (
    Field(
        "a production session that pauses half of the time, beside one that takes what it leaves",
        ("tgs", "antman"), "production-kept", "harvest",
    ),
)  # fmt: skip


class Point(msgspec.Struct, frozen=True):
    """One system on a field, by its newest figures; ``is_front`` unless another keeps and gives as much and more."""

    system: str
    kept: Measured
    given: Measured
    is_front: bool


def points(field: Field, systems: Iterable[str], *, first: str = "kept") -> tuple[Point, ...]:
    """Return those of ``systems`` that were measured on ``field``, best first by ``kept`` or by ``given``.

    The front is that of all systems of the field: who is beaten by one that was not asked for is beaten all the same.
    """
    found = {}
    for system in field.systems:
        newest = {each.figure: each for each in measured().get(system, ())}
        if field.kept in newest and field.given in newest:
            found[system] = (newest[field.kept], newest[field.given])
    asked = set(systems)
    out = [
        Point(system, *pair, is_front=not any(_beats(other, pair) for other in found.values()))
        for system, pair in found.items()
        if system in asked
    ]
    return tuple(sorted(out, key=lambda point: -(point.kept if first == "kept" else point.given).value))


def _beats(one: tuple[Measured, Measured], other: tuple[Measured, Measured]) -> bool:
    if one[0].hardware != other[0].hardware:
        return False  # what another GPU did says nothing
    pairs = [(mine.value, theirs.value) for mine, theirs in zip(one, other, strict=True)]
    return all(mine >= theirs for mine, theirs in pairs) and any(mine > theirs for mine, theirs in pairs)
