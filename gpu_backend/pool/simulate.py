"""A pool of many devices in virtual time: ``python -m gpu_backend.pool.simulate``.

Placement and the ledger of shares go by steps of a second over all devices; turns are played on some of them, with the
weights that these were told.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from gpu_backend.arbiter.policies import registry
from gpu_backend.arbiter.simulation.device import SimulatedDevice
from gpu_backend.arbiter.simulation.outcome import Outcome, merged, quantile
from gpu_backend.arbiter.simulation.trace import synthetic
from gpu_backend.gateway.placing import RULES
from gpu_backend.pool.simulation import PoolOutcome, SimulatedPool

__all__ = ["main", "simulate"]


#: The rule by which a device is taken of several that are equally good by the one that is compared.
_AMONG_EQUALS = "spread"


class Wanted(NamedTuple):
    """One run: a rule of placement, with or without the ledger."""

    rule: str
    has_ledger: bool
    users: int
    devices: int
    seconds: int
    seed: int
    #: On so many devices turns are played.
    sample: int


def simulate(wanted: Wanted) -> tuple[PoolOutcome, Outcome]:
    """Return the figures of the pool, and of the turns on a sample of its devices."""
    scripts = synthetic(wanted.users, 1, float(wanted.seconds), wanted.seed).scripts
    pool = SimulatedPool(scripts, wanted.devices, (wanted.rule, _AMONG_EQUALS), wanted.has_ledger, wanted.seed)
    outcome = pool.run(wanted.seconds)
    step = max(1, wanted.devices // max(1, wanted.sample))
    turns = []
    for number in range(0, step * wanted.sample, step):
        device = ("sim", number)
        if number < wanted.devices and (on_it := pool.scripts_on(device)):
            changes = pool.changes.get(device, ())
            turns.append(SimulatedDevice(registry.make("fair_share"), on_it, changes=changes).run(wanted.seconds))
    return outcome, merged(turns)


def table(found: dict[tuple[str, bool], tuple[PoolOutcome, Outcome]]) -> Table:
    """Return the figures as a table, one run per row."""
    shown = Table(title="Error of shares of the pool over 5 s; waiting in cells of a second and more; time of devices")
    for column in ("placement", "shares"):
        shown.add_column(column)
    for column in (
        "error mean", "error p95", "wait p50", "wait p95", "slowdown p95", "used of all", "of wanted", "delay p99 ms"
    ):  # fmt: skip
        shown.add_column(column, justify="right")
    for (rule, has_ledger), (pool, turns) in found.items():
        errors, waits = pool.share_errors, pool.waits
        shown.add_row(
            rule, "of the pool" if has_ledger else "of each device",
            f"{100 * sum(errors) / max(1, len(errors)):.1f} %", f"{100 * quantile(errors, 0.95):.1f} %",
            f"{quantile(waits, 0.5):.1f} s", f"{quantile(waits, 0.95):.1f} s", f"{quantile(pool.slowdowns, 0.95):.2f}",
            f"{100 * pool.used_seconds / pool.total_seconds:.1f} %",
            f"{100 * pool.used_seconds / max(1e-9, pool.wanted_seconds):.1f} %",
            f"{1e3 * quantile(turns.delays, 0.99):.1f}",
        )  # fmt: skip
    return shown


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    options = _parser().parse_args(arguments)
    unknown = [rule for rule in options.rules if rule not in RULES]
    if unknown:
        sys.stderr.write(f"There is no rule of placement {unknown[0]!r}; there are {', '.join(RULES)}.\n")
        return 2
    start, worked = time.perf_counter(), _worked()
    wanted = [
        Wanted(rule, has_ledger, options.users, options.devices, options.seconds, options.seed, options.sample)
        for rule in options.rules or RULES
        for has_ledger in ((True, False) if options.beside else (True,))
    ]
    if options.jobs == 1 or len(wanted) == 1:
        outcomes = list(map(simulate, wanted))
    else:
        with ProcessPoolExecutor(options.jobs, mp_context=multiprocessing.get_context("spawn")) as processes:
            outcomes = list(processes.map(simulate, wanted))
    found = {(one.rule, one.has_ledger): outcome for one, outcome in zip(wanted, outcomes, strict=True)}
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(table(found))
    took = time.perf_counter() - start
    console.print(
        f"{options.users} users on {options.devices} devices, {options.seconds} s of virtual time for each row, turns "
        f"on {options.sample} devices; simulated in {took:.1f} s, of processors' time {_worked() - worked:.1f} s."
    )
    return 0


def _worked() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gpu_backend.pool.simulate", description=__doc__)
    parser.add_argument("rules", nargs="*", help=f"rules of placement to compare; all if none: {', '.join(RULES)}")
    parser.add_argument("--users", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--devices", type=int, default=100, help="default: %(default)s")
    parser.add_argument("--seconds", type=int, default=600, help="virtual time (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of users and placement (default: %(default)s)")
    parser.add_argument("--sample", type=int, default=4, help="devices with turns (default: %(default)s)")
    parser.add_argument("--beside", action="store_true", help="also without the ledger, side by side")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
