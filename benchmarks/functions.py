"""What a call of a ``workbench.function`` costs, warm and cold, beside computing in a session that is held.

``python benchmarks/functions.py [--device cuda] [--turns N]`` starts pools of its own and prints medians in ms, with
the shortest and the longest: a small sum in a session that is held, a call in one that is kept, a call with an executor
ready and one without, each to its result and until its place is free again, and a map of calls. Nothing is written.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable, Sequence
from time import perf_counter, sleep
from typing import Any

from remoting_pool import OwnPool

import workbench
from kernelproxy.client import Client

#: How often the pool is asked whether it still counts a session, seconds.
_LOOK_SECONDS = 0.005
_MAP, _WORKERS = 64, 4
_READS = 100


@workbench.function(max_workers=_WORKERS)
def small_sum(n: int) -> Any:
    """Compute next to nothing: what is left is the call's own cost."""
    import cupy as cp

    return cp.arange(float(n)).sum()


def timed(run: Callable[[], object]) -> float:
    """Return how long ``run`` takes, ms."""
    begun = perf_counter()
    run()
    return (perf_counter() - begun) * 1e3


def measured_calls(pool: OwnPool, turns: int, is_warm: bool) -> tuple[list[float], list[float]]:
    """Return what calls one at a time take to their results, and until the pool has their place again, ms.

    The pool counts a session for a call no longer than that: it is asked for one first of all.
    """
    took, held = [], []
    for _ in range(turns):
        if is_warm:
            pool.wait_for_warm()
        begun = perf_counter()
        small_sum(10).result()
        took.append((perf_counter() - begun) * 1e3)
        while pool.view().sessions:
            sleep(_LOOK_SECONDS)
        held.append((perf_counter() - begun) * 1e3)
    return took, held


def measured_sums(turns: int) -> list[float]:
    """Return what the same sum takes in a session that is held all the time, ms."""
    client = Client()
    with client:
        small_sum.__wrapped__(10).get()
        found = [timed(lambda: [small_sum.__wrapped__(10).get() for _ in range(_READS)]) for _ in range(turns)]
    client.close()
    return [one / _READS for one in found]


def measured_kept(turns: int) -> list[float]:
    """Return what a call takes in a session that is kept for it, ms."""
    with small_sum.kept() as kept:
        kept(10).result()
        return [timed(lambda: kept(10).result().get()) for _ in range(turns)]


def row(what: str, found: Sequence[float]) -> str:
    """Return a line of the table."""
    return f"{what:52s} {statistics.median(found):9.2f} {min(found):9.2f} {max(found):9.2f}"


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="what the pools offer")
    parser.add_argument("--turns", type=int, default=10, help="how often each is measured")
    options = parser.parse_args()
    with OwnPool(options.device, warm_executors_per_device=1) as pool:
        os.environ.update(pool.environment)
        pool.wait_for_warm()
        print(f"{pool.device_kind}; ms: median, least and most of {options.turns}")
        print(row("sum in a session that is held", measured_sums(options.turns)))
        print(row("call in a session that is kept", measured_kept(options.turns)))
        took, held = measured_calls(pool, options.turns, is_warm=True)
        print(row("call, an executor is ready", took))
        print(row("  until its place is free", held))
        pool.wait_for_warm()
        whole = [timed(lambda: [one.result() for one in small_sum.map([10] * _MAP)]) for _ in range(options.turns)]
        print(row(f"map of {_MAP} calls in up to {_WORKERS} sessions, each call", [one / _MAP for one in whole]))
    with OwnPool(options.device, warm_executors_per_device=0) as pool:
        os.environ.update(pool.environment)
        took, held = measured_calls(pool, options.turns, is_warm=False)
        print(row("call, no executor is ready", took))
        print(row("  until its place is free", held))


if __name__ == "__main__":
    main()
