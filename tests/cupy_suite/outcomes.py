"""Outcomes of tests, one JSON object a line, written as they come."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

#: As pytest names them, and "crashed" for a test during which its process died.
PASSED, SKIPPED, CRASHED = "passed", "skipped", "crashed"
#: A test that CuPy expects to fail natively, and its passing.
XFAILED, XPASSED = "xfailed", "xpassed"
#: Outcomes of tests that cannot be expected to pass natively.
NOT_EXPECTED = (SKIPPED, XFAILED, XPASSED)
#: Of no test: the time was up. ``seconds`` is then the fraction of its tests that the worker had begun.
STOPPED = "stopped"
#: Of no test: what the tests were run with; ``why`` names versions.
ABOUT = "about"


class Outcome(msgspec.Struct, frozen=True):
    """How one test ended."""

    id: str
    #: passed, failed, skipped, xfailed, error (in set-up or tear-down), crashed.
    outcome: str
    seconds: float = 0.0
    #: The last line of what was raised, or the reason of a skip.
    why: str = ""
    #: Of a test that passed through a pool: ops sent, and those of them whose answer was waited for.
    ops: int = 0
    round_trips: int = 0

    @property
    def is_of_a_test(self) -> bool:
        """False for what is noted of a whole run."""
        return self.outcome not in (STOPPED, ABOUT)


def read(path: Path) -> dict[str, Outcome]:
    """Return the outcomes in ``path`` by test; the last counts. A line that was cut short is no outcome."""
    found: dict[str, Outcome] = {}
    if not path.exists():
        return found
    for line in path.read_bytes().splitlines():
        try:
            outcome = msgspec.json.decode(line, type=Outcome)
        except msgspec.DecodeError:
            continue
        found[outcome.id] = outcome
    return found


def complete_fraction(found: Iterable[Outcome], fraction: float) -> float:
    """Return the subsample that was run to its end by all workers, of a run that was to do ``fraction``."""
    return min([fraction, *(outcome.seconds for outcome in found if outcome.outcome == STOPPED)])


def stopped(found: Iterable[Outcome]) -> bool:
    """Tell whether the time was up before all was done."""
    return any(outcome.outcome == STOPPED for outcome in found)


def append(path: Path, outcome: Outcome) -> None:
    """Write one outcome behind the others."""
    with path.open("ab") as file:
        file.write(msgspec.json.encode(outcome) + b"\n")


def write(path: Path, outcomes: Iterable[Outcome]) -> None:
    """Write ``outcomes`` sorted by test."""
    ordered = sorted(outcomes, key=lambda outcome: outcome.id)
    path.write_bytes(b"".join(msgspec.json.encode(outcome) + b"\n" for outcome in ordered))
