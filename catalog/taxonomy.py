"""The vocabulary: dimensions with their terms, measures and units (``taxonomy.toml``)."""

from __future__ import annotations

import functools
import tomllib

import msgspec

from catalog.paths import TAXONOMY

__all__ = ["EVERYWHERE", "Dimension", "Measure", "Taxonomy", "Term", "Unit", "taxonomy"]

#: Terms that every dimension has.
EVERYWHERE = frozenset({"not-stated", "not-applicable"})


class Term(msgspec.Struct, frozen=True):
    """One place in a dimension; ``survey`` if it is the 2017 survey's own."""

    id: str
    name: str
    description: str
    survey: bool = False


class Dimension(msgspec.Struct, frozen=True):
    """A question asked of every system, with the answers it may get. Its id is a field of Classification."""

    id: str
    name: str
    description: str
    terms: dict[str, Term]


class Measure(msgspec.Struct, frozen=True):
    """A sort of quantity; claims of one measure can be set side by side."""

    id: str
    name: str
    description: str


class Unit(msgspec.Struct, frozen=True):
    """A unit with what it measures and the factor to that quantity's base unit."""

    id: str
    name: str
    measures: str
    factor: float


class Taxonomy(msgspec.Struct, frozen=True):
    """The whole vocabulary, each part by id and in the order of the file."""

    dimensions: dict[str, Dimension]
    measures: dict[str, Measure]
    units: dict[str, Unit]


@functools.cache
def taxonomy() -> Taxonomy:
    """Return the vocabulary, read at the first call."""
    data = tomllib.loads(TAXONOMY.read_text(encoding="utf-8"))
    return Taxonomy(
        dimensions={
            name: Dimension(
                name,
                fields["name"],
                fields["description"],
                {term: Term(term, **about) for term, about in fields["terms"].items()},
            )
            for name, fields in data["dimensions"].items()
        },
        measures={name: Measure(name, **about) for name, about in data["measures"].items()},
        units={name: Unit(name, **about) for name, about in data["units"].items()},
    )
