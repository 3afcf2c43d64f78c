"""Holds the outcomes of one side against those of native CuPy, directory by directory."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
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
    #: Whether these fail on native CuPy too. Of use where there is no run of native CuPy to tell.
    fails_natively: bool = False


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
    #: Tests that are known to fail natively too, of a comparison without a run of native CuPy.
    not_counted: list[Outcome] = field(default_factory=list)

    @property
    def total(self) -> Row:
        """All directories together."""
        rows = self.rows.values()
        return Row(sum(r.expected for r in rows), sum(r.passed for r in rows), sum(r.more for r in rows))

    def why(self, known: list[Known]) -> dict[str, list[Outcome]]:
        """Return the tests that differ by the known reason; those without one under ""."""
        return _by_reason(self.differing, known)

    def why_not_counted(self, known: list[Known]) -> dict[str, list[Outcome]]:
        """Return the tests that are not counted by the reason."""
        return _by_reason(self.not_counted, known)


def _by_reason(outcomes: Iterable[Outcome], known: list[Known]) -> dict[str, list[Outcome]]:
    reasons: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        reason = next((one.why for one in known if re.search(one.tests, outcome.id)), "")
        reasons.setdefault(reason, []).append(outcome)
    return reasons


def _fails_natively() -> re.Pattern[str]:
    known = msgspec.convert(tomllib.loads(KNOWN_FILE.read_text()), dict[str, list[Known]])["difference"]
    return re.compile("|".join(one.tests for one in known if one.fails_natively))


def uncollected(native: Mapping[str, Outcome], outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """Return an error for each test of native CuPy's run whose file could not even be collected on the other side."""
    broken = {outcome.id: outcome for outcome in outcomes.values() if outcome.is_of_a_test and "::" not in outcome.id}
    return {
        test: Outcome(test, "error", 0.0, broken[file].why)
        for test in native
        if (file := test.partition("::")[0]) in broken and test not in outcomes
    }


def compare(native: Callable[[str], str] | None, outcomes: Iterable[Outcome]) -> Comparison:
    """Compare.

    Parameters
    ----------
    native
        Gives the outcome of a test on native CuPy, "" for one that was not run there. Without it every test counts as
        one that passes natively unless it was skipped, is expected to fail by CuPy itself, or is known to.
    outcomes
        What the other side gave.
    """
    found = Comparison()
    failing = _fails_natively()
    for outcome in sorted(outcomes, key=lambda one: one.id):
        if not outcome.is_of_a_test:
            continue
        if native is None and outcome.outcome not in (PASSED, *NOT_EXPECTED) and failing.search(outcome.id):
            found.not_counted.append(outcome)
            continue
        if native is None:
            there = outcome.outcome if outcome.outcome in NOT_EXPECTED else PASSED
        else:
            there = native(outcome.id)
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


def compare_records(native: Record | None, here: Record) -> Comparison:
    """Do what `compare` does with what is kept of two runs, for the files and the subsample that both have."""
    found = Comparison()
    bad: dict[str, list[Outcome]] = {}
    failing = _fails_natively()
    for test, outcome in here.others.items():
        if native is None and outcome not in NOT_EXPECTED and failing.search(test):
            found.not_counted.append(Outcome(test, outcome))
        elif outcome not in NOT_EXPECTED if native is None else native.outcome(test) == PASSED:
            bad.setdefault(test.partition("::")[0], []).append(Outcome(test, outcome))
    for file in sorted(here.passed):
        if native is None:
            expected = here.passed[file] + len(bad.get(file, ()))
        elif native.fractions.get(file, 2.0) <= here.fractions[file]:
            expected = native.passed[file]
        else:
            continue
        row = found.rows.setdefault(selection.directory(file), Row())
        row.expected += expected
        row.passed += expected - len(bad.get(file, ()))
        row.more += max(here.passed[file] + len(bad.get(file, ())) - expected, 0)
        found.differing += bad.get(file, [])
    return found


def table(comparison: Comparison) -> str:
    """Return the rows as a table of Markdown."""
    lines = ["| directory | pass natively | pass here | percent | pass only here |", "|---|---:|---:|---:|---:|"]
    rows = sorted(comparison.rows.items())
    for name, row in [*rows, ("**all**", comparison.total)]:
        lines.append(f"| {name} | {row.expected:,} | {row.passed:,} | {row.percent:.2f} | {row.more:,} |")
    return "\n".join(lines)
