"""A run of many tests in few bytes: how many of each file passed, and the names of those that did not.

The record of a run on native CuPy is what other runs are held against; that of the CPU device says which of its tests
may fail.
"""

from __future__ import annotations

import gzip
from collections.abc import Collection
from pathlib import Path

import msgspec

from tests.cupy_suite import selection
from tests.cupy_suite.outcomes import ABOUT, PASSED, Outcome, complete_fraction
from tests.cupy_suite.sources import VERSION

RECORDS = Path(__file__).with_name("records")
#: The suite of files that mention what only native CuPy has.
PARTLY = "partly"


class Record(msgspec.Struct, frozen=True):
    """Outcomes of a subsample."""

    #: What it was run on: versions and device; by suite, when and of which commit.
    about: dict[str, str]
    #: Of each file, the subsample that was run to its end.
    fractions: dict[str, float]
    #: Tests of this subsample that passed, by file.
    passed: dict[str, int]
    #: Outcome of each test that did not pass.
    others: dict[str, str]
    #: Tests that passed beyond the subsample, by file, each as its place: workers do not stop at the same one.
    beyond: dict[str, list[int]] = {}
    #: Files that mention what only native CuPy has; see `selection.partly_files`.
    partly: list[str] = []

    def outcome(self, node_id: str) -> str:
        """Return the outcome of a test; "" if it was not run."""
        return self.others.get(node_id) or (PASSED if self.ran(node_id) else "")

    def ran(self, node_id: str) -> bool:
        """Tell whether a test was run."""
        file, _, name = node_id.partition("::")
        return node_id in self.others or (bool(name) and self.has(file, selection.position(node_id)))

    def has(self, file: str, position: int) -> bool:
        """Tell whether the test of ``file`` at ``position`` is in the subsample, or passed beyond it."""
        return position < self.fractions.get(file, 0.0) * selection.POSITIONS or position in self.beyond.get(file, ())

    def suite(self, file: str) -> str:
        """Return the suite of a file: "" for CuPy's own clean files, `PARTLY` for the others, else its top folder."""
        return PARTLY if file in self.partly else selection.suite(file)

    def passing(self, file: str) -> int:
        """Return how many tests of ``file`` passed."""
        return self.passed.get(file, 0) + len(self.beyond.get(file, ()))


def make(
    outcomes: Collection[Outcome], fraction: float, device: str, made: str = "", partly: Collection[str] = ()
) -> Record:
    """Return the record of a run on ``device`` that was to do the tests below ``fraction``: of those that it did.

    ``made`` says when and of which commit, ``partly`` which files are not clean.
    """
    versions = [outcome.why for outcome in outcomes if outcome.outcome == ABOUT]
    about = {"device": device, "versions": ", ".join([f"cupy {VERSION}", *versions])}
    fraction = complete_fraction(outcomes, fraction)
    fractions: dict[str, float] = {}
    passed: dict[str, int] = {}
    others: dict[str, str] = {}
    beyond: dict[str, list[int]] = {}
    for outcome in sorted(outcomes, key=lambda one: one.id):
        if not outcome.is_of_a_test:
            continue
        file = outcome.id.partition("::")[0]
        about |= {_made(PARTLY if file in partly else selection.suite(file)): made} if made else {}
        fractions[file] = fraction
        passed.setdefault(file, 0)
        if outcome.outcome != PASSED:
            others[outcome.id] = outcome.outcome
        elif selection.place(outcome.id) < fraction:
            passed[file] += 1
        else:
            beyond.setdefault(file, []).append(selection.position(outcome.id))
    beyond = {file: sorted(places) for file, places in beyond.items()}
    return Record(about, fractions, passed, others, beyond, sorted(partly))


def made(record: Record, suite: str) -> str:
    """Return when and of which commit a suite was run, "" if that is not known."""
    return record.about.get(_made(suite), "")


def _made(suite: str) -> str:
    return f"made {suite}".strip()


def joined(older: Record, newer: Record) -> Record:
    """Return both records in one; where both have a file, the newer counts."""
    fresh = newer.fractions
    kept = {test: outcome for test, outcome in older.others.items() if test.partition("::")[0] not in fresh}
    return Record(
        {**older.about, **newer.about},
        {**older.fractions, **fresh},
        {**older.passed, **newer.passed},
        dict(sorted({**kept, **newer.others}.items())),
        {**{file: places for file, places in older.beyond.items() if file not in fresh}, **newer.beyond},
        sorted({*older.partly, *newer.partly}),
    )


def part(whole: Record, suite: str) -> Record:
    """Return what a record holds of one suite; see `Record.suite`."""
    files = {file for file in whole.fractions if whole.suite(file) == suite}
    return Record(
        whole.about,
        {file: fraction for file, fraction in whole.fractions.items() if file in files},
        {file: count for file, count in whole.passed.items() if file in files},
        {test: outcome for test, outcome in whole.others.items() if test.partition("::")[0] in files},
        {file: places for file, places in whole.beyond.items() if file in files},
    )


def kept(name: str) -> Record:
    """Return a record of the repository: "native", "cuda" or "cpu"."""
    return read(RECORDS / f"{name}.json.gz")


def read(path: Path) -> Record:
    """Return the record in ``path``."""
    return msgspec.json.decode(gzip.decompress(path.read_bytes()), type=Record)


def write(path: Path, record: Record) -> None:
    """Write ``record``; the same record gives the same bytes."""
    path.write_bytes(gzip.compress(msgspec.json.encode(record), 9, mtime=0))
