"""What this field invented: GPU disaggregation and sharing systems, structured, sourced and browsable.

>>> import catalog
>>> catalog.systems().filter(sharing="temporal", year=">=2020").sort("year")
>>> catalog.search("unified memory")
>>> catalog.get("tgs")
>>> catalog.compare(["tgs", "antman", "gemini"], fields=["interception", "scheduling", "claims.overhead"])
>>> catalog.timeline().plot()
>>> print(catalog.cite("tgs").bibtex)

Results are objects: iterate them, filter them, ``to_pandas()`` them, or let the notebook show them. Nothing is
read until it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from catalog.entry import System
from catalog.errors import CatalogError, NothingFound, UnknownField, UnknownSystem, UnknownTerm
from catalog.loader import entries

if TYPE_CHECKING:
    # Imported by the functions that need them: part of the time is then spent at the first question instead of
    # at the import, and each part is short enough not to be noticed (benchmarks/catalogue.py).
    from catalog.chart import Graph, Timeline
    from catalog.choice import Choice
    from catalog.citations import Citations
    from catalog.comparison import Comparison
    from catalog.field import Field
    from catalog.listing import Systems, Wanted
    from catalog.quantities import Claims
    from catalog.spread import Spread
    from catalog.tryout import Trial
    from catalog.verdict import Verdicts
    from catalog.whom import Measurements

__all__ = [
    "CatalogError",
    "NothingFound",
    "System",
    "UnknownField",
    "UnknownSystem",
    "UnknownTerm",
    "choose",
    "cite",
    "claims",
    "compare",
    "fields",
    "get",
    "graph",
    "measurements",
    "plot",
    "search",
    "systems",
    "timeline",
    "trial",
    "verdicts",
]


def _shown(system: System) -> dict[str, str]:
    from catalog.show import as_bundle

    return as_bundle(system)


System._shown_by = _shown


def systems(**criteria: Wanted) -> Systems:
    """Return all systems, oldest first, or those that fit ``criteria`` (see :meth:`Systems.filter`)."""
    from catalog.listing import Systems

    everything = Systems(entries().values())
    return everything.filter(**criteria) if criteria else everything


def get(name: str) -> System:
    """Return one system by id, name or alias.

    Raises
    ------
    UnknownSystem
        With the nearest name.
    """
    from catalog.listing import find_system

    return find_system(name)


def search(query: str) -> Systems:
    """Return the systems whose entries contain the words of ``query``, best first.

    Raises
    ------
    NothingFound
        If no entry has any of the words, with the nearest word that one has.
    """
    return systems().search(query)


def fields() -> dict[str, Field]:
    """Return the fields by which systems are listed, filtered, sorted and compared, by name."""
    from catalog.field import fields

    return fields()


def compare(names: Iterable[str | System], fields: Sequence[str] | None = None) -> Comparison:
    """Return systems side by side on any fields (see :func:`fields`)."""
    from catalog.comparison import Comparison

    return Comparison(names, fields)


def claims(*, unverified: bool = False) -> Claims:
    """Return the claims of all systems, without the unverified ones unless asked for."""
    return systems().claims(unverified=unverified)


def timeline(**criteria: Wanted) -> Timeline:
    """Return all systems, or those that fit ``criteria``, over the years."""
    from catalog.chart import Timeline

    return Timeline(systems(**criteria))


def graph(around: str = "", kinds: Sequence[str] | None = None, **criteria: Wanted) -> Graph:
    """Return the relations between systems, all or those ``around`` one system."""
    from catalog.chart import Graph

    return Graph(systems(**criteria), kinds, get(around).id if around else "")


def cite(*names: str) -> Citations:
    """Return the citations of the named systems, or of all."""
    from catalog.citations import Citations

    return Citations([get(name) for name in names] or systems())


def trial(name: str) -> Trial:
    """Return what of a system runs on this pool, how true to it, and the cell that shows it."""
    from catalog.tryout import Trial

    return Trial(get(name))


def choose(**answers: str) -> Choice:
    """Return the systems that fit ``answers`` to the five questions of :mod:`catalog.choice`, with reasons.

    ``choose(trusted="no", kubernetes="yes", closed="yes", goal="latency", oversubscription="no")``; without answers it
    shows the questions.
    """
    from catalog.choice import Choice

    return Choice(systems(), answers)


def measurements(**criteria: Wanted) -> Measurements:
    """Return who measured whom: figures of one system by, or against, another."""
    from catalog.whom import Measurements

    return Measurements(systems(**criteria))


def plot(measure: str, **criteria: Wanted) -> Spread:
    """Return the claims of one measure over all systems, on one scale."""
    from catalog.spread import Spread

    return Spread(systems(**criteria), measure)


def verdicts(**criteria: Wanted) -> Verdicts:
    """Return what this project's own records say of what the systems claim and promise."""
    from catalog.verdict import Verdicts

    return Verdicts(systems(**criteria))
