"""Plain text: for terminals, logs of executed notebooks, and screen readers. Nothing is left out."""

from __future__ import annotations

import textwrap

from catalog.render.document import (
    Block,
    Bullets,
    Code,
    Document,
    Drawing,
    Facts,
    Grid,
    Heading,
    Link,
    Paragraph,
    Run,
    plain,
    word,
)

__all__ = ["WIDTH", "render", "render_grid"]

#: Columns of a text that nobody told how wide it may be.
WIDTH = 110

_GAP = 2
#: A column is never narrower than its longest word, up to this; longer ones (addresses) are broken.
_LONGEST_WORD = 24


def render(document: Document, width: int = WIDTH) -> str:
    """Return ``document`` as text of at most ``width`` columns (a single longer word excepted)."""
    parts = [_title(document.title, width)] if document.title else []
    parts += [_block(block, width) for block in document.blocks]
    return "\n\n".join(part for part in parts if part)


def _title(title: str, width: int) -> str:
    lines = textwrap.wrap(title, width) or [""]
    return "\n".join([*lines, "=" * max(map(len, lines))])


def _block(block: Block, width: int) -> str:
    match block:
        case Heading(text):
            return f"{text}\n{'-' * len(text)}"
        case Paragraph(run):
            return _wrap(_spelled(run), width)
        case Bullets(items):
            return "\n".join(_wrap(_spelled(item), width, first="- ", rest="  ") for item in items)
        case Facts(rows):
            return _facts(rows, width)
        case Grid():
            return render_grid(block, width)
        case Code(text):
            return textwrap.indent(text.rstrip("\n"), "    ")
        case Drawing():
            return ""  # another block of the same document says it in words


def _wrap(text: str, width: int, *, first: str = "", rest: str = "") -> str:
    return textwrap.fill(
        text, width, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def _spelled(run: Run) -> str:
    """Return the words with the addresses behind them, since text cannot be clicked."""
    if isinstance(run, str):
        return run
    return "".join(
        f"{part.text} <{part.url}>"
        if isinstance(part, Link) and part.spelled and part.url != part.text
        else word(part, alone=len(run) == 1)
        for part in run
    )


def _facts(rows: tuple[tuple[str, Run], ...], width: int) -> str:
    label_width = max(len(label) for label, _ in rows) + _GAP
    return "\n".join(
        _wrap(_spelled(run), width, first=label.ljust(label_width), rest=" " * label_width) for label, run in rows
    )


def render_grid(grid: Grid, width: int = WIDTH) -> str:
    """Return a table with its columns wrapped so that it fits ``width``."""
    cells = [[plain(cell) for cell in row] for row in grid.rows]
    widths = _column_widths([list(grid.columns), *cells], width)
    lines = [grid.caption, ""] if grid.caption else []
    lines += _row(list(grid.columns), widths)
    lines.append(" ".ljust(_GAP).join("-" * column for column in widths))
    for cell in cells:
        lines += _row(cell, widths)
    return "\n".join(line.rstrip() for line in lines)


def _column_widths(rows: list[list[str]], width: int) -> list[int]:
    """Give every column what it needs, then take from the widest until the table fits."""
    columns = list(zip(*rows, strict=True))
    widths = [max(1, *map(len, column)) for column in columns]
    words = [max((len(word) for cell in column for word in cell.split()), default=1) for column in columns]
    least = [min(word, _LONGEST_WORD) for word in words]
    room = width - _GAP * (len(columns) - 1)
    while sum(widths) > room:
        widest = max(range(len(widths)), key=lambda i: widths[i] - least[i])
        if widths[widest] <= least[widest]:
            break
        widths[widest] -= 1
    return widths


def _row(cells: list[str], widths: list[int]) -> list[str]:
    wrapped = [
        textwrap.wrap(cell, column, break_on_hyphens=False) or [""] for cell, column in zip(cells, widths, strict=True)
    ]
    height = max(map(len, wrapped))
    padded = [lines + [""] * (height - len(lines)) for lines in wrapped]
    return [
        "  ".join(line.ljust(column) for line, column in zip(lines, widths, strict=True))
        for lines in zip(*padded, strict=True)
    ]
