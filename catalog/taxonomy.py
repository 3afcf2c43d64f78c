"""The vocabulary: dimensions with their terms, measures and units (``taxonomy.toml``)."""

from __future__ import annotations

import functools
import tomllib
from typing import Any

import msgspec

from catalog.paths import TAXONOMY

__all__ = ["EVERYWHERE", "Dimension", "Measure", "Taxonomy", "Term", "Unit", "taxonomy"]

#: Terms that every dimension has.
EVERYWHERE = frozenset({"not-stated", "not-applicable"})


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """One place in a dimension; ``survey`` if it is the 2017 survey's own."""

    id: str
    name: str
    description: str
    survey: bool = False
    synonyms: tuple[str, ...] = ()
    """What people type when they look for systems that have it."""


class Dimension(msgspec.Struct, frozen=True):
    """A question asked of every system, with the answers it may get. Its id is a field of Classification."""

    id: str
    name: str
    description: str
    terms: dict[str, Term]


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """A sort of quantity; claims of one measure can be set side by side."""

    id: str
    name: str
    description: str
    better: str = "neither"
    """Which direction of the quantity itself is good: ``higher``, ``lower`` or ``neither``."""
    unit: str = ""
    """What a bare number means in a filter; empty where a unit has to be written."""
    change: bool = False
    """Whether a ratio is told as what it is more than the baseline, as an overhead is."""


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
                {term: _term(term, about) for term, about in fields["terms"].items()},
            )
            for name, fields in data["dimensions"].items()
        },
        measures={name: Measure(id=name, **about) for name, about in data["measures"].items()},
        units={name: Unit(name, **about) for name, about in data["units"].items()},
    )


def _term(name: str, about: dict[str, Any]) -> Term:
    return Term(id=name, **{**about, "synonyms": tuple(about.get("synonyms", ()))})
