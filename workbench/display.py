"""Facts as people see them: complete plain text, a table in the notebook, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kernelproxy.session.amounts import (
    bytes_in_words as bytes_in_words,  # what shows facts writes amounts in the same words
)

#: Left-aligned, and no colours of its own: JupyterLab's theme gives those.
_CELL = 'style="text-align: left"'


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

    Columns of figures, which are those that are justified to the right, stay as wide as they are.
    """

    def __init__(self, *headings: str) -> None:
        super().__init__(*headings, box=None, padding=(0, 2, 0, 0), pad_edge=False)

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """Add a row, as rich does."""
        for column in self.columns:
            column.overflow = "fold"
            column.no_wrap |= column.justify == "right"
            column.min_width = max(map(cell_len, str(column.header).split()), default=column.min_width)
        super().add_row(*cells, **options)


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
