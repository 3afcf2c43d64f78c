"""What a result shows, before it is decided how: blocks of words, tables and drawings.

Every result of the catalogue builds one :class:`Document`. The renderers turn it into plain text, HTML or rich
output, so that no format knows more than another.
"""

from __future__ import annotations

import msgspec

from catalog.render.scene import Scene

__all__ = [
    "Block",
    "Bullets",
    "Code",
    "Document",
    "Drawing",
    "Facts",
    "Grid",
    "Heading",
    "Inline",
    "Link",
    "Mark",
    "Paragraph",
    "Run",
    "plain",
    "word",
]


class Link(msgspec.Struct, frozen=True):
    """Words that lead somewhere."""

    text: str
    url: str
    spelled: bool = True
    """Whether plain text repeats the address; not where it stands elsewhere in the document."""


class Mark(msgspec.Struct, frozen=True):
    """A word that stands out. The tone adds colour; the word alone must say it all."""

    text: str
    tone: str = "plain"
    """``good``, ``waiting``, ``doubt`` or ``plain``."""


Inline = str | Link | Mark
Run = str | tuple[Inline, ...]


class Heading(msgspec.Struct, frozen=True):
    """A section's title."""

    text: str


class Paragraph(msgspec.Struct, frozen=True):
    """A paragraph; the tone ``doubt`` is for what must not be taken as fact."""

    run: Run
    tone: str = ""


class Bullets(msgspec.Struct, frozen=True):
    """A list."""

    items: tuple[Run, ...]
    tone: str = ""


class Facts(msgspec.Struct, frozen=True):
    """Labels with what they stand for."""

    rows: tuple[tuple[str, Run], ...]


class Grid(msgspec.Struct, frozen=True):
    """A table; the first column names its row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Run, ...], ...]
    caption: str = ""


class Code(msgspec.Struct, frozen=True):
    """Text to be copied as it is."""

    text: str


class Drawing(msgspec.Struct, frozen=True):
    """A figure; what it says must stand in words as well, in another block."""

    scene: Scene


Block = Heading | Paragraph | Bullets | Facts | Grid | Code | Drawing


class Document(msgspec.Struct, frozen=True):
    """A title and blocks below it."""

    title: str
    blocks: tuple[Block, ...]


def plain(run: Run) -> str:
    """Return the words of a run; a mark among other words is put in brackets, since colour is gone."""
    if isinstance(run, str):
        return run
    return "".join(word(part, alone=len(run) == 1) for part in run)


def word(part: Inline, *, alone: bool) -> str:
    """Return the words of one part of a run."""
    if isinstance(part, str):
        return part
    return f"({part.text})" if isinstance(part, Mark) and not alone else part.text
