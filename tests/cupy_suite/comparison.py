"""Holds the outcomes of one side against those of native CuPy, directory by directory."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tests.cupy_suite import selection
from tests.cupy_suite.outcomes import NOT_EXPECTED, PASSED, Outcome
from tests.cupy_suite.record import Record

KNOWN_FILE = Path(__file__).with_name("known_differences.toml")


class Known(msgspec.Struct, frozen=True):
    """A kind of tests of which it is known why they differ."""

    #: A regular expression of node ids.
    tests: str
    why: str
    #: "" for both devices, else "cpu" or "cuda".
    device: str = ""


def known_differences(device: str, path: Path = KNOWN_FILE) -> list[Known]:
    """Return the known differences of a device."""
    found = msgspec.convert(tomllib.loads(path.read_text()), dict[str, list[Known]]).get("difference", [])
    return [known for known in found if known.device in ("", device)]


@dataclass
class Row:
    """One directory."""

    #: Tests that pass natively, and were run on the other side.
    expected: int = 0
    #: Of these, tests that pass there as well.
    passed: int = 0
    #: Tests that do not pass natively and pass there.
    more: int = 0

    @property
    def percent(self) -> float:
        """How many of the expected tests pass."""
        return 100.0 * self.passed / self.expected if self.expected else 100.0


@dataclass
class Comparison:
    """Rows by directory, and the tests that differ."""

    rows: dict[str, Row] = field(default_factory=dict)
    differing: list[Outcome] = field(default_factory=list)

    @property
    def total(self) -> Row:
        """All directories together."""
        rows = self.rows.values()
        return Row(sum(r.expected for r in rows), sum(r.passed for r in rows), sum(r.more for r in rows))

    def why(self, known: list[Known]) -> dict[str, list[Outcome]]:
        """Return the tests that differ by the known reason; those without one under ""."""
        reasons: dict[str, list[Outcome]] = {}
        for outcome in self.differing:
            reason = next((one.why for one in known if re.search(one.tests, outcome.id)), "")
            reasons.setdefault(reason, []).append(outcome)
        return reasons


def uncollected(native: Mapping[str, Outcome], outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """Return an error for each test of native CuPy's run whose file could not even be collected on the other side."""
    broken = {outcome.id: outcome for outcome in outcomes.values() if outcome.is_of_a_test and "::" not in outcome.id}
    return {
        test: Outcome(test, "error", 0.0, broken[file].why)
        for test in native
        if (file := test.partition("::")[0]) in broken and test not in outcomes
    }


def compare(native: Callable[[str], str], outcomes: Iterable[Outcome]) -> Comparison:
    """Compare.

    Parameters
    ----------
    native
        Gives the outcome of a test on native CuPy, "" for one that was not run there: it is not counted.
    outcomes
        What the other side gave.
    """
    found = Comparison()
    for outcome in sorted(outcomes, key=lambda one: one.id):
        there = native(outcome.id) if outcome.is_of_a_test else ""
        if not there:
            continue
        row = found.rows.setdefault(selection.directory(outcome.id), Row())
        if there == PASSED:
            row.expected += 1
            row.passed += outcome.outcome == PASSED
            if outcome.outcome != PASSED:
                found.differing.append(outcome)
        elif outcome.outcome == PASSED:
            row.more += 1
    return found


def compare_records(native: Record, here: Record) -> Comparison:
    """Do what `compare` does with what is kept of two runs, for the tests that both have."""
    found = Comparison()
    bad: dict[str, list[Outcome]] = {}
    more: Counter[str] = Counter()
    for test, outcome in here.others.items():
        if native.outcome(test) == PASSED:
            bad.setdefault(test.partition("::")[0], []).append(Outcome(test, outcome))
    for test in native.others:
        more[test.partition("::")[0]] += here.outcome(test) == PASSED
    for file in sorted(here.passed.keys() & native.passed):
        differing = bad.get(file, [])
        row = found.rows.setdefault(selection.directory(file), Row())
        passed = _passing_in_both(native, here, file, more[file], differing)
        row.expected += passed + len(differing)
        row.passed += passed
        row.more += more[file]
        found.differing += differing
    return found


def _passing_in_both(native: Record, here: Record, file: str, more: int, differing: Sequence[Outcome]) -> int:
    """Return how many tests of ``file`` pass in both runs.

    A record counts what passed of its subsample and knows the places of what passed beyond. So it is the run with the
    smaller subsample that is counted, less what only it passes: that is known by name.
    """
    if native.fractions[file] <= here.fractions[file]:
        only, counted, other = len(differing), native, here
    else:
        only, counted, other = more, here, native
    failed = {selection.position(test) for test in other.others if test.partition("::")[0] == file}
    beyond = sum(other.has(file, place) or place in failed for place in counted.beyond.get(file, ()))
    return counted.passed[file] + beyond - only


def not_run_natively(native: Record, here: Record) -> Row:
    """Return how many tests were run here only, skipped ones aside, and how many of these pass."""
    compared = compare_records(native, here).total
    passed = sum(map(here.passing, here.passed)) - compared.passed - compared.more
    failed = [kind for test, kind in here.others.items() if kind not in NOT_EXPECTED and not native.ran(test)]
    return Row(passed + len(failed), passed)


def table(comparison: Comparison) -> str:
    """Return the rows as a table of Markdown."""
    lines = ["| directory | pass natively | pass here | percent | pass only here |", "|---|---:|---:|---:|---:|"]
    rows = sorted(comparison.rows.items())
    for name, row in [*rows, ("**all**", comparison.total)]:
        lines.append(f"| {name} | {row.expected:,} | {row.passed:,} | {row.percent:.2f} | {row.more:,} |")
    return "\n".join(lines)
