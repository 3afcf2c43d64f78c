"""HTML for notebooks: self-contained, no script, at home in light and dark themes, everything escaped.

Colours are JupyterLab's own variables. Elsewhere (a static export, another front end) the fall-backs are the
browser's system colours, which follow the reader's scheme too.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from html import escape

from catalog.paths import PACKAGE
from catalog.render import svg
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
)

__all__ = ["fragment", "render", "style"]


def render(document: Document) -> str:
    """Return ``document`` as one ``<div>`` that carries its own style."""
    title = f"<h3>{escape(document.title)}</h3>" if document.title else ""
    body = "".join(_block(block) for block in document.blocks)
    return f'<div class="gpu-catalogue"><style>{style()}</style>{title}{body}</div>'


def fragment(blocks: Iterable[Block]) -> str:
    """Return ``blocks`` as one ``<div>`` for a page that has the style already."""
    return f'<div class="gpu-catalogue">{"".join(_block(block) for block in blocks)}</div>'


@functools.cache
def style() -> str:
    """Return the style sheet without its comments and line ends; it travels with every output."""
    lines = (PACKAGE / "render" / "style.css").read_text(encoding="utf-8").splitlines()
    return "".join(line.strip() for line in lines if not line.startswith("/*"))


def _block(block: Block) -> str:
    match block:
        case Heading(text):
            return f"<h4>{escape(text)}</h4>"
        case Paragraph(run, tone):
            return f"<p{_class(tone)}>{_run(run)}</p>"
        case Bullets(items, tone):
            return f"<ul{_class(tone)}>{''.join(f'<li>{_run(item)}</li>' for item in items)}</ul>"
        case Facts(rows):
            return f"<dl>{''.join(f'<dt>{escape(label)}</dt><dd>{_run(run)}</dd>' for label, run in rows)}</dl>"
        case Grid():
            return _grid(block)
        case Code(text):
            return f"<pre><code>{escape(text)}</code></pre>"
        case Drawing(scene):
            return f"<figure>{svg.render(scene)}</figure>"


def _class(tone: str) -> str:
    return f' class="{escape(tone)}"' if tone else ""


def _grid(grid: Grid) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in grid.columns)
    body = "".join(f"<tr>{_row(row)}</tr>" for row in grid.rows)
    caption = f"<caption>{escape(grid.caption)}</caption>" if grid.caption else ""
    return f'<div class="scroll"><table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _row(row: tuple[Run, ...]) -> str:
    first, *rest = row
    return f'<th scope="row">{_run(first)}</th>' + "".join(f"<td>{_run(cell)}</td>" for cell in rest)


def _run(run: Run) -> str:
    return escape(run) if isinstance(run, str) else "".join(_inline(part) for part in run)


def _inline(part: Inline) -> str:
    match part:
        case Link(text, url) if url.startswith(("https://", "http://")):
            return f'<a href="{escape(url)}" target="_blank" rel="noopener noreferrer">{escape(text)}</a>'
        case Link(text):
            return escape(text)
        case Mark(text, tone):
            return f'<span class="mark {escape(tone)}">{escape(text)}</span>'
        case _:
            return escape(part)
