"""The catalogue as files for other programs: CSV, JSON, BibTeX and LaTeX."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from catalog.citations import Citations, escaped
from catalog.entry import System
from catalog.field import field, fields
from catalog.measured import Measured
from catalog.quantities import Claims
from catalog.render.document import plain
from catalog.verdict import Verdicts

__all__ = ["files", "page"]

_LATEX = ("year", "venue", "category", "sharing", "memory_isolation", "performance_isolation", "transparency")


def files(systems: Sequence[System]) -> dict[str, str]:
    """Return the text of every download by name."""
    return {
        "systems.csv": _csv(_system_rows(systems)),
        "claims.csv": _csv(_flat(Claims.of(systems).records())),
        "verdicts.csv": _csv(_verdict_rows(systems)),
        "catalogue.json": json.dumps([msgspec.to_builtins(each) for each in systems], indent=1, ensure_ascii=False),
        "catalogue.bib": Citations(systems).bibtex,
        "systems.tex": _latex(systems),
    }


def page() -> str:
    """Return the page that offers the downloads."""
    return """\
# As data

| file | what |
|---|---|
| [systems.csv](data/systems.csv) | one row per system, one column per field; several values parted by semicolons |
| [claims.csv](data/claims.csv) | one row per verified claim: value, unit, form, ratio, conditions, sources |
| [verdicts.csv](data/verdicts.csv) | one row per verdict: what is claimed, and the newest figure with its record |
| [catalogue.json](data/catalogue.json) | the entries whole, what is unverified marked so: [schema][schema] |
| [catalogue.bib](data/catalogue.bib) | every publication, BibTeX |
| [systems.tex](data/systems.tex) | a table for LaTeX (booktabs, longtable) that cites the keys of `catalogue.bib` |

To cite the catalogue itself there is a `CITATION.cff` at the root of the repository. In Python the same is
`catalog.systems().to_pandas()`, `catalog.claims().records()` and `catalog.cite().bibtex`.

[schema]: ../reference/catalogue.schema.json
"""


def _system_rows(systems: Iterable[System]) -> list[dict[str, Any]]:
    names = [name for name in fields() if "." not in name]
    return [{name: "; ".join(str(value) for value in field(name).values(each)) for name in names} for each in systems]


def _verdict_rows(systems: Iterable[System]) -> list[dict[str, Any]]:
    """Return the verdicts with the newest figure beside them: its median, its runs, hardware, commit and file."""
    nothing = dict.fromkeys(name for name in Measured.__struct_fields__ if name not in {"system", "claim"})
    rows = []
    for record in Verdicts(systems).records():
        figure = {f"measured_{name}": (record["measured"] or nothing)[name] for name in nothing}
        rows.append({**{name: value for name, value in record.items() if name not in {"measured", "runs"}}, **figure})
    return _flat(rows)


def _flat(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            name: "; ".join(map(str, value)) if isinstance(value, (list, tuple)) else value
            for name, value in record.items()
        }
        for record in records
    ]


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    out = io.StringIO()
    columns = dict.fromkeys(name for row in rows for name in row)
    writer = csv.DictWriter(out, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _latex(systems: Iterable[System]) -> str:
    heads = " & ".join(["system", *(escaped(field(name).label) for name in _LATEX)])
    rows = [
        " & ".join(
            [
                f"{escaped(each.name)}~\\cite{{{each.publications[0].key}}}",
                *(escaped(plain(field(name).brief(each))) for name in _LATEX),
            ]
        )
        for each in systems
    ]
    lines = [f"{row} \\\\" for row in rows]
    top = ["% \\usepackage{booktabs,longtable}", f"\\begin{{longtable}}{{{'l' * (len(_LATEX) + 1)}}}", "\\toprule"]
    return "\n".join([*top, f"{heads} \\\\", "\\midrule", "\\endhead", *lines, "\\bottomrule", "\\end{longtable}", ""])
