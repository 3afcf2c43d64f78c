"""A pool of many devices in virtual time: ``python -m gpu_backend.pool.simulate``.

Notebooks come, wait for a place, work and leave: the queue, placement and the ledger of shares go by steps of a second
over all devices. Turns are played on some of them, with the weights that these were told.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from gpu_backend.arbiter.policies import registry
from gpu_backend.arbiter.simulation.device import SimulatedDevice
from gpu_backend.arbiter.simulation.outcome import Outcome, merged, quantile
from gpu_backend.arbiter.simulation.trace import coming_and_going
from gpu_backend.gateway.placing import RULES
from gpu_backend.pool.simulated_places import NODE
from gpu_backend.pool.simulation import PoolOutcome, SimulatedPool

__all__ = ["Found", "Wanted", "add_options", "compared", "main", "simulate", "table", "worked"]

#: The rule by which a device is taken of several that are equally good by the one that is compared.
_AMONG_EQUALS = "spread"


class Wanted(NamedTuple):
    """One run: a rule of placement, with or without the ledger."""

    rule: str
    has_ledger: bool
    users: int
    devices: int
    #: Most sessions on one device.
    places: int
    seconds: int
    seed: int
    #: On so many devices turns are played.
    sample: int

    @classmethod
    def of(cls, options: argparse.Namespace, rule: str, has_ledger: bool) -> Wanted:
        """Return the run that ``options`` ask for, which are those of `add_options`."""
        return cls(
            rule, has_ledger, options.users, options.devices, options.places, options.seconds, options.seed,
            options.sample,
        )  # fmt: skip


#: Runs that are compared have the same users: a process makes them once.
_made_up = lru_cache(maxsize=1)(coming_and_going)
#: The figures of the pool, and of the turns on a sample of its devices.
Found = tuple[PoolOutcome, Outcome]


def simulate(wanted: Wanted) -> Found:
    """Return what one run shows."""
    scripts = _made_up(wanted.users, float(wanted.seconds), wanted.seed).scripts
    step = max(1, wanted.devices // max(1, wanted.sample))
    watched = [number for number in range(0, step * wanted.sample, step) if number < wanted.devices]
    pool = SimulatedPool(
        scripts, wanted.devices, (wanted.rule, _AMONG_EQUALS), wanted.has_ledger, wanted.seed, wanted.places, watched
    )
    gc.freeze()  # scripts hold no cycles, and stay
    outcome = pool.run(wanted.seconds)
    turns = [
        SimulatedDevice(registry.make("fair_share"), scripts, changes=pool.changes.get((NODE, number), ()))
        for number in watched
        if (scripts := pool.scripts_on(number))
    ]
    return outcome, merged(device.run(wanted.seconds) for device in turns)


def compared(wanted: Sequence[Wanted], jobs: int) -> list[Found]:
    """Return what each run shows, spread over ``jobs`` processes."""
    if jobs == 1 or len(wanted) == 1:
        return list(map(simulate, wanted))
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as processes:
        return list(processes.map(simulate, wanted))


def table(found: Iterable[tuple[Wanted, Found]]) -> Table:
    """Return the figures as a table, one run per row."""
    shown = Table(title="Error of shares of the pool over 5 s; the queue for a place; waiting in long cells; devices")
    for column in ("placement", "shares"):
        shown.add_column(column)
    for column in (
        "error mean", "p50", "p95", "queued", "mean", "p95", "cell p50", "p95", "used of all", "of wanted", "delay p99"
    ):  # fmt: skip
        shown.add_column(column, justify="right")
    for wanted, (pool, turns) in found:
        errors, waits = pool.share_errors, pool.waits
        queued = [seconds for seconds in pool.queued if seconds >= 1]  # a step has to end before anybody is placed
        shown.add_row(
            wanted.rule, "of the pool" if wanted.has_ledger else "of each device",
            f"{100 * sum(errors) / max(1, len(errors)):.1f} %", f"{100 * quantile(errors, 0.5):.1f} %",
            f"{100 * quantile(errors, 0.95):.1f} %",
            f"{len(queued) + pool.unplaced}", f"{sum(queued) / max(1, len(queued)):.0f} s",
            f"{quantile(queued, 0.95):.0f} s",
            f"{quantile(waits, 0.5):.1f} s", f"{quantile(waits, 0.95):.1f} s",
            f"{100 * pool.used_seconds / pool.total_seconds:.1f} %",
            f"{100 * pool.used_seconds / max(1e-9, pool.wanted_seconds):.1f} %",
            f"{1e3 * quantile(turns.delays, 0.99):.0f} ms",
        )  # fmt: skip
    return shown


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    options = _parser().parse_args(arguments)
    unknown = [rule for rule in options.rules if rule not in RULES]
    if unknown:
        sys.stderr.write(f"There is no rule of placement {unknown[0]!r}; there are {', '.join(RULES)}.\n")
        return 2
    start, before = time.perf_counter(), worked()
    wanted = [
        Wanted.of(options, rule, has_ledger)
        for rule in options.rules or RULES
        for has_ledger in ((True, False) if options.beside else (True,))
    ]
    found = compared(wanted, options.jobs)
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(table(zip(wanted, found, strict=True)))
    took = time.perf_counter() - start
    console.print(
        f"A simulation: {options.users} users on {options.devices} devices with {options.places} places each, "
        f"{options.seconds} s of virtual time for each row, turns on {options.sample} devices; simulated in "
        f"{took:.1f} s, of processors' time {worked() - before:.1f} s."
    )
    return 0


def worked() -> float:
    """Return the processors' time of this process and of those that it has started and that have ended, seconds."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def add_options(parser: argparse.ArgumentParser, *, users: int, devices: int, seconds: int, sample: int) -> None:
    """Give ``parser`` the options of a simulation, with these defaults."""
    parser.add_argument("--users", type=int, default=users, help="default: %(default)s")
    parser.add_argument("--devices", type=int, default=devices, help="default: %(default)s")
    parser.add_argument("--places", type=int, default=16, help="most sessions on one device (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=seconds, help="virtual time (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of users and placement (default: %(default)s)")
    parser.add_argument("--sample", type=int, default=sample, help="devices with turns (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gpu_backend.pool.simulate", description=__doc__)
    parser.add_argument("rules", nargs="*", help=f"rules of placement to compare; all if none: {', '.join(RULES)}")
    parser.add_argument("--beside", action="store_true", help="also without the ledger, side by side")
    add_options(parser, users=1000, devices=100, seconds=600, sample=4)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
