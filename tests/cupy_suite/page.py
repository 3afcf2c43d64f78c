"""The page of the documentation that says how many of CuPy's own tests pass; made from the records."""

from __future__ import annotations

from pathlib import Path

from tests.cupy_suite import comparison, record
from tests.cupy_suite.record import Record

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "conformance.md"
RECORDS = Path(__file__).with_name("records")

_HEAD = """\
# Conformance: CuPy's own tests

CuPy's tests are run unmodified, with `import cupy` as a notebook has it: client, pool, executor, device. So are the
tests of the array API standard, by way of array-api-compat and with 20 examples each, CuPy's examples that need one
GPU, and the prompts of CuPy's user guide. Made by
`python -m tests.cupy_suite table` from the records in `tests/cupy_suite/records/`; how such a run is made is told in
[Run CuPy's tests](../how-to/run-cupys-tests.md). "Clean" files are those that never mention what only native CuPy has:
its private modules, its CUDA bindings, raw pointers, mocks of its own functions.
"""

_SUITES = {
    "": "CuPy's own tests",
    "array_api_tests": "The tests of the array API standard",
    "examples": "CuPy's examples",
    "user_guide": "CuPy's user guide",
}


def text() -> str:
    """Return the page."""
    native = _kept("native")
    parts = [_HEAD]
    for name, title in (("cuda", "On a GPU"), ("cpu", "On the CPU device")):
        here = _kept(name)
        if here is not None:
            parts.append(_section(title, name, native, here))
    return "\n".join(parts)


def _kept(name: str) -> Record | None:
    path = RECORDS / f"{name}.json.gz"
    return record.read(path) if path.exists() else None


def _section(title: str, device: str, native: Record | None, here: Record) -> str:
    held = (
        f"held against native CuPy on {native.about['device']}"
        if native
        else "every test that is neither skipped nor expected to fail by CuPy itself counts as one that passes natively"
    )
    lines = [f"## {title}", "", f"Run on {here.about['device']} with {here.about['versions']};", f"{held}.", ""]
    for suite, name in _SUITES.items():
        some = record.part(here, suite)
        if some.fractions:
            lines += [f"### {name}", "", *_table(device, native, some), ""]
    return "\n".join(lines)


def _table(device: str, native: Record | None, here: Record) -> list[str]:
    found = comparison.compare_records(native, here)
    parts: dict[float, list[str]] = {}
    for file, fraction in here.fractions.items():
        if fraction < 1:
            parts.setdefault(fraction, []).append(f"`{file.rpartition('/')[2]}`")
    lines = [f"Of {', '.join(files)} a subsample of {100 * part:.0f} %." for part, files in sorted(parts.items())]
    lines += ["", comparison.table(found), ""] if lines else [comparison.table(found), ""]
    reasons = found.why(comparison.known_differences(device))
    known = {why: tests for why, tests in reasons.items() if why}
    if known:
        lines += ["| tests | known difference |", "|---:|---|"]
        lines += [f"| {len(tests)} | {why} |" for why, tests in sorted(known.items(), key=lambda one: -len(one[1]))]
        lines.append("")
    aside = found.why_not_counted(comparison.known_differences(device))
    if aside:
        lines += ["| not counted | why they fail on native CuPy too |", "|---:|---|"]
        lines += [f"| {len(tests)} | {why} |" for why, tests in sorted(aside.items(), key=lambda one: -len(one[1]))]
        lines.append("")
    return [*lines, f"Not explained: {len(reasons.get('', []))}."]
