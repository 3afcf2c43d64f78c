"""What a result shows, before it is decided how: blocks of words, tables and drawings.

Every result of the catalogue builds one :class:`Document`. The renderers turn it into plain text, HTML or rich
output, so that no format knows more than another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from catalog.render.scene import Scene

__all__ = [
    "Block",
    "Bullets",
    "Code",
    "Displayed",
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


class Displayed(ABC):
    """A result that shows itself: as text where it is printed, as HTML in a notebook.

    A subclass says what to show in ``document`` and what its data are in ``records``.
    """

    __slots__ = ()

    @abstractmethod
    def document(self) -> Document:
        """Return what is shown."""

    @abstractmethod
    def records(self) -> list[dict[str, Any]]:
        """Return the data as plain dictionaries, one per row."""

    def to_pandas(self) -> Any:
        """Return the records as a ``pandas.DataFrame``.

        Raises
        ------
        ModuleNotFoundError
            Without pandas, with the way to install it and the way to do without.
        """
        return to_pandas(self.records())

    def to_json(self) -> str:
        """Return the records as JSON text, indented."""
        return msgspec.json.format(msgspec.json.encode(self.records()), indent=2).decode()

    def __str__(self) -> str:
        from catalog.render import text

        return text.render(self.document())

    def _repr_html_(self) -> str:
        from catalog.render import html

        return html.render(self.document())

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Mapping[str, str]:
        from catalog.render import html, text

        document = self.document()  # worked out once: a graph is laid out for it, a table's cells are looked up
        return {"text/plain": text.render(document), "text/html": html.render(document)}


def to_pandas(records: Sequence[Mapping[str, Any]]) -> Any:
    """Return ``records`` as a ``pandas.DataFrame``."""
    try:
        import pandas
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "to_pandas() needs pandas, which is not installed here: pip install pandas; or use .records()",
            name="pandas",
        ) from None
    return pandas.DataFrame.from_records(list(records))
