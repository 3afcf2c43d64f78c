"""Systems side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from catalog.entry import System
from catalog.errors import NothingFound
from catalog.field import COMPARED, Field, field
from catalog.listing import find_system
from catalog.render.displayed import Displayed
from catalog.render.document import Document, Grid, Run

__all__ = ["Comparison"]


class Comparison(Displayed):
    """Any systems on any fields: one column per system, one row per field.

    Iterating yields the fields' rows; ``comparison["year"]`` is one of them as a dictionary by system id.
    """

    def __init__(self, systems: Iterable[str | System], fields: Sequence[str] | None = None) -> None:
        """Compare ``systems`` on ``fields``.

        Raises
        ------
        UnknownSystem, UnknownField
            With the nearest name.
        NothingFound
            If there is no system to compare.
        """
        self.systems: tuple[System, ...] = tuple(dict.fromkeys(map(find_system, systems)))
        if not self.systems:
            raise NothingFound("a comparison needs at least one system")
        self._fields: tuple[Field, ...] = tuple(field(name) for name in fields or COMPARED)

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the compared fields, in order."""
        return tuple(each.name for each in self._fields)

    def __getitem__(self, name: str) -> dict[str, object]:
        key = field(name)
        return {system.id: key.plain_values(system) for system in self.systems}

    def __iter__(self) -> Iterator[dict[str, object]]:
        return iter(self.records())

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        return f"<comparison of {', '.join(s.name for s in self.systems)} on {len(self)} fields>"

    def records(self) -> list[dict[str, Any]]:
        """Return one dictionary per field: its name, and the value of every system by id."""
        return [{"field": each.name, **self[each.name]} for each in self._fields]

    def document(self) -> Document:
        """Show the comparison as a table, doubts included."""
        heads = ("", *(system.name for system in self.systems))
        rows: tuple[tuple[Run, ...], ...] = tuple(
            (each.label, *(each.show(system) or "–" for system in self.systems)) for each in self._fields
        )
        return Document("", (Grid(heads, rows),))
