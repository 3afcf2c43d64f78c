"""Systems against features: ✓ where a system stands, ✗ where it stands elsewhere, ? where nothing read says."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from catalog.entry import Placement, System
from catalog.taxonomy import Dimension, taxonomy

__all__ = ["mark", "page"]

_LEAD = """\
One table per question of the taxonomy. ✓: stands there. ✗: stands elsewhere. ?: nothing that was read says. –: does not
apply. A sign in brackets rests on a source or an inference of low confidence; pointing at it shows the detail.
"""


def mark(placement: Placement, term: str) -> str:
    """Return the sign of one system for one term."""
    if placement.terms == ["not-stated"]:
        return "?"
    if placement.terms == ["not-applicable"]:
        return "–"
    sign = "✓" if term in placement.terms else "✗"
    return f"({sign})" if placement.confidence == "low" else sign


def page(systems: Sequence[System]) -> str:
    """Return the page with a table per dimension."""
    parts = ["---\nhide: [toc]\n---\n\n# Side by side", _LEAD]
    for dimension in taxonomy().dimensions.values():
        parts += [f"## {dimension.name}", dimension.description, _table(dimension, systems)]
    return "\n\n".join(parts) + "\n"


def _table(dimension: Dimension, systems: Sequence[System]) -> str:
    heads = "".join(
        f'<th scope="col" title="{escape(term.description)}"><span>{escape(term.name)}</span></th>'
        for term in dimension.terms.values()
    )
    rows = "".join(_row(dimension, system) for system in systems)
    head = f'<thead><tr><th scope="col">system</th>{heads}</tr></thead>'
    table = f'<table class="matrix">{head}<tbody>{rows}</tbody></table>'
    return f'<div class="gpu-catalogue"><div class="scroll">{table}</div></div>'


def _row(dimension: Dimension, system: System) -> str:
    placement: Placement = getattr(system.classification, dimension.id)
    cells = ""
    for term in dimension.terms:
        sign = mark(placement, term)
        kind = "yes" if "✓" in sign else "no" if "✗" in sign else "open"
        hint = f' title="{escape(placement.detail)}"' if placement.detail and kind == "yes" else ""
        cells += f'<td class="{kind}"{hint}>{sign}</td>'
    return f'<tr><th scope="row"><a href="../systems/{system.id}/">{escape(system.name)}</a></th>{cells}</tr>'
