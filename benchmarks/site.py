"""A pool of the size of a site, in virtual time: 10,000 users on 1,000 devices for an hour, by each rule of placement.

``python -m benchmarks.site`` simulates; nothing is measured on a device. The queue, placement, the ledger of shares and
the policies are the pool's own code, called once a second over all devices; turns are played on a sample of them. The
figures follow from the seed alone; what the simulation itself took depends on the machine. Writes them to
``benchmarks/results``, with all that is needed to run it again.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from benchmarks.run_record import circumstances
from gpu_backend.arbiter.simulation.outcome import Outcome, quantile
from gpu_backend.gateway.placing import RULES
from gpu_backend.pool.simulate import Found, Wanted, add_options, compared, table, worked
from gpu_backend.pool.simulation import PoolOutcome

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Spread:
    """How a figure is distributed."""

    count: int
    mean: float
    p50: float
    p95: float
    p99: float
    most: float

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        """Return it of ``values``."""
        p50, p95, p99 = (quantile(values, part) for part in (0.5, 0.95, 0.99))
        return cls(len(values), sum(values) / max(1, len(values)), p50, p95, p99, max(values, default=0.0))


def figures(wanted: Wanted, found: Found) -> dict[str, Any]:
    """Return what one run showed, as it is recorded."""
    pool, turns = found
    return {
        "placement": wanted.rule,
        "shares": "of the pool" if wanted.has_ledger else "of each device",
        **_of_pool(pool),
        **_of_turns(turns),
    }


def _of_pool(pool: PoolOutcome) -> dict[str, Any]:
    return {
        "share_error": Spread.of(pool.share_errors),
        "queue_seconds": Spread.of(pool.queued),
        "most_waiting": pool.most_waiting,
        "unplaced": pool.unplaced,
        "most_placed": pool.most_placed,
        "cell_wait_seconds": Spread.of(pool.waits),
        "slowdown": Spread.of(pool.slowdowns),
        "used_of_all": pool.used_seconds / pool.total_seconds,
        "used_of_wanted": pool.used_seconds / max(1e-9, pool.wanted_seconds),
    }


def _of_turns(turns: Outcome) -> dict[str, Any]:
    return {
        "turns_share_error": Spread.of(turns.share_errors),
        "turns_delay_seconds": Spread.of(turns.delays),
        "turns_used_of_wanted": turns.utilisation,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate, print and record; return the exit status."""
    options = _parser().parse_args(arguments)
    start, before = time.perf_counter(), worked()
    wanted = [
        Wanted.of(options, rule, has_ledger)
        for has_ledger in (True, False)
        for rule in (RULES if has_ledger else ("spread",))
    ]
    found = compared(wanted, options.jobs)
    took, processors = time.perf_counter() - start, worked() - before
    console = Console(width=None if sys.stdout.isatty() else 150)
    console.print(table(zip(wanted, found, strict=True)))
    rows = [figures(one, seen) for one, seen in zip(wanted, found, strict=True)]
    path = _record(options, rows, took, processors)
    console.print(
        f"A simulation of {options.seconds} s for each row; all took {took:.0f} s, and {processors:.0f} s of "
        f"processors' time. Recorded in {path}."
    )
    return 0


def _record(options: argparse.Namespace, rows: list[dict[str, Any]], took: float, processors: float) -> Path:
    now = datetime.now(UTC)
    record = {
        "benchmark": "site",
        "is_simulation": True,
        "date": now.isoformat(timespec="seconds"),
        **circumstances(),
        **{name: getattr(options, name) for name in ("users", "devices", "places", "seconds", "seed", "sample")},
        "jobs": options.jobs,
        "simulated_in_seconds": round(took, 1),
        "processors_seconds": round(processors, 1),
        "runs": rows,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    path: Path = options.out / f"site-simulated-{now:%Y%m%d-%H%M%S}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")
    return path


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.site", description=__doc__.partition("\n")[0])
    add_options(parser, users=10_000, devices=1000, seconds=3600, sample=2)
    parser.add_argument("--out", type=Path, default=RESULTS, help="where to record (default: benchmarks/results)")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
