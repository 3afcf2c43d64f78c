"""Citations: BibTeX for the paper, a line of text for everything else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from catalog.entry import Publication, System
from catalog.errors import NothingFound
from catalog.render.displayed import Displayed
from catalog.render.document import Bullets, Code, Document, Heading, Link, Run
from catalog.render.words import address

__all__ = ["Citations", "bibtex_entry", "escaped"]

#: Braces get names, because BibTeX counts them even behind a backslash.
_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\textbraceleft{}",
    "}": r"\textbraceright{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_"},
}
_SPECIAL = re.compile("[" + re.escape("".join(_ESCAPES)) + "]")
_CONTAINER = {"inproceedings": "booktitle", "article": "journal"}


class Citations(Displayed):
    """The publications of some systems. Iterating yields them; ``bibtex`` is the file to save."""

    def __init__(self, systems: Iterable[System], *, principal_only: bool = False) -> None:
        self._items = tuple(
            (system, publication)
            for system in systems
            for publication in system.publications[: 1 if principal_only else None]
        )
        if not self._items:
            raise NothingFound("there is nothing to cite: no system was chosen")

    @property
    def bibtex(self) -> str:
        """All of them as the text of a ``.bib`` file."""
        return "\n".join(bibtex_entry(publication, system) for system, publication in self._items)

    def __iter__(self) -> Iterator[Publication]:
        return (publication for _, publication in self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"<citations: {', '.join(publication.key for publication in self)}>"

    def records(self) -> list[dict[str, Any]]:
        """Return one dictionary per publication, with its BibTeX."""
        return [
            {
                "system": system.id,
                **msgspec.to_builtins(publication),
                "bibtex": bibtex_entry(publication, system),
            }
            for system, publication in self._items
        ]

    def document(self) -> Document:
        """Show the references as text, and the BibTeX to copy."""
        items = tuple(_reference(system, publication) for system, publication in self._items)
        return Document("", (Bullets(items), Heading("BibTeX"), Code(self.bibtex)))


def bibtex_entry(publication: Publication, system: System) -> str:
    """Return one BibTeX entry, UTF-8, special characters escaped and the title's capitals kept."""
    fields = {
        "author": _authors(publication, system),
        "title": f"{{{escaped(publication.title)}}}",
        _CONTAINER.get(publication.type, "howpublished"): escaped(publication.container),
        "year": str(publication.year),
        "volume": escaped(publication.volume),
        "number": escaped(publication.number),
        "pages": re.sub(r"(?<=\d)\s*[-–]+\s*(?=\d)", "--", publication.pages),
        "publisher": escaped(publication.publisher),
        "doi": publication.doi,
        "eprint": publication.arxiv,
        "archiveprefix": "arXiv" if publication.arxiv else "",
        "url": address(publication),
        "note": escaped(publication.note),
    }
    lines = [f"  {name} = {{{value}}},\n" for name, value in fields.items() if value]
    if publication.month:
        lines.append(f"  month = {publication.month},\n")  # BibTeX's own macro, in every style's language
    return f"@{publication.type}{{{publication.key},\n{''.join(lines)}}}\n"


def _authors(publication: Publication, system: System) -> str:
    if publication.authors:
        return " and ".join(escaped(name) for name in publication.authors)
    return " and ".join(f"{{{escaped(name)}}}" for name in system.institutions)


def escaped(text: str) -> str:
    """Return ``text`` with what LaTeX would take for its own made harmless."""
    return _SPECIAL.sub(lambda match: _ESCAPES[match.group()], text)


def _reference(system: System, publication: Publication) -> Run:
    people = [" ".join(reversed(name.split(", "))) for name in publication.authors] or system.institutions
    authors = ", ".join(people)
    where = ", ".join(part for part in (publication.container, _issue(publication)) if part)
    title = publication.title.rstrip(".")
    parts: list[str | Link] = [f"{authors}: {title}. {f'{where}, ' if where else ''}{publication.year}."]
    if address(publication):
        parts += [" ", Link(address(publication), address(publication))]
    return tuple(parts)


def _issue(publication: Publication) -> str:
    volume = f"{publication.volume}({publication.number})" if publication.number else publication.volume
    pages = f"pp. {publication.pages}" if publication.pages else ""
    return ", ".join(part for part in (volume, pages) if part)
