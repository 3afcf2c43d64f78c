"""The page of the documentation that says how suites of other libraries fare; made from the records."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.third_party import catalogue, differences, record
from tests.third_party.differences import Difference
from tests.third_party.record import Cost, Record

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "third-party.md"

_HEAD = """\
# Suites of other libraries

Tests of libraries that use CuPy, unmodified, with `import cupy` as a notebook has it: client, pool, executor, device.
Made by `python -m tests.third_party table` from the records in `tests/third_party/records/`; how such a run is made is
told in [Run suites of other libraries](../how-to/run-other-suites.md). What counts are the tests that native CuPy
passes. Where no native run was made beside, a failure that native CuPy has too is left out by its reason, which was
found by reading and by asking [native CuPy without a GPU](../how-to/ask-native-cupy.md).
"""
_KINDS = {
    "native": "Native CuPy fails it too; not counted.",
    "device": "The CPU device has it not.",
    "limit": "Refused, in so many words.",
    "defect": "To be mended.",
    "": "Not explained.",
}


def text() -> str:
    """Return the page."""
    fields = {entry.name: entry.field for entry in catalogue.read().values()}
    kept = record.read_all()
    lines = [_HEAD, "| suite | field | counted | pass | percent |", "|---|---|---:|---:|---:|"]
    lines += [_row(f"{one.name} {one.version}", fields.get(one.name, ""), [one]) for one in kept]
    lines += [_row("**all**", "", kept), ""]
    lines += _costs(kept)
    for one in kept:
        lines += _section(one)
    return "\n".join(lines).rstrip() + "\n"


def counted(kept: Record) -> int:
    """Return how many tests of a record native CuPy passes."""
    return kept.passed + sum(_kind(kept, test) != "native" for test in kept.failed)


def _kind(kept: Record, test: str) -> str:
    found = differences.of(kept.name, test, kept.failed[test])
    return found.kind if found else ""


def _row(name: str, field: str, some: list[Record]) -> str:
    of, passed = sum(map(counted, some)), sum(one.passed for one in some)
    return f"| {name} | {field} | {of:,} | {passed:,} | {100 * passed / of if of else 100:.2f} |"


def _costs(kept: list[Record]) -> list[str]:
    """Return the table of what the suites cost, of those for which there is an earlier run."""
    known = {one.name: one.cost for one in kept if one.cost and one.cost.earlier}
    if not known:
        return []
    earlier = ", ".join(sorted({cost.earlier for cost in known.values()}))
    lines = [
        "## Round trips", "",
        f"Ops of the tests that pass now and passed earlier ({earlier}), and those of them whose answer was waited",
        "for: values that tests read to look at them, and what is not [inferred](round-trips.md).", "",
        "| suite | ops earlier | round trips earlier | ops | round trips | fewer |", "|---|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    lines += [_cost(name, [cost]) for name, cost in known.items()]
    return [*lines, _cost("**all**", list(known.values())), ""]


def _cost(name: str, some: list[Cost]) -> str:
    before, now = sum(one.earlier_round_trips for one in some), sum(one.round_trips for one in some)
    ops_before, ops = sum(one.earlier_ops for one in some), sum(one.ops for one in some)
    fewer = f"{100 * (1 - now / before):.0f} %" if before else ""
    return f"| {name} | {ops_before:,} | {before:,} | {ops:,} | {now:,} | {fewer} |"


def _section(kept: Record) -> list[str]:
    beside = " Native CuPy was run beside." if kept.is_beside_native else ""
    lines = [f"## {kept.name} {kept.version}", "", f"Run on the {kept.about}.{beside}", ""]
    reasons: Counter[Difference | None] = Counter(differences.of(kept.name, *one) for one in kept.failed.items())
    if reasons:
        lines += ["| tests | | reason |", "|---:|---|---|"]
        for one, count in reasons.most_common():
            lines.append(f"| {count} | {_KINDS[one.kind if one else '']} | {one.reason if one else ''} |")
        lines.append("")
    return lines
