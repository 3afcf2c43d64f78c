"""What our own records say of what a system claims or promises.

An entry says which recorded figure stands for a claim, and within which limit it confirms it. The verdict itself is
never written down: it follows from the newest record each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from catalog.amounts import within
from catalog.entry import System
from catalog.evidence import Judgement
from catalog.measured import Measured, in_unit, measured
from catalog.render.displayed import Displayed
from catalog.render.document import Document, Grid, Mark, Paragraph, Run
from catalog.render.words import measured_text, value_text

__all__ = ["OUTCOMES", "Verdict", "Verdicts", "verdicts_of"]

OUTCOMES = ("reproduced", "weaker", "contradicted", "not-runnable")
_TONES = {"reproduced": "good", "weaker": "waiting", "contradicted": "doubt", "not-runnable": "plain"}


class Verdict(msgspec.Struct, frozen=True):
    """One of :data:`OUTCOMES` on one claim or promise, with the records from which it follows, the newest last."""

    system: System
    judgement: Judgement
    outcome: str
    records: tuple[Measured, ...] = ()

    @property
    def said(self) -> str:
        """What is judged: the claim with its number, or the promise in words."""
        claim = next((each for each in self.system.claims if each.id == self.judgement.claim), None)
        return f"{claim.quantity}: {value_text(claim)}" if claim else self.judgement.promise

    @property
    def found(self) -> str:
        """The newest figure, with the spread of its runs and where it was recorded; then what older records have.

        Those are of other commits, and perhaps of another GPU, so that their range is no spread of one measurement.
        """
        if not self.records:
            return "not run"
        *older, newest = self.records
        return newest.sentence() + (f"; {_range(older)} in {_counted(older)}" if older else "")


def verdicts_of(system: System) -> tuple[Verdict, ...]:
    """Return the verdicts on ``system``; what names a figure is left out where no record has it."""
    return tuple(_verdicts(system))


def _verdicts(system: System) -> Iterator[Verdict]:
    recorded = measured().get(system.id, ())
    for judgement in system.verdicts:
        if not judgement.figure:
            yield Verdict(system, judgement, "not-runnable")
            continue
        found = tuple(each for each in recorded if each.figure == judgement.figure)
        if found:
            holds = within(judgement.holds_if, found[-1].value, found[-1].unit)
            yield Verdict(system, judgement, "reproduced" if holds else judgement.otherwise, found)


def _range(records: Sequence[Measured]) -> str:
    least, most = min(each.value for each in records), max(each.value for each in records)
    numbers = measured_text(least) if least == most else f"{measured_text(least)} to {measured_text(most)}"
    return in_unit(numbers, records[-1].unit)


def _counted(records: Sequence[Measured]) -> str:
    return "an older record" if len(records) == 1 else f"{len(records)} older records"


class Verdicts(Displayed, Sequence[Verdict]):
    """The verdicts on some systems, as a table of what is claimed, what was found here, and why."""

    def __init__(self, systems: Iterable[System]) -> None:
        self._items = tuple(verdict for system in systems for verdict in verdicts_of(system))

    def __getitem__(self, index: Any) -> Any:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"<{len(self)} verdicts>"

    def records(self) -> list[dict[str, Any]]:
        """Return one dictionary per verdict, with hardware, commit and file of its newest record."""
        return [
            {
                "system": each.system.id,
                "claim": each.judgement.claim,
                "said": each.said,
                "verdict": each.outcome,
                "reason": each.judgement.reason,
                "holds_if": each.judgement.holds_if,
                "measured": msgspec.to_builtins(each.records[-1]) if each.records else None,
                "runs": len(each.records),
            }
            for each in self
        ]

    def document(self) -> Document:
        """Show the verdicts as a table."""
        if not self:
            return Document("", (Paragraph("No verdict: nothing of it has been recorded here."),))
        rows: tuple[tuple[Run, ...], ...] = tuple((each.system.name, *cells(each)) for each in self)
        return Document("", (Grid(("system", *HEADS), rows),))


#: What a verdict shows beside its system.
HEADS = ("claimed or promised", "verdict", "found here", "why")


def cells(verdict: Verdict) -> tuple[Run, ...]:
    """Return a verdict as cells of a table, for :data:`HEADS`."""
    mark = Mark(verdict.outcome.replace("-", " "), _TONES[verdict.outcome])
    return (verdict.said, (mark,), verdict.found, verdict.judgement.reason)
