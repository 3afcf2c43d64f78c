"""Systems as a collection: the result of listing, filtering, sorting and searching."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from catalog.amounts import Limit, order
from catalog.entry import System
from catalog.errors import CatalogError, UnknownSystem, UnknownTerm
from catalog.field import LISTED, Field, field
from catalog.loader import entries
from catalog.nearest import fold
from catalog.render.displayed import Displayed
from catalog.render.document import Document, Grid, Paragraph

if TYPE_CHECKING:
    from catalog.quantities import Claims

__all__ = ["Systems", "find_system", "system_names"]

#: Longer signs first, so that ``>=`` is not taken for ``>``.
_COMPARISONS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}

Wanted = str | int | range | Iterable[str | int] | Callable[[Any], bool]


def find_system(name: str | System) -> System:
    """Return the system with that id, name or alias; case, hyphens and underscores do not count.

    Raises
    ------
    UnknownSystem
        If there is none, with the nearest name.
    """
    if isinstance(name, System):
        return name
    wanted = fold(name)
    by_name = system_names()
    if wanted not in by_name:
        raise UnknownSystem(name, [*entries(), *(s.name for s in entries().values())])
    return entries()[by_name[wanted]]


def system_names() -> dict[str, str]:
    """Return every way to name a system, folded, with the id it stands for."""
    known = entries()
    names = {fold(alias): system.id for system in known.values() for alias in system.aliases}
    names |= {fold(system.name): system.id for system in known.values()}
    return names | {fold(name): name for name in known}


class Systems(Displayed, Sequence[System]):
    """Some systems, in an order, with the columns to show.

    Every method returns a new collection; nothing is changed in place.
    """

    def __init__(
        self, systems: Iterable[System], *, columns: Sequence[str] = LISTED, notes: Mapping[str, str] | None = None
    ) -> None:
        self._systems = tuple(systems)
        self._columns = tuple(columns)
        self._notes = dict(notes or {})

    def filter(self, **criteria: Wanted) -> Systems:
        """Return the systems that fit every criterion.

        Parameters
        ----------
        **criteria
            A field and what is wanted of it: a term or a part of the text (``venue="NSDI"``), one of several
            (``sharing=["temporal", "spatial"]``), a year, a span of years (``year="2020-2023"``, ``">=2022"``,
            ``range(2020, 2024)``), for claims of a measure a comparison (``{"claims.overhead": "<5"}``,
            ``"<40us"``), or a function of the field's value that says yes or no.

        Raises
        ------
        UnknownField, UnknownTerm
            With the nearest name.
        """
        tests = [_test(field(name), wanted) for name, wanted in criteria.items()]
        return self._with(system for system in self if all(test(system) for test in tests))

    def sort(self, *names: str, reverse: bool = False) -> Systems:
        """Return the systems ordered by fields, ``sort("year", "name")``; those without a value come last."""
        keys = [field(name) for name in names or ("year", "name")]
        ordered = sorted(self, key=lambda system: tuple(_order(key, system) for key in keys), reverse=reverse)
        ordered.sort(key=lambda system: _lacks(keys[0], system))
        return self._with(ordered)

    def search(self, query: str) -> Systems:
        """Return those of these systems that fit a full-text ``query``, best first."""
        from catalog.fulltext import search

        hits = {hit.id: hit.part for hit in search(query)}
        mine = {system.id: system for system in self}
        found = [mine[name] for name in hits if name in mine]
        return Systems(found, columns=self._columns, notes={name: hits[name] for name in hits if name in mine})

    def show(self, *names: str) -> Systems:
        """Return the same systems with other columns, ``show("name", "year", "code")``."""
        return Systems(self, columns=[field(name).name for name in names] or LISTED, notes=self._notes)

    def claims(self, *, unverified: bool = False) -> Claims:
        """Return the claims of these systems, without the unverified ones unless asked for."""
        from catalog.quantities import Claims

        return Claims.of(self, unverified=unverified)

    @property
    def ids(self) -> tuple[str, ...]:
        """The systems' ids, in order."""
        return tuple(system.id for system in self)

    @overload
    def __getitem__(self, key: int | str) -> System: ...
    @overload
    def __getitem__(self, key: slice) -> Systems: ...
    def __getitem__(self, key: int | str | slice) -> System | Systems:
        if isinstance(key, str):
            found = find_system(key)
            if found.id not in self.ids:
                raise UnknownSystem(key, self.ids)
            return found
        return self._with(self._systems[key]) if isinstance(key, slice) else self._systems[key]

    def __contains__(self, item: object) -> bool:
        return item in self._systems or item in self.ids

    def __iter__(self) -> Iterator[System]:
        return iter(self._systems)

    def __len__(self) -> int:
        return len(self._systems)

    def __repr__(self) -> str:
        return f"<{len(self)} systems: {', '.join(self.ids)}>"

    def records(self) -> list[dict[str, Any]]:
        """Return one dictionary per system with the columns' values."""
        columns = [field(name) for name in self._columns]
        rows = [{column.name: column.plain_values(system) for column in columns} for system in self]
        if self._notes:
            for system, row in zip(self, rows, strict=True):
                row["found_in"] = self._notes[system.id]
        return rows

    def document(self) -> Document:
        """Show the systems as a table."""
        if not self:
            return Document("", (Paragraph("No system fits."),))
        columns = [field(name) for name in self._columns]
        heads = tuple(column.label for column in columns) + (("found in",) if self._notes else ())
        rows = tuple(
            tuple(column.brief(system) for column in columns) + ((self._notes[system.id],) if self._notes else ())
            for system in self
        )
        count = f"{len(self)} system{'s' if len(self) != 1 else ''}"
        return Document("", (Grid(heads, rows, count),))

    def _with(self, systems: Iterable[System]) -> Systems:
        kept = tuple(systems)
        notes = {system.id: self._notes[system.id] for system in kept if system.id in self._notes}
        return Systems(kept, columns=self._columns, notes=notes)


