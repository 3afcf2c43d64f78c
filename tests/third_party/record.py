"""What came of a run of one suite, in few bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from tests.cupy_suite.outcomes import ABOUT, NOT_EXPECTED, PASSED, Outcome
from tests.third_party.catalogue import Entry

RECORDS = Path(__file__).with_name("records")
#: Of the reason of a failure: enough to know it by.
_LONGEST = 160


class Cost(msgspec.Struct, frozen=True):
    """Of the tests that passed here and in an earlier run."""

    ops: int
    round_trips: int
    #: What the earlier run was made of, such as a commit.
    earlier: str = ""
    earlier_ops: int = 0
    earlier_round_trips: int = 0


class Record(msgspec.Struct, frozen=True):
    """A run through a pool."""

    name: str
    version: str
    #: What it was run on: device, versions, when and of which commit.
    about: str
    #: Whether native CuPy was run beside. Then only what passes there is in this record.
    is_beside_native: bool
    passed: int
    #: Skipped, or expected to fail.
    skipped: int
    #: Each test that failed, and what it said.
    failed: dict[str, str]
    #: What the tests that passed cost.
    cost: Cost | None = None


def cost(here: Iterable[Outcome], before: Mapping[str, Outcome], earlier: str) -> Cost:
    """Return what the outcomes ``here`` cost, and those in ``before``, if there are any: of what passed in both."""
    passed = [one for one in here if one.outcome == PASSED]
    if not before:
        return Cost(sum(one.ops for one in passed), sum(one.round_trips for one in passed))
    both = [one for one in passed if one.id in before and before[one.id].outcome == PASSED]
    then = [before[one.id] for one in both]
    now = sum(one.ops for one in both), sum(one.round_trips for one in both)
    return Cost(*now, earlier, sum(one.ops for one in then), sum(one.round_trips for one in then))


def make(
    entry: Entry, here: Iterable[Outcome], native: Mapping[str, Outcome], device: str, made: str,
    cost: Cost | None = None,
) -> Record:  # fmt: skip
    """Return the record of the outcomes ``here``; of those that pass in ``native`` if there are any."""
    here = list(here)
    versions = next((one.why for one in here if one.outcome == ABOUT), "")
    tests = [one for one in here if one.is_of_a_test]
    if native:
        tests = [one for one in tests if one.id in native and native[one.id].outcome == PASSED]
    skipped = [one for one in tests if one.outcome in NOT_EXPECTED and not native]
    failed = {one.id: one.why[:_LONGEST] for one in tests if one.outcome != PASSED and one not in skipped}
    return Record(
        entry.name,
        entry.version,
        ", ".join(filter(None, (device, versions, made))),
        bool(native),
        sum(one.outcome == PASSED for one in tests),
        len(skipped),
        dict(sorted(failed.items())),
        cost,
    )


def write(made: Record) -> None:
    """Keep a record in the repository."""
    RECORDS.mkdir(exist_ok=True)
    path = RECORDS / f"{made.name}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n")


def read_all() -> list[Record]:
    """Return what is kept, by name."""
    return [msgspec.json.decode(path.read_bytes(), type=Record) for path in sorted(RECORDS.glob("*.json"))]
