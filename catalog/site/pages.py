"""Every page and download of the catalogue's site, by its path below the documentation's folder.

Pages are Markdown with the blocks of the catalogue's own documents as HTML, so that a page says exactly what
``%catalog`` says. Headings stay Markdown: they get anchors and a place in the table of contents.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

import catalog
from catalog.entry import System
from catalog.errors import NothingFound
from catalog.loader import entries
from catalog.paths import PACKAGE
from catalog.relations import KINDS, related
from catalog.render import html
from catalog.render.document import Block, Code, Document, Heading
from catalog.show import system_document
from catalog.site import exports, facets, matrix
from catalog.taxonomy import taxonomy

__all__ = ["SCRIPT", "STYLE", "markdown", "pages"]

ROOT = "catalogue"
STYLE = f"{ROOT}/catalogue.css"
SCRIPT = f"{ROOT}/facets.js"
_HERE = PACKAGE / "site"


def pages() -> dict[str, str]:
    """Return the text of every generated file by path."""
    systems = list(entries().values())
    found = {
        "index.md": facets.page(systems),
        "matrix.md": matrix.page(systems),
        "quantities.md": _quantities(),
        "verdicts.md": _verdicts(),
        "who.md": _who(),
        "timeline.md": _timeline(),
        "data.md": exports.page(),
        **{f"systems/{system.id}.md": _system(system) for system in systems},
        **{f"data/{name}": text for name, text in exports.files(systems).items()},
        "catalogue.css": html.style() + (_HERE / "site.css").read_text(encoding="utf-8"),
        "facets.js": (_HERE / "facets.js").read_text(encoding="utf-8"),
    }
    return {f"{ROOT}/{path}": text for path, text in found.items()}


def markdown(title: str, lead: str, blocks: Iterable[Block], depth: int = 2) -> str:
    """Return a page: headings as Markdown, everything between them as HTML."""
    parts = [f"# {title}", lead] if lead else [f"# {title}"]
    waiting: list[Block] = []
    for block in [*blocks, Heading("")]:
        if not isinstance(block, Heading):
            waiting.append(block)
            continue
        if waiting:
            parts.append(html.fragment(waiting))
            waiting = []
        if block.text:
            parts.append(f"{'#' * depth} {block.text}")
    return "\n\n".join(parts) + "\n"


def _system(system: System) -> str:
    document = system_document(system)
    names = entries()
    near = sorted({(KINDS[edge.kind], edge.target) for edge in related(system.id)})
    links = "".join(f'<li>{escape(kind)} <a href="../{to}/">{escape(names[to].name)}</a></li>' for kind, to in near)
    beside = f'\n## Beside it\n\n<div class="gpu-catalogue"><ul>{links}</ul></div>\n' if links else ""
    cite: tuple[Block, ...] = (Heading("BibTeX"), Code(catalog.cite(system.id).bibtex))
    body = markdown(escape(system.name), f"*{escape(document.title)}*", (*document.blocks, *cite))
    return body + beside


def _quantities() -> str:
    blocks: list[Block] = []
    for measure in taxonomy().measures.values():
        try:
            drawn = catalog.plot(measure.id)
        except NothingFound:
            continue
        blocks += [Heading(measure.name.capitalize()), *drawn.document().blocks]
    lead = (
        "The verified results of all systems, a figure per measure. Each number stands as its source states it, bounds "
        "included, under conditions that differ: the tables below each figure say which. A number near another is no "
        "ranking."
    )
    return markdown("Quantities", lead, blocks)


def _verdicts() -> str:
    lead = (
        "What systems claim or promise, and what this project's benchmarks recorded. A verdict follows from the newest "
        "record and holds for what this pool carries under its own conditions, not for the original system."
    )
    return _wide(markdown("Found here", lead, catalog.verdicts().document().blocks))


def _who() -> str:
    lead = (
        "Figures that the authors of one system published of another, or of their own against another in the catalogue."
    )
    return _wide(markdown("Who measured whom", lead, catalog.measurements().document().blocks))


def _timeline() -> str:
    documents: dict[str, Document] = {
        "Over the years": catalog.timeline().document(),
        "Who builds on whom": catalog.graph().document(),
    }
    blocks = [block for title, document in documents.items() for block in (Heading(title), *document.blocks)]
    return _wide(markdown("Timeline", "", blocks))


def _wide(page: str) -> str:
    """Return the page without its table of contents, whose room a table or a figure takes."""
    return f"---\nhide: [toc]\n---\n\n{page}"
