"""The claims of one measure over all systems, on one scale, and what was found here of the same quantities."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from catalog.amounts import Amount, amounts
from catalog.chart import Chart
from catalog.entry import System
from catalog.errors import NothingFound, UnknownTerm
from catalog.evidence import Claim
from catalog.measured import Measured, in_unit
from catalog.quantities import ClaimOf, Claims
from catalog.render.document import Bullets, Document, Drawing, Paragraph
from catalog.render.scale import Mark, scale
from catalog.render.scene import Scene
from catalog.render.words import conditions_text, measured_text, value_text
from catalog.taxonomy import taxonomy
from catalog.verdict import Verdict, verdicts_of

__all__ = ["Spread"]

#: What an amount is shown in, by what its unit measures: words behind the number, and the factor to the base unit.
_SHOWN = {"ratio": ("x", 1.0), "fraction": (" %", 0.01), "time": (" ms", 1e-3)}


#: The group of what this pool's benchmarks recorded.
_HERE = "measured here"


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
        marks = [mark for item in self.drawn for mark in self._marks(item, factor)]
        against = "baseline = 1, " if self.kind == "ratio" else ""
        return scale(f"{self.measure.name} ({against}{self.measure.better} is better)", marks, unit)

    def _marks(self, item: ClaimOf, factor: float) -> Iterator[Mark]:
        """Yield the claim's row, and below it the newest figure of this pool that is of the same quantity."""
        hint = f"{item.claim.quantity}: {value_text(item.claim)} ({conditions_text(item.claim.conditions)})"
        numbers = tuple(amount.number / factor for amount in item.amounts if amount.kind == self.kind)
        group = f"{item.claim.confidence} confidence"
        yield Mark(item.system.name, numbers, value_text(item.claim), group, f"{item.system.name}, {hint}")
        for verdict in verdicts_of(item.system):
            if verdict.judgement.claim == item.claim.id and _is_alike(verdict, item):
                found = verdict.records[-1]
                numbers = tuple(amount.number / factor for amount in _as_claimed(found, item.claim, self.kind))
                if not numbers:
                    continue
                label = f"{in_unit(measured_text(found.value), found.unit)} here: {verdict.outcome}"
                yield Mark(item.system.name, numbers, label, _HERE, f"{item.system.name}, {found.sentence()}")

    def document(self) -> Document:
        """Show the figure, and all claims of the measure as a table."""
        rest = len(self.claims) - len(self.drawn)
        note = f"{rest} more stand in the table only: they give words, or a number of another kind." if rest else ""
        found = tuple(mark.hint for item in self.drawn for mark in self._marks(item, 1.0) if mark.group == _HERE)
        here = (Paragraph("What was found on this pool of the same quantities:"), Bullets(found)) if found else ()
        return Document("", (Drawing(self.scene()), Paragraph(note), *self.claims.document().blocks, *here))


def _is_alike(verdict: Verdict, item: ClaimOf) -> bool:
    """Return whether the figure counts what the claim has a number of, so that both have a place on one scale."""
    return bool(verdict.records) and item.claim.value is not None and verdict.records[-1].unit == item.claim.unit


def _as_claimed(found: Measured, claim: Claim, kind: str) -> Iterator[Amount]:
    """Yield the median of a figure, and the ends of its runs, in the form in which the claim gives its number."""
    for value in dict.fromkeys(
        (found.value, min(found.runs, default=found.value), max(found.runs, default=found.value))
    ):
        same = dataclasses.replace(claim, value=value, value_to=None, bound="exactly")
        yield from (amount for amount in amounts(same) if amount.kind == kind)
