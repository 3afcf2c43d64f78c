"""From reading to trying: what of a system runs on this pool, how true to it, and the cell that shows it."""

from __future__ import annotations

from typing import Any

from catalog import carriers
from catalog.carried import how_label, is_ready, status, status_mark
from catalog.entry import System
from catalog.evidence import Claim
from catalog.figures import names
from catalog.measured import Measured, measured
from catalog.paths import COMMAND
from catalog.render.displayed import Displayed
from catalog.render.document import Block, Bullets, Code, Document, Facts, Grid, Heading, Paragraph, Run
from catalog.render.words import conditions_text, joined, value_text
from catalog.show import carrier_run
from catalog.verdict import HEADS, cells, verdicts_of

__all__ = ["Trial"]

_STATUS = {
    "whole": "Its mechanism runs in this pool, at the pool's own unit.",
    "part": "A part of its mechanism runs in this pool; what does not stands below.",
    "idea": "Its idea is in this pool, by other means than its own.",
    "planned": "Not carried yet: what would carry it is planned.",
    "not carried": "Not carried, and not planned.",
}


class Trial(Displayed):
    """How one system can be tried here."""

    def __init__(self, system: System) -> None:
        self.system = system

    @property
    def status(self) -> str:
        """``whole``, ``part`` or ``idea`` of what is in the code, ``planned``, or ``not carried``."""
        return status(self.system)

    @property
    def cell(self) -> str:
        """The cell to run; empty unless everything that it needs is in the code."""
        return self.system.pool.cell.strip("\n") if is_ready(self.system) else ""

    @property
    def headline(self) -> Claim | None:
        """The claim to set beside our own figure, if the entry has one."""
        return next((claim for claim in self.system.claims if claim.id == self.system.pool.headline), None)

    @property
    def measured(self) -> tuple[Measured, ...]:
        """The newest of each of our own figures, none if nothing has been recorded; verdicts show the older ones."""
        recorded = measured().get(self.system.id, ())
        return tuple({each.figure or each.quantity: each for each in recorded}.values())

    def __repr__(self) -> str:
        return f"<trial of {self.system.name}: {self.status}>"

    def records(self) -> list[dict[str, Any]]:
        """Return one dictionary: status, carriers, fidelity, headline, our figures, cell."""
        pool = self.system.pool
        return [
            {
                "system": self.system.id,
                "status": self.status,
                "carriers": {name: carriers.available(name) for name in pool.carriers},
                "how": pool.how,
                "faithful": list(pool.faithful),
                "differs": list(pool.differs),
                "headline": _claim_text(self.headline) if self.headline else None,
                "measured": [each.sentence() for each in self.measured],
                "verdicts": {each.said: each.outcome for each in verdicts_of(self.system)},
                "expectation": pool.expectation,
                "cell": self.cell,
            }
        ]

    def document(self) -> Document:
        """Show what carries the system, what is faithful, both figures, and the cell."""
        pool = self.system.pool
        blocks: list[Block] = [
            Paragraph((status_mark(self.system), f" {_STATUS[self.status]}")),
            Facts(tuple(self._facts())),
        ]
        for title, items in (("As in the original", pool.faithful), ("Not as in the original", pool.differs)):
            if items:
                blocks += [Heading(title), Bullets(tuple(items))]
        if found := verdicts_of(self.system):
            blocks += [Heading("What was found here"), Grid(HEADS, tuple(cells(verdict) for verdict in found))]
        if self.cell:
            blocks += [Heading("A cell to run"), Code(self.cell)]
        return Document(f"{self.system.name} on this pool", tuple(blocks))

    def _facts(self) -> list[tuple[str, Run]]:
        pool = self.system.pool
        rows: list[tuple[str, Run]] = [
            ("carried by", joined((carrier_run(name) for name in pool.carriers), ", ") or "nothing"),
            (how_label(self.system), pool.how),
            ("they report", self._reported()),
            ("we measured", "; ".join(each.sentence() for each in self.measured) or "nothing recorded yet"),
        ]
        if names(self.system.id) and COMMAND.is_file():
            rows.append(("to measure it", f"python benchmarks/{COMMAND.name} --only {self.system.id}"))
        if pool.expectation:
            rows.append(("should show", f"{pool.expectation} (our target, not theirs)"))
        return rows

    def _reported(self) -> str:
        """Return the headline, or else the first verified result with how many more there are."""
        if self.headline:
            return _claim_text(self.headline)
        results = [each for each in self.system.claims if each.kind == "result" and each.confidence != "unverified"]
        if not results:
            return "no figure that could be verified"
        more = f"; and {len(results) - 1} more, see catalog show {self.system.id}" if len(results) > 1 else ""
        return _claim_text(results[0]) + more


def _claim_text(claim: Claim) -> str:
    held = conditions_text(claim.conditions)
    return f"{claim.quantity}: {value_text(claim)}{f' ({held})' if held else ''}; {claim.confidence} confidence"
