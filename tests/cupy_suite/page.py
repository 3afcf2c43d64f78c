"""The page of the documentation that says how many of CuPy's own tests pass; made from the records."""

from __future__ import annotations

from pathlib import Path

from tests.cupy_suite import comparison, record, selection
from tests.cupy_suite.record import Record

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "conformance.md"
#: So many files or folders are not named one by one.
_MANY = 12

_HEAD = """\
# Conformance: CuPy's own tests

CuPy's tests are run unmodified, with `import cupy` as a notebook has it: client, pool, executor, device. So are the
tests of the array API standard, by way of array-api-compat and with 20 examples each, CuPy's examples that need one
GPU, and the prompts of CuPy's user guide. Made by
`python -m tests.cupy_suite table` from the records in `tests/cupy_suite/records/`; how such a run is made is told in
[Run CuPy's tests](../how-to/run-cupys-tests.md). "Clean" files are those that never mention what only native CuPy has:
its private modules, its CUDA bindings, raw pointers, mocks of its own functions. Of the others those are run as well
that are about arrays all the same; what some of their tests reach for is in no notebook. What counts are the
tests that native CuPy passes.
"""

_SUITES = {
    "": "CuPy's own tests: clean files",
    record.PARTLY: "CuPy's own tests: files that reach for what only native CuPy has",
    "array_api_tests": "The tests of the array API standard",
    "examples": "CuPy's examples",
    "user_guide": "CuPy's user guide",
}


def text() -> str:
    """Return the page."""
    native = record.kept("native")
    sections = (("cuda", "On a GPU"), ("cpu", "On the CPU device"))
    return "\n".join([_HEAD, *(_section(title, name, native, record.kept(name)) for name, title in sections)])


def _section(title: str, device: str, native: Record, here: Record) -> str:
    lines = [f"## {title}", "", f"Run on {_described(here)}.", f"Native CuPy was run on {_described(native)}.", ""]
    parts = {suite: (record.part(native, suite), record.part(here, suite)) for suite in _SUITES}
    parts = {suite: (there, some) for suite, (there, some) in parts.items() if some.fractions}
    lines += ["| suite | pass natively | pass here | percent |", "|---|---:|---:|---:|"]
    for suite, (there, some) in parts.items():
        total = comparison.compare_records(there, some).total
        lines.append(f"| {_SUITES[suite]} | {total.expected:,} | {total.passed:,} | {total.percent:.2f} |")
    for suite, (there, some) in parts.items():
        lines += ["", f"### {_SUITES[suite]}", "", *_table(device, there, some, suite)]
    return "\n".join([*lines, ""])


def _described(run: Record) -> str:
    return f"{run.about['device']}: {run.about['versions']}"


def _table(device: str, native: Record, here: Record, suite: str) -> list[str]:
    found = comparison.compare_records(native, here)
    lines = [f"Run here {record.made(here, suite)}."] if record.made(here, suite) else []
    lines += [f"Run natively {record.made(native, suite)}."] if record.made(native, suite) else []
    lines += _subsamples(here)
    if (only := comparison.not_run_natively(native, here)).expected:
        lines.append(f"Of {only.expected:,} further tests, which were not run natively, {only.passed:,} pass here.")
    lines += ["", comparison.table(found), ""] if lines else [comparison.table(found), ""]
    reasons = found.why(comparison.known_differences(device))
    known = {why: tests for why, tests in reasons.items() if why}
    if known:
        lines += ["| tests | known difference |", "|---:|---|"]
        lines += [f"| {len(tests)} | {why} |" for why, tests in sorted(known.items(), key=lambda one: -len(one[1]))]
        lines.append("")
    return [*lines, f"Not explained: {len(reasons.get('', []))}."]


def _subsamples(here: Record) -> list[str]:
    parts: dict[float, list[str]] = {}
    for file, fraction in here.fractions.items():
        if fraction < 1:
            parts.setdefault(fraction, []).append(file)
    return [f"Of {_named(files, here)} a subsample of {_size(files, here)} %." for _, files in sorted(parts.items())]


def _named(files: list[str], here: Record) -> str:
    if len(files) <= _MANY:
        return ", ".join(f"`{file.rpartition('/')[2]}`" for file in files)
    folders = sorted({selection.directory(file) for file in files})
    if len(folders) <= _MANY:
        return f"the {len(files)} files of {', '.join(folders)}"
    return "all files" if len(files) == len(here.fractions) else f"the other {len(files)} files"


def _size(files: list[str], here: Record) -> str:
    """Return how large the subsample of ``files`` is, in percent; what lies beyond its complete part is estimated."""
    fraction = here.fractions[files[0]]
    others = [selection.place(test) < fraction for test in here.others if test.partition("::")[0] in files]
    complete = sum(here.passed[file] for file in files) + sum(others)
    beyond = sum(map(here.passing, files)) + len(others) - complete
    if not beyond:
        return f"{100 * fraction:.0f}"
    return f"about {100 * fraction * (complete + beyond) / complete:.0f}"
