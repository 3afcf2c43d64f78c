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
from catalog.render.document import Displayed, Document, Drawing, Grid, Run
from catalog.render.scene import Dot, Line, Scene, Words
from catalog.render.words import term_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Graph", "Timeline"]

#: Kinds of relation a graph shows unless told otherwise: those that carry an idea from one system to another.
DRAWN = ("builds-on", "compares-with", "follow-up-of", "same-mechanism", "same-authors")

_ROW = 24.0
_TOP = 34.0
_LEFT = 168.0
_CHARACTER = 6.7
_COLUMN = 62.0


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
            {"year": s.year, "id": s.id, "name": s.name, "venue": s.venue, "category": _category(s)}
            for s in self.systems
        ]

    def scene(self) -> Scene:
        """Return the figure: a column per year that has systems, a lane per category."""
        first, last = self.systems[0].year, self.systems[-1].year
        return _scene(f"GPU disaggregation and sharing, {first} to {last}", self.systems)

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
        """Return the figure: the timeline's places, with the relations drawn between them."""
        title = f"Relations of {entries()[self.around].name}" if self.around else "Who builds on whom"
        base = _scene(title, sorted(self.systems, key=lambda system: (system.year, system.name.casefold())), 1.25)
        at = {dot.label: (dot.x, dot.y) for dot in base.dots}
        names = {system.id: _label(system) for system in self.systems}
        lines = tuple(
            Line(
                *at[names[edge.source]],
                *at[names[edge.target]],
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


def _category(system: System) -> str:
    return term_name("category", system.classification.category.terms[0])


def _label(system: System) -> str:
    """Return the name, cut where a long one would run over the figure."""
    return system.name if len(system.name) <= 26 else f"{system.name[:25].rstrip()}…"


def _scene(title: str, systems: Sequence[System], spread: float = 1.0) -> Scene:
    """Place systems: x by year (years without a system take no room), y by category, labels never overlapping."""
    years = sorted({system.year for system in systems})
    x_of = {year: _LEFT + 14 + number * _COLUMN for number, year in enumerate(years)}
    dots: list[Dot] = []
    words = [Words(x_of[year], str(year), "x") for year in years]
    y = _TOP
    for lane in dict.fromkeys(sorted(_category(system) for system in systems)):
        rows: list[float] = []  # where the last label of each row of this lane ends
        words.append(Words(y, lane, "y"))
        for system in (s for s in systems if _category(s) == lane):
            x, label = x_of[system.year], _label(system)
            row = next((n for n, end in enumerate(rows) if end < x - 8), len(rows))
            rows[row : row + 1] = [x + 12 + _CHARACTER * len(label)]
            hint = f"{system.name}, {system.venue} {system.year}: {system.summary}"
            dots.append(Dot(x, y + row * _ROW * spread, label, lane, hint))
        y += len(rows) * _ROW * spread + 8
    right = max(dot.x + 14 + _CHARACTER * len(dot.label) for dot in dots)
    return Scene(title, max(right, x_of[years[-1]] + 30), y, tuple(dots), words=tuple(words))
