"""Claims as quantities: how one reads, and all of them side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import msgspec

from catalog.amounts import Amount, amounts, order
from catalog.entry import System
from catalog.errors import UnknownTerm
from catalog.evidence import Claim
from catalog.render.displayed import Displayed
from catalog.render.document import Document, Grid, Paragraph
from catalog.render.words import conditions_text, confidence_mark, value_text
from catalog.taxonomy import taxonomy

__all__ = ["ClaimOf", "Claims"]


class ClaimOf(msgspec.Struct, frozen=True):
    """A claim together with the system that makes it."""

    system: System
    claim: Claim

    @property
    def amounts(self) -> tuple[Amount, ...]:
        """The numbers as ratios to the baseline, or as amounts in base units; none where there are only words."""
        return amounts(self.claim)

    @property
    def ratio(self) -> float | None:
        """New over baseline, the first end of a range; none where the claim is no comparison."""
        return next((amount.number for amount in self.amounts if amount.kind == "ratio"), None)

    @property
    def base_value(self) -> float | None:
        """The number in its unit's base (seconds, bytes, ratios), so that ms and us can be compared."""
        if self.claim.value is None:
            return None
        return self.claim.value * taxonomy().units[self.claim.unit].factor


class Claims(Displayed, Sequence[ClaimOf]):
    """Claims of one or several systems: iterable, filterable, sortable, comparable.

    Unverified claims are left out unless they are asked for.
    """

    def __init__(self, items: Iterable[ClaimOf]) -> None:
        self._items = tuple(items)

    @classmethod
    def of(cls, systems: Iterable[System], *, unverified: bool = False) -> Claims:
        """Collect the claims of ``systems``."""
        return cls(
            ClaimOf(system, claim)
            for system in systems
            for claim in system.claims
            if unverified or claim.confidence != "unverified"
        )

    def filter(self, *, measure: str | None = None, kind: str | None = None, unit: str | None = None) -> Claims:
        """Return the claims of one measure, kind or unit.

        Raises
        ------
        UnknownTerm
            If the taxonomy has no such measure or unit, or claims no such kind.
        """
        words = taxonomy()
        kinds = ("result", "parameter", "limit", "requirement")
        for name, term, known in (
            ("measure", measure, words.measures),
            ("unit", unit, words.units),
            ("kind", kind, dict.fromkeys(kinds)),
        ):
            if term is not None and term not in known:
                raise UnknownTerm(term, name, known)
        wanted = {"measure": measure, "kind": kind, "unit": unit}
        return Claims(
            item
            for item in self
            if all(value is None or getattr(item.claim, name) == value for name, value in wanted.items())
        )

    def sort(self, *, reverse: bool = False) -> Claims:
        """Return the claims by ratio, then those by amount, kind by kind; those without a number last."""
        keys = {id(item): order([item.claim], taxonomy().measures[item.claim.measure]) for item in self}
        found = sorted(self, key=lambda item: keys[id(item)], reverse=reverse)
        return Claims(sorted(found, key=lambda item: keys[id(item)][:2]))

    @overload
    def __getitem__(self, index: int) -> ClaimOf: ...
    @overload
    def __getitem__(self, index: slice) -> Claims: ...
    def __getitem__(self, index: int | slice) -> ClaimOf | Claims:
        return Claims(self._items[index]) if isinstance(index, slice) else self._items[index]

    def __iter__(self) -> Iterator[ClaimOf]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"<{len(self)} claims>"

    def records(self) -> list[dict[str, Any]]:
        """Return one flat dictionary per claim, conditions included."""
        return [
            {
                "system": item.system.id,
                **{
                    name: value
                    for name, value in msgspec.to_builtins(item.claim).items()
                    if name not in {"conditions", "sources"}
                },
                **msgspec.to_builtins(item.claim.conditions),
                "base_value": item.base_value,
                "ratio": item.ratio,
                "sources": list(item.claim.sources),
            }
            for item in self
        ]

    def document(self) -> Document:
        """Show the claims as a table with their conditions and confidence."""
        if not self:
            return Document("Claims", (Paragraph("No claim fits."),))
        rows = tuple(
            (
                item.system.name,
                item.claim.quantity,
                value_text(item.claim),
                conditions_text(item.claim.conditions),
                (confidence_mark(item.claim.confidence),),
            )
            for item in self
        )
        return Document("Claims", (Grid(("system", "quantity", "value", "conditions", "confidence"), rows),))
