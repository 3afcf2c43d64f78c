"""The claims of one measure over all systems, on one scale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from catalog.chart import Chart
from catalog.entry import System
from catalog.errors import NothingFound, UnknownTerm
from catalog.quantities import ClaimOf, Claims
from catalog.render.document import Document, Drawing, Paragraph
from catalog.render.scale import Mark, scale
from catalog.render.scene import Scene
from catalog.render.words import conditions_text, value_text
from catalog.taxonomy import taxonomy

__all__ = ["Spread"]

#: What an amount is shown in, by what its unit measures: words behind the number, and the factor to the base unit.
_SHOWN = {"ratio": ("x", 1.0), "fraction": (" %", 0.01), "time": (" ms", 1e-3)}


class Spread(Chart):
    """Every verified result of one measure: as ratios to the baseline, or as amounts where most are amounts."""

    def __init__(self, systems: Iterable[System], measure: str) -> None:
        """Collect the results of ``measure``.

        Raises
        ------
        UnknownTerm
            If there is no such measure, with the nearest one.
        NothingFound
            If no result of it has a number.
        """
        measures = taxonomy().measures
        if measure not in measures:
            raise UnknownTerm(measure, "measure", measures)
        self.measure = measures[measure]
        self.claims = Claims.of(systems).filter(measure=measure, kind="result").sort()
        kinds = Counter(amount.kind for item in self.claims for amount in item.amounts[:1])
        if not kinds:
            raise NothingFound(f"no result of {measure!r} has a number")
        self.kind = kinds.most_common(1)[0][0]

    def __repr__(self) -> str:
        return f"<{len(self.claims)} results of {self.measure.id}>"

    def records(self) -> list[dict[str, Any]]:
        """Return the claims as flat dictionaries, those without a comparable number too."""
        return self.claims.records()

    @property
    def drawn(self) -> tuple[ClaimOf, ...]:
        """The claims that have a place in the figure."""
        return tuple(item for item in self.claims if any(amount.kind == self.kind for amount in item.amounts))

    def scene(self) -> Scene:
        """Return the figure: a row per claim, numbers on a logarithmic scale, confidence as colour and shape."""
        unit, factor = _SHOWN.get(self.kind, ("", 1.0))
        marks = [
            Mark(
                name=item.system.name,
                numbers=tuple(amount.number / factor for amount in item.amounts if amount.kind == self.kind),
                label=value_text(item.claim),
                group=f"{item.claim.confidence} confidence",
                hint=f"{item.system.name}, {item.claim.quantity}: {value_text(item.claim)} "
                f"({conditions_text(item.claim.conditions)})",
            )
            for item in self.drawn
        ]
        against = "baseline = 1, " if self.kind == "ratio" else ""
        return scale(f"{self.measure.name} ({against}{self.measure.better} is better)", marks, unit)

    def document(self) -> Document:
        """Show the figure, and all claims of the measure as a table."""
        rest = len(self.claims) - len(self.drawn)
        note = f"{rest} more stand in the table only: they give words, or a number of another kind." if rest else ""
        return Document("", (Drawing(self.scene()), Paragraph(note), *self.claims.document().blocks))
