"""The policies side by side in virtual time: ``python -m gpu_backend.arbiter.simulate``."""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from gpu_backend.arbiter.policies import registry
from gpu_backend.arbiter.simulation.device import SimulatedDevice
from gpu_backend.arbiter.simulation.outcome import Outcome, merged, quantile
from gpu_backend.arbiter.simulation.trace import Script, Trace, read, synthetic

__all__ = ["main", "simulate"]


def simulate(trace: Trace, policies: Sequence[str], jobs: int = 1) -> dict[str, Outcome]:
    """Run ``trace`` under each policy, devices spread over ``jobs`` processes; return the figures by policy.

    Raises
    ------
    UnknownPolicy
        If there is no policy of a name.
    """
    for name in policies:
        registry.make(name)
    devices = [trace.on_device(device) for device in range(trace.devices)]
    work = [(name, scripts, trace.seconds) for name in policies for scripts in devices]
    if jobs == 1:
        outcomes = [_run(*each) for each in work]
    else:
        # Spawned, not forked: the caller may have threads.
        with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
            # The longest first, so that no process is left with one of them at the end.
            order = sorted(range(len(work)), key=lambda at: -_wanted(work[at][1]))
            futures = {at: pool.submit(_run, *work[at]) for at in order}
            outcomes = [futures[at].result() for at in range(len(work))]
    count = len(devices)
    return {name: merged(outcomes[at * count : (at + 1) * count]) for at, name in enumerate(policies)}


def _wanted(scripts: tuple[Script, ...]) -> float:
    return sum(cell.seconds for script in scripts for cell in script.cells)


def _run(policy: str, scripts: tuple[Script, ...], seconds: float) -> Outcome:
    gc.freeze()  # scripts hold no cycles, and what runs makes none
    return SimulatedDevice(registry.make(policy), scripts).run(seconds)


def table(outcomes: dict[str, Outcome]) -> Table:
    """Return the figures as a table, one policy per row."""
    shown = Table(
        title="Share error over 5 s, delay of short cells, slowdown of long ones, work done while some waited"
    )
    shown.add_column("policy", no_wrap=True)
    columns = ("error mean", "error p95", "delay p50 ms", "delay p99 ms", "slowdown p50", "work done")
    for column in columns:
        shown.add_column(column, justify="right")
    for name, outcome in outcomes.items():
        errors = outcome.share_errors
        figures = (
            f"{100 * sum(errors) / max(1, len(errors)):.1f} %", f"{100 * quantile(errors, 0.95):.1f} %",
            f"{1e3 * quantile(outcome.delays, 0.5):.2f}", f"{1e3 * quantile(outcome.delays, 0.99):.1f}",
            f"{quantile(outcome.slowdowns, 0.5):.2f}", f"{100 * outcome.utilisation:.1f} %",
        )  # fmt: skip
        shown.add_row(name, *figures)
    return shown


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    options = _parser().parse_args(arguments)
    console = Console()
    try:
        if options.trace is not None:
            trace = read(options.trace)
        else:
            trace = synthetic(options.users, options.devices, options.seconds, options.seed)
        start = time.perf_counter()
        outcomes = simulate(trace, options.policies or registry.names(), options.jobs)
    except (registry.UnknownPolicy, OSError, msgspec.DecodeError, msgspec.ValidationError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    took = time.perf_counter() - start
    console.print(table(outcomes))
    users = len({script.terms.user for script in trace.scripts})
    console.print(
        f"{users} users with {len(trace.scripts)} sessions on {trace.devices} devices, {trace.seconds:g} s of virtual "
        f"time for each policy; simulated in {took:.1f} s."
    )
    if options.plot is not None:
        from gpu_backend.arbiter.simulation.plot import save  # matplotlib is an extra, and slow to import

        save(outcomes, options.plot)
        console.print(f"Saved {options.plot}.")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gpu_backend.arbiter.simulate", description=__doc__)
    parser.add_argument(
        "policies", nargs="*", help=f"which to compare; all if none is named ({', '.join(registry.BUILT_IN)})"
    )
    parser.add_argument("--users", type=int, default=100, help="users of a made-up trace (default: %(default)s)")
    parser.add_argument("--devices", type=int, default=6, help="devices of a made-up trace (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=600.0, help="virtual time (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the made-up trace (default: %(default)s)")
    parser.add_argument("--trace", type=Path, help="a recorded trace, JSON, instead of a made-up one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)")
    parser.add_argument("--plot", type=Path, help="save a plot there; needs the extra 'figures'")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
