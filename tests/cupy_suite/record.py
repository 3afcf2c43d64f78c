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


class Record(msgspec.Struct, frozen=True):
    """Outcomes of a subsample."""

    #: What it was run on: versions and device.
    about: dict[str, str]
    #: Of each file, the subsample that was run.
    fractions: dict[str, float]
    #: Tests that passed, by file.
    passed: dict[str, int]
    #: Outcome of each test that did not pass.
    others: dict[str, str]

    def outcome(self, node_id: str) -> str:
        """Return the outcome of a test; "" if it was not run."""
        file = node_id.partition("::")[0]
        if selection.place(node_id) >= self.fractions.get(file, 0.0):
            return ""
        return self.others.get(node_id, PASSED)


def make(outcomes: Collection[Outcome], fraction: float, device: str) -> Record:
    """Return the record of a run on ``device`` that was to do the tests below ``fraction``: of those that it did."""
    versions = [outcome.why for outcome in outcomes if outcome.outcome == ABOUT]
    about = {"device": device, "versions": ", ".join([f"cupy {VERSION}", *versions])}
    fraction = complete_fraction(outcomes, fraction)
    fractions: dict[str, float] = {}
    passed: dict[str, int] = {}
    others: dict[str, str] = {}
    for outcome in sorted(outcomes, key=lambda one: one.id):
        file = outcome.id.partition("::")[0]
        if not outcome.is_of_a_test or selection.place(outcome.id) >= fraction:
            continue
        fractions[file] = fraction
        passed[file] = passed.get(file, 0) + (outcome.outcome == PASSED)
        if outcome.outcome != PASSED:
            others[outcome.id] = outcome.outcome
    return Record(about, fractions, passed, others)


def joined(older: Record, newer: Record) -> Record:
    """Return both records in one; where both have a file, the newer counts."""
    fresh = newer.fractions
    kept = {test: outcome for test, outcome in older.others.items() if test.partition("::")[0] not in fresh}
    return Record(
        {**older.about, **newer.about},
        {**older.fractions, **fresh},
        {**older.passed, **newer.passed},
        dict(sorted({**kept, **newer.others}.items())),
    )


def part(whole: Record, suite: str) -> Record:
    """Return what a record holds of one suite, by its top folder; "" for CuPy's own tests."""
    return Record(
        whole.about,
        {file: fraction for file, fraction in whole.fractions.items() if selection.suite(file) == suite},
        {file: count for file, count in whole.passed.items() if selection.suite(file) == suite},
        {test: outcome for test, outcome in whole.others.items() if selection.suite(test) == suite},
    )


def read(path: Path) -> Record:
    """Return the record in ``path``."""
    return msgspec.json.decode(gzip.decompress(path.read_bytes()), type=Record)


def write(path: Path, record: Record) -> None:
    """Write ``record``; the same record gives the same bytes."""
    path.write_bytes(gzip.compress(msgspec.json.encode(record), 9, mtime=0))
