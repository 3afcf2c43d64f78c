"""Facts as people see them: complete plain text, a table in the notebook, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Column, Table
from rich.text import Text

from kernelproxy.session.amounts import (
    bytes_in_words as bytes_in_words,  # what shows facts writes amounts in the same words
)

#: Left-aligned, and no colours of its own: JupyterLab's theme gives those.
_CELL = 'style="text-align: left"'
#: Columns of a terminal between two of a table.
_GAP = 2
#: Words up to so many letters stay whole: as many as there is room for.
_WHOLE_WORDS = range(12, 0, -1)


class Json(dict[str, Any]):
    """A dictionary that shows itself as JSON."""

    def __repr__(self) -> str:
        return json.dumps(self, indent=2, ensure_ascii=False)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {"text/plain": repr(self), "application/json": dict(self)}


@dataclass(frozen=True)
class Section:
    """Facts that belong together, under a title if there is one.

    ``share`` in 0..1 draws a bar beside the row of that name. The values of one ``to_copy`` are commands: a terminal
    shows each on a line of its own that nothing breaks.
    """

    title: str
    rows: tuple[tuple[str, str], ...]
    share: Mapping[str, float] = field(default_factory=dict)
    to_copy: bool = False


class Columns(Table):
    """What a terminal shows in columns: in a narrow one texts go on in the next line, and nothing is cut away.

    Columns of figures, which are those that are justified to the right, stay as wide as they are. Where even that is
    too wide, lines are as long as they have to be, and the terminal breaks them.
    """

    def __init__(self, *headings: str) -> None:
        super().__init__(*headings, box=None, padding=(0, _GAP, 0, 0), pad_edge=False)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for column in self.columns:
            column.overflow = "fold"
            column.no_wrap |= column.justify == "right"
        gaps = _GAP * max(0, len(self.columns) - 1)
        widths = _fitted(self.columns, options.max_width - gaps)
        for column, width in zip(self.columns, widths, strict=True):
            column.width = width
        yield from super().__rich_console__(console, options.update_width(max(sum(widths) + gaps, options.max_width)))


class Facts:
    """Something with sections of facts; shows itself in a notebook, a terminal and a log alike.

    ``problem``, if there is one, comes first: it says what does not work and what to do.
    """

    title: str = ""
    problem: str = ""

    def sections(self) -> Sequence[Section]:
        """Return what to show, in order."""
        return ()

    def to_dict(self) -> dict[str, Any]:
        """Return the same for programs: plain numbers, no units in words."""
        return {}

    def __repr__(self) -> str:
        sections = self.sections()
        width = max((len(name) for section in sections for name, _ in section.rows), default=0)
        lines = [self.title]
        if self.problem:
            lines += [f"  {self.problem}"]
        for section in sections:
            lines += [section.title] if section.title else []
            lines += [f"  {name:<{width}}  {value}" for name, value in section.rows]
        return "\n".join(lines)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {"text/plain": repr(self), "text/html": self.html()}

    def html(self) -> str:
        """Return a table without script, images or colours; every value is escaped."""
        parts = [f'<table aria-label="{escape(self.title)}"><caption {_CELL}><b>{escape(self.title)}</b></caption>']
        if self.problem:
            parts.append(f'<tr><td colspan="2" role="alert" {_CELL}>⚠ {escape(self.problem)}</td></tr>')
        for section in self.sections():
            if section.title:
                parts.append(f'<tr><th colspan="2" scope="rowgroup" {_CELL}>{escape(section.title)}</th></tr>')
            parts += [_row(name, value, section.share.get(name)) for name, value in section.rows]
        return "".join([*parts, "</table>"])

    def __rich__(self) -> Group:
        sections = self.sections()
        table = _Rows(sections)
        parts: list[RenderableType] = [Text(self.title, "italic"), table]
        if self.problem:
            table.add_row(Text("problem", "bold red"), Text(self.problem))
        for section in sections:
            if section.to_copy:
                table = _Rows(sections)
                commands = [Text(f"  {value}") for _, value in section.rows]
                parts += [Text(section.title, "bold"), *commands, table]
                continue
            if section.title:
                table.add_row(Text(section.title, "bold"), "")
            for name, value in section.rows:
                table.add_row(Text(f"  {name}", "dim"), Text(value))
        return Group(*(part for part in parts if not isinstance(part, _Rows) or part.row_count))


def _fitted(columns: Sequence[Column], most: int) -> list[int]:
    """Return how wide each column is to be: ``most`` together, or where not even that is enough, what words need."""
    widths = [
        max(column.min_width or 0, *(cell_len(str(one)) for one in (column.header, *column.cells)))
        for column in columns
    ]
    choices = [[_least(*one, whole) for one in zip(columns, widths, strict=True)] for whole in _WHOLE_WORDS]
    least = next((choice for choice in choices if sum(choice) <= most), choices[0])
    while sum(widths) > most and widths != least:
        widest = max((one for one, width in enumerate(widths) if width > least[one]), key=widths.__getitem__)
        widths[widest] -= 1
    return widths


def _least(column: Column, width: int, whole: int) -> int:
    """Return how narrow ``column`` may be: its heading's words stay whole, and so do words of ``whole`` letters."""
    if column.no_wrap:
        return width
    words = [*str(column.header).split(), *(word[:whole] for one in column.cells for word in str(one).split())]
    return max(column.min_width or 0, *map(cell_len, words), 1)


class _Rows(Columns):
    """Names and values below each other; what stands behind a command is as far to the right as what stands before."""

    def __init__(self, sections: Sequence[Section]) -> None:
        super().__init__()
        self.show_header = False
        shown = [section for section in sections if not section.to_copy]
        heads = [section.title for section in shown]
        names = [f"  {name}" for section in shown for name, _ in section.rows]
        self.add_column(min_width=max(map(len, [*heads, *names]), default=0))
        self.add_column()


def _row(name: str, value: str, share: float | None) -> str:
    bar = ""
    if share is not None:
        bar = f' <meter min="0" max="1" high="0.8" value="{share:.3f}">{share:.0%}</meter>'
    return f"<tr><td {_CELL}>{escape(name)}</td><td {_CELL}>{escape(value)}{bar}</td></tr>"
