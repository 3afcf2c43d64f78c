"""The first page: all systems in one table, narrowed down by facets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from catalog.entry import System
from catalog.field import field
from catalog.render.document import plain
from catalog.render.words import term_name
from catalog.taxonomy import taxonomy

__all__ = ["FACETS", "page"]

#: Fields by which the table can be narrowed down.
FACETS = (
    "category", "sharing", "scope", "memory", "memory_isolation", "fault_isolation", "performance_isolation",
    "transparency", "code", "here", "verdict", "kind",
)  # fmt: skip
_COLUMNS = ("year", "venue", "category", "sharing", "code", "here", "verdict")

_LEAD = """\
How GPUs are shared and reached over networks: every system that this project has read about, each statement with its
source, each doubt marked. [Side by side](matrix.md), [quantity by quantity](quantities.md),
[what was found here](verdicts.md), [who measured whom](who.md), [over the years](timeline.md), and
[as data](data.md). How it is kept: [the reference](../reference/catalogue.md), and [what has been read again and
corrected](../explanation/catalogue-review.md).
"""


def page(systems: Sequence[System]) -> str:
    """Return the page; without a script it shows every system."""
    chosen = "".join(_select(name, systems) for name in FACETS)
    search = '<label>words<input type="search" data-words autocomplete="off"></label>'
    form = f'<form class="facets" hidden aria-label="Narrow down">{search}{chosen}<output></output></form>'
    heads = "".join(f'<th scope="col">{escape(field(name).label)}</th>' for name in _COLUMNS)
    rows = "".join(_row(system) for system in systems)
    table = f'<thead><tr><th scope="col">system</th>{heads}</tr></thead><tbody>{rows}</tbody>'
    body = f'<div class="gpu-catalogue">{form}<div class="scroll"><table data-facets>{table}</table></div></div>'
    return f"---\nhide: [toc]\n---\n\n# Catalogue\n\n{_LEAD}\n{body}\n"


def _select(name: str, systems: Iterable[System]) -> str:
    key = field(name)
    there = {str(value) for system in systems for value in key.values(system)}
    terms = [term for term in key.terms if term in there]
    options = "".join(f'<option value="{escape(_slug(term))}">{escape(_words(name, term))}</option>' for term in terms)
    choice = f'<select data-facet="{name}"><option value="">any</option>{options}</select>'
    return f"<label>{escape(key.label)}{choice}</label>"


def _row(system: System) -> str:
    terms = {name: " ".join(_slug(str(value)) for value in field(name).values(system)) for name in FACETS}
    data = "".join(f' data-{name.replace("_", "-")}="{escape(found)}"' for name, found in terms.items())
    cells = "".join(f"<td>{escape(_brief(name, system))}</td>" for name in _COLUMNS)
    named = f'<a href="systems/{system.id}/">{escape(system.name)}</a>'
    summary = f'<span class="summary">{escape(system.summary)}</span>'
    return f'<tr{data}><th scope="row">{named}{summary}</th>{cells}</tr>'


def _brief(name: str, system: System) -> str:
    """Return what has room in the table: of the code its availability alone."""
    return system.code.availability.replace("-", " ") if name == "code" else plain(field(name).brief(system))


def _words(name: str, term: str) -> str:
    return term_name(name, term) if name in taxonomy().dimensions else term.replace("-", " ")


def _slug(value: str) -> str:
    return value.replace(" ", "-")
