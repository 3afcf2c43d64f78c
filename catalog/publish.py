"""Writes what is published of the catalogue's shape: the JSON Schema of an entry and the generated reference.

``python -m catalog.publish`` writes, ``python -m catalog.publish --check`` says what is out of date.
"""

from __future__ import annotations

import json
import re
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from catalog.commands import COMMANDS
from catalog.field import fields
from catalog.paths import INSTALLATION
from catalog.relations import KINDS, REVERSE, SYMMETRIC
from catalog.taxonomy import taxonomy
from catalog.validation import adapter
from catalog.values import SourceKind

__all__ = ["main", "outdated", "published"]

_REFERENCE = "docs/reference"
_SCHEMA = f"{_REFERENCE}/catalogue.schema.json"
_PAGE = f"{_REFERENCE}/catalogue.md"
_PART = re.compile(r"(<!-- generated: (?P<name>[\w-]+) -->\n).*?(<!-- end of generated -->)", re.DOTALL)


def published(root: Path = INSTALLATION) -> dict[str, str]:
    """Return the published files by path below ``root`` with the text that each should have."""
    page = (root / _PAGE).read_text(encoding="utf-8")
    parts = {
        "commands": _commands,
        "fields": _fields,
        "entry": _entry,
        "taxonomy": _taxonomy,
        "measures": _measures,
        "relations": _relations,
        "source-kinds": _source_kinds,
    }

    def filled(match: re.Match[str]) -> str:
        lines = "\n".join(parts[match["name"]]())
        return f"{match[1]}\n{lines}\n\n{match[3]}"

    return {
        _SCHEMA: json.dumps(schema(), indent=2, ensure_ascii=False) + "\n",
        _PAGE: _PART.sub(filled, page),
    }


def outdated(root: Path = INSTALLATION) -> list[str]:
    """Return the published files that do not have the text that they should have."""
    return [
        name
        for name, text in published(root).items()
        if not (root / name).is_file() or (root / name).read_text(encoding="utf-8") != text
    ]


def schema() -> dict[str, Any]:
    """Return the JSON Schema of one entry; editors complete and check TOML by it."""
    found = adapter().json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **found,
        "title": "An entry of the catalogue of GPU disaggregation and sharing systems",
    }


def _commands() -> Iterator[str]:
    yield from _table(("sub-command", "gives"), ((f"`{name}`", about) for name, about in COMMANDS.items()))


def _fields() -> Iterator[str]:
    rows = (
        (f"`{each.name}`", each.label, each.about, ", ".join(f"`{term}`" for term in each.terms if len(each.terms) < 8))
        for each in fields().values()
    )
    yield from _table(("field", "label", "what", "values"), rows)


def _entry() -> Iterator[str]:
    """Yield a table per class of the entry, from the published schema, so that the two cannot differ."""
    found = schema()
    classes = {"System": found, **found["$defs"]}
    for name, about in classes.items():
        required = set(about.get("required", ()))
        first, _, rest = str(about["description"]).partition("\n\n")
        yield f"### {name}"
        yield ""
        yield " ".join(f"{first} {rest}".split())
        yield ""
        rows = (
            (f"`{field}`", _type(of), "yes" if field in required else "", str(of.get("description", "")))
            for field, of in about["properties"].items()
        )
        yield from _table(("field", "type", "required", "what"), rows)
        yield ""


def _type(of: dict[str, Any]) -> str:
    """Return how a field's type reads."""
    if "$ref" in of:
        return str(of["$ref"]).rpartition("/")[2]
    if "enum" in of:
        return ", ".join(f"`{value}`" for value in of["enum"])
    if "anyOf" in of:
        return " or ".join(_type(one) for one in of["anyOf"] if one.get("type") != "null")
    if of.get("type") == "array":
        return f"list of {_type(of['items'])}"
    names = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
    return names.get(str(of.get("type")), str(of.get("type")))


def _taxonomy() -> Iterator[str]:
    for dimension in taxonomy().dimensions.values():
        yield f"### {dimension.name}"
        yield ""
        yield f"`{dimension.id}`: {dimension.description}"
        yield ""
        yield from _table(
            ("term", "name", "what", "also found as", "from"),
            (
                (
                    f"`{term.id}`",
                    term.name,
                    term.description,
                    ", ".join(term.synonyms),
                    "CSUR 2017" if term.survey else "",
                )
                for term in dimension.terms.values()
            ),
        )
        yield ""


def _measures() -> Iterator[str]:
    words = taxonomy()
    yield from _table(
        ("measure", "what", "better", "a bare number in a filter is"),
        (
            (f"`{each.id}`", each.description, each.better, _bare(each.unit, each.change))
            for each in words.measures.values()
        ),
    )
    yield ""
    yield from _table(
        ("unit", "name", "measures", "in base units"),
        ((f"`{unit.id}`", unit.name, unit.measures, f"{unit.factor:g}") for unit in words.units.values()),
    )


def _bare(unit: str, change: bool) -> str:
    if not unit:
        return ""
    return f"{unit} more than the baseline" if change else "so many times the baseline" if unit == "x" else unit


def _relations() -> Iterator[str]:
    stated = [kind for kind in KINDS if kind not in REVERSE.values()]
    rows = (
        (f"`{kind}`", KINDS[kind], "itself" if kind in SYMMETRIC else f"`{REVERSE[kind]}`: {KINDS[REVERSE[kind]]}")
        for kind in stated
    )
    yield from _table(("relation", "reads", "from the other side"), rows)


def _source_kinds() -> Iterator[str]:
    yield ", ".join(f"`{kind}`" for kind in typing.get_args(SourceKind)) + "."


def _table(heads: tuple[str, ...], rows: typing.Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        cells = (" ".join(cell.replace("|", "\\|").replace("``", "`").split()) for cell in row)
        yield f"| {' | '.join(cells)} |"


def main(arguments: list[str] | None = None) -> int:
    """Write the published files, or with ``--check`` name those that are out of date; 1 if there are any."""
    words = sys.argv[1:] if arguments is None else arguments
    stale = outdated()
    if words == ["--check"]:
        sys.stdout.writelines(f"{name} is out of date: run python -m catalog.publish\n" for name in stale)
        return 1 if stale else 0
    for name, text in published().items():
        (INSTALLATION / name).write_text(text, encoding="utf-8")
    sys.stdout.writelines(f"wrote {name}\n" for name in stale)
    return 0


if __name__ == "__main__":
    sys.exit(main())
