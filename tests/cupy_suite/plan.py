"""What one worker of a run is told."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import msgspec

from tests.cupy_suite.suites import Kind

#: Names the file with the worker's plan.
PLAN_VARIABLE = "CUPY_SUITE_PLAN"

Side = Literal["native", "proxy"]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One worker's share of a run."""

    #: "native" for the CuPy that is installed, "proxy" for the one whose arrays live in a pool.
    side: Side
    #: ``cupy.testing`` of CuPy's source distribution; None for the one that the proxy has itself.
    testing: Path | None
    kind: Kind
    files: tuple[str, ...]
    #: This worker runs the tests of shard ``shard`` of ``shards``.
    shard: int
    shards: int
    #: Only tests whose `selection.place` is below.
    fraction: float
    #: Only the tests that this file of outcomes has, if there is one.
    like: Path | None
    #: Where each outcome is written as it comes. Tests that it has already are not run again.
    out: Path
    #: When to stop, seconds since the epoch; 0 for never.
    deadline: float
    #: Longest time of one test, seconds.
    test_seconds: float

    @property
    def now(self) -> Path:
        """The file with the id of the test that is being run."""
        return self.out.with_suffix(".now")

    @property
    def failures(self) -> Path:
        """The file with the full texts of what failed."""
        return self.out.with_suffix(".failures.txt")


def save(plan: Plan, path: Path) -> None:
    """Write ``plan`` for a worker to `load`."""
    path.write_bytes(msgspec.json.encode(plan, enc_hook=str))


def load() -> Plan | None:
    """Return the plan of this process; None if it is no worker."""
    path = os.environ.get(PLAN_VARIABLE)
    return msgspec.json.decode(Path(path).read_bytes(), type=Plan, dec_hook=_path) if path else None


def _path(kind: type, value: object) -> object:
    return Path(str(value))
