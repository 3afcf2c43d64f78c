"""Who measured whom: figures that one system's authors published of another, or against it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from catalog.entry import System
from catalog.evidence import Claim
from catalog.loader import entries
from catalog.render.displayed import Displayed
from catalog.render.document import Document, Grid, Paragraph, Run
from catalog.render.words import conditions_text, confidence_mark, value_text

__all__ = ["Measurement", "Measurements"]


class Measurement(msgspec.Struct, frozen=True):
    """One figure: the authors of ``by`` measured ``of``, against ``against`` if that is in the catalogue."""

    by: str
    of: str
    against: tuple[str, ...]
    claim: Claim


class Measurements(Displayed, Sequence[Measurement]):
    """All such figures, the measured systems in order: what others found first, then what each says of others."""

    def __init__(self, systems: Iterable[System]) -> None:
        found = [each for system in systems for each in _of(system)]
        self._items = tuple(sorted(found, key=lambda each: (each.of, each.by == each.of, each.claim.id)))

    def __getitem__(self, index: Any) -> Any:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"<{len(self)} measurements of one system by or against another>"

    def records(self) -> list[dict[str, Any]]:
        """Return one dictionary per figure."""
        return [
            {
                "by": each.by,
                "of": each.of,
                "against": list(each.against),
                "quantity": each.claim.quantity,
                "value": value_text(each.claim),
                "statistic": each.claim.statistic,
                "conditions": conditions_text(each.claim.conditions),
                "confidence": each.claim.confidence,
            }
            for each in self
        ]

    def document(self) -> Document:
        """Show the figures as a table."""
        if not self:
            return Document("", (Paragraph("No figure of one system by or against another."),))
        heads = ("measured", "by the authors of", "against", "quantity", "value", "conditions", "confidence")
        return Document("Who measured whom", (Grid(heads, tuple(_row(each) for each in self)),))


def _row(each: Measurement) -> tuple[Run, ...]:
    names = entries()
    against = ", ".join(names[name].name for name in each.against)
    held = conditions_text(each.claim.conditions)
    mark = (confidence_mark(each.claim.confidence),)
    return (names[each.of].name, names[each.by].name, against, each.claim.quantity, value_text(each.claim), held, mark)


def _of(system: System) -> Iterator[Measurement]:
    for claim in system.claims:
        if claim.confidence != "unverified" and (claim.measured_by or claim.against):
            yield Measurement(claim.measured_by or system.id, system.id, tuple(claim.against), claim)
