"""The catalogue's errors, each one sentence with the nearest name that would have worked.

CatalogError (LookupError)
├── UnknownSystem
├── UnknownField
├── UnknownTerm
└── NothingFound
"""

from __future__ import annotations

from collections.abc import Iterable

from catalog.nearest import did_you_mean

__all__ = ["CatalogError", "NothingFound", "UnknownField", "UnknownSystem", "UnknownTerm"]


class CatalogError(LookupError):
    """What was asked for is not in the catalogue."""


class UnknownSystem(CatalogError):
    """No system has that id, name or alias."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"no system is named {name!r}{did_you_mean(name, known)}")


class UnknownField(CatalogError):
    """No field of an entry has that name."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"no field is named {name!r}{did_you_mean(name, known)}")


class UnknownTerm(CatalogError):
    """A field with a fixed vocabulary does not have that term."""

    def __init__(self, term: str, field: str, known: Iterable[str]) -> None:
        super().__init__(f"{field} has no term {term!r}{did_you_mean(term, known)}")


class NothingFound(CatalogError):
    """A search or citation had nothing to work on."""
