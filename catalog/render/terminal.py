"""Rich output for the command line: links that can be clicked, tables that follow the window."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from catalog.render.document import (
    Block,
    Bullets,
    Code,
    Document,
    Drawing,
    Facts,
    Grid,
    Heading,
    Inline,
    Link,
    Mark,
    Paragraph,
    Run,
    word,
)

__all__ = ["render"]

_TONES = {"good": "green", "waiting": "dim", "doubt": "yellow", "plain": ""}


def render(document: Document) -> RenderableType:
    """Return ``document`` as something that a rich console prints."""
    parts: list[RenderableType] = [Text(document.title, style="bold")] if document.title else []
    parts += [part for block in document.blocks for part in _block(block)]
    return Group(*parts)


def _block(block: Block) -> Iterator[RenderableType]:
    match block:
        case Heading(text):
            yield Text(f"\n{text}", style="bold")
        case Paragraph(run, tone):
            yield _text(run, _TONES.get(tone, ""))
        case Bullets(items, tone):
            for item in items:
                line = Table.grid(padding=(0, 1))
                line.add_row("•", _text(item, _TONES.get(tone, "")))
                yield line
        case Facts(rows):
            facts = Table.grid(padding=(0, 2))
            facts.add_column(style="dim", no_wrap=True)
            for label, run in rows:
                facts.add_row(label, _text(run))
            yield Padding(facts, (1, 0, 0, 0))
        case Grid():
            yield _grid(block)
        case Code(text):
            # Plain, so that it can be copied and piped as it is.
            yield Padding(Text(text.rstrip("\n"), no_wrap=True, overflow="ignore"), (1, 0, 1, 0))
        case Drawing():
            return  # another block of the same document says it in words


def _grid(grid: Grid) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=grid.caption or None, caption_justify="left")
    for number, name in enumerate(grid.columns):
        table.add_column(name, style="bold" if number == 0 else "", overflow="fold")
    for row in grid.rows:
        table.add_row(*(_text(cell) for cell in row))
    return table


def _text(run: Run, style: str = "") -> Text:
    text = Text(style=style)
    parts = (run,) if isinstance(run, str) else run
    for part in parts:
        _append(text, part, alone=len(parts) == 1)
    return text


def _append(text: Text, part: Inline, *, alone: bool) -> None:
    match part:
        case Link(words, url, spelled):
            text.append(words, style=f"link {url}" if url else "")
            if spelled and words != url:
                text.append(f" <{url}>", style="dim")
        case Mark(_, tone):
            text.append(word(part, alone=alone), style=_TONES.get(tone, ""))
        case _:
            text.append(part)
