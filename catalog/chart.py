"""The field over time, and who builds on whom."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog.entry import System
from catalog.errors import NothingFound, UnknownTerm
from catalog.loader import entries
from catalog.relations import KINDS, REVERSE, Edge, edges
from catalog.render.displayed import Displayed
from catalog.render.document import Document, Drawing, Grid, Run
from catalog.render.layout import category, lanes, network
from catalog.render.scene import Line, Scene

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Graph", "Timeline"]

#: Kinds of relation a graph shows unless told otherwise: those that carry an idea from one system to another.
DRAWN = ("builds-on", "compares-with", "follow-up-of", "same-mechanism", "same-authors")


class Chart(Displayed):
    """A result with a figure."""

    @abstractmethod
    def scene(self) -> Scene:
        """Return the figure before any library draws it."""

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the figure with matplotlib, on ``ax`` or a new figure, and return the axes."""
        from catalog.render.figure import draw

        return draw(self.scene(), ax)

    def save(self, path: str | Path) -> None:
        """Draw the figure with matplotlib into a file; its ending chooses the format (svg, png, pdf)."""
        from catalog.render.figure import save

        save(self.scene(), Path(path))


class Timeline(Chart):
    """Systems by year, in one lane per category."""

    def __init__(self, systems: Iterable[System]) -> None:
        self.systems = tuple(sorted(systems, key=lambda system: (system.year, system.name.casefold())))
        if not self.systems:
            raise NothingFound("a timeline needs at least one system")

    def __iter__(self) -> Iterator[System]:
        return iter(self.systems)

    def __len__(self) -> int:
        return len(self.systems)

    def __repr__(self) -> str:
        return f"<timeline of {len(self)} systems, {self.systems[0].year} to {self.systems[-1].year}>"

    def records(self) -> list[dict[str, Any]]:
        """Return one dictionary per system: year, id, name, venue, category."""
        return [
            {"year": s.year, "id": s.id, "name": s.name, "venue": s.venue, "category": category(s)}
            for s in self.systems
        ]

    def scene(self) -> Scene:
        """Return the figure: a column per year that has systems, a lane per category."""
        first, last = self.systems[0].year, self.systems[-1].year
        return lanes(f"GPU disaggregation and sharing, {first} to {last}", self.systems)

    def document(self) -> Document:
        """Show the figure, and the same as a table."""
        rows = tuple((str(row["year"]), row["name"], row["venue"], row["category"]) for row in self.records())
        return Document("", (Drawing(self.scene()), Grid(("year", "system", "venue", "category"), rows)))


class Graph(Chart):
    """Systems and the relations between them.

    Iterating yields the relations, each once and as its entry states it.
    """

    def __init__(self, systems: Sequence[System], kinds: Sequence[str] | None = None, around: str = "") -> None:
        """Collect the relations between ``systems``.

        Parameters
        ----------
        systems
            Whose relations.
        kinds
            Kinds of relation, by default those that carry ideas; ``builds-on`` and ``basis-of`` are the same.
        around
            Id of a system: only its relations, and only the systems at their other ends.

        Raises
        ------
        UnknownTerm
            If there is no such kind, with the nearest one.
        """
        for kind in kinds or ():
            if kind not in KINDS:
                raise UnknownTerm(kind, "relations", KINDS)
        stated = {backwards: kind for kind, backwards in REVERSE.items()}
        # Around one system there is room for every kind; a picture of everything would drown in "see also".
        wanted = {stated.get(kind, kind) for kind in kinds or (KINDS if around else DRAWN)}
        ids = {system.id for system in systems}
        self.around = around
        self.edges: tuple[Edge, ...] = tuple(
            edge
            for edge in edges()
            if edge.kind in wanted
            and {edge.source, edge.target} <= ids
            and (not around or around in (edge.source, edge.target))
        )
        ends = {around} | {name for edge in self.edges for name in (edge.source, edge.target)}
        self.systems = tuple(system for system in systems if not around or system.id in ends)
        if not self.systems:
            raise NothingFound("a graph needs at least one system")

    def __iter__(self) -> Iterator[Edge]:
        return iter(self.edges)

    def __len__(self) -> int:
        return len(self.edges)

    def __repr__(self) -> str:
        return f"<graph of {len(self.systems)} systems and {len(self.edges)} relations>"

    def records(self) -> list[dict[str, Any]]:
        """Return one dictionary per relation: source, kind, target, confidence, note."""
        return [
            {"source": e.source, "kind": e.kind, "target": e.target, "confidence": e.confidence, "note": e.note}
            for e in self.edges
        ]

    def scene(self) -> Scene:
        """Return the figure: a column per year, related systems near each other; lonely ones are left out."""
        title = f"Relations of {entries()[self.around].name}" if self.around else "Who builds on whom"
        base, at = network(title, self.systems, [(edge.source, edge.target) for edge in self.edges])
        lines = tuple(
            Line(
                *at[edge.source],
                *at[edge.target],
                group=edge.kind.replace("-", " "),
                arrow=edge.kind in REVERSE,
                hint=_sentence(edge),
            )
            for edge in sorted(self.edges, key=lambda edge: list(KINDS).index(edge.kind))
        )
        return Scene(base.title, base.width, base.height, base.dots, lines, base.words)

    def document(self) -> Document:
        """Show the figure, and the relations as a table."""
        known = entries()
        rows: tuple[tuple[Run, ...], ...] = tuple(
            (known[e.source].name, KINDS[e.kind], known[e.target].name, e.note, e.confidence) for e in self.edges
        )
        table = Grid(("system", "relation", "system", "what exactly", "confidence"), rows)
        return Document("", (Drawing(self.scene()), table))


def _sentence(edge: Edge) -> str:
    known = entries()
    note = f": {edge.note}" if edge.note else ""
    return f"{known[edge.source].name} {KINDS[edge.kind]} {known[edge.target].name}{note}"