def _order(key: Field, system: System) -> tuple[int, str, float]:
    """Return what orders ``system`` by ``key``: numbers as numbers, words without case."""
    if key.claims and key.measure:
        return order(key.claims(system), key.measure)
    values = key.values(system)
    if values and isinstance(values[0], int):
        return (values[0], "", 0.0)
    return (0, " ".join(str(value) for value in values).casefold(), 0.0)


def _lacks(key: Field, system: System) -> int:
    """Return how much ``system`` lacks of what ``key`` orders by: it comes last in either direction."""
    if key.claims and key.measure:
        return order(key.claims(system), key.measure)[0]
    return int(not key.values(system))


def _test(key: Field, wanted: Wanted) -> Callable[[System], bool]:
    """Return the test for one criterion."""
    if callable(wanted):
        return lambda system: any(wanted(value) for value in key.values(system))
    if key.name == "year":
        years = _years(wanted)
        return lambda system: years(system.year)
    options = [wanted] if isinstance(wanted, str | int) else list(wanted)
    texts = [str(option) for option in options]
    if key.claims and key.measure:
        limits = [limit for text in texts if (limit := Limit.of(text, key.measure))]
        if len(limits) == len(texts):
            claims = key.claims
            return lambda system: any(all(limit.fits(claim) for limit in limits) for claim in claims(system))
    if key.terms:
        terms = {fold(term) for term in key.terms}
        for text in texts:
            if fold(text) not in terms:
                raise UnknownTerm(text, key.name, key.terms)
        chosen = {fold(text) for text in texts}
        return lambda system: any(fold(str(value)) in chosen for value in key.values(system))
    parts = [text.casefold() for text in texts]
    return lambda system: any(part in str(value).casefold() for value in key.values(system) for part in parts)


def _years(wanted: str | int | range | Iterable[str | int]) -> Callable[[int], bool]:
    """Return the test for a year, a span (``2020-2023``), a comparison (``>=2020``), or several of these."""
    if isinstance(wanted, range):
        return lambda year: year in wanted
    if not isinstance(wanted, str | int):
        tests = [_years(each) for each in wanted]
        return lambda year: any(test(year) for test in tests)
    text = str(wanted).replace(" ", "")
    for sign, compare in _COMPARISONS.items():
        limit = text.removeprefix(sign)
        if limit != text and limit.isdigit():
            return lambda year: compare(year, int(limit))
    first, dash, last = text.partition("-")
    if first.isdigit() and (last.isdigit() or not dash):
        return lambda year: int(first) <= year <= int(last or first)
    raise CatalogError(f"{wanted!r} is no year; write 2023, 2020-2023 or >=2020")
