"""Programs of few large ops on fresh uploads, run for run: how soon and how nearly they are as fast as by native CuPy.

``python benchmarks/few_large.py`` starts a pool of its own and, in turns, processes that run each program again and
again: with native CuPy, and with CuPy through the pool. Before each run its arguments are uploaded anew, which is not
timed; a run is timed to the ``synchronize`` behind it. It ends within two minutes and prints one table: native CuPy's
median, each early run's over it, the least and the median of the later ones. Nothing is written. Without a GPU the
pool's CPU device is compared with NumPy, on small arrays: that only shows that it works.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

_SIDES = ("native", "remote")
_TURNS, _RUNS = 3, 24
#: The runs that are shown one by one, counted from one; and from which on they are taken together.
_SHOWN, _LATER = (1, 2, 3, 4, 6, 8, 10), 13
_FULL, _SMALL = 1000, 30


class Program(NamedTuple):
    """What is run: the shapes of its arguments by the size, and what it does with them."""

    shapes: Callable[[int], tuple[tuple[int, ...], ...]]
    run: Callable[..., Any]


def _softmax(cp: Any, x: Any) -> Any:
    shifted = cp.exp(x - cp.max(x, axis=-1, keepdims=True))
    return shifted / cp.sum(shifted, axis=-1, keepdims=True)


def _layer_norm(cp: Any, x: Any, scale: Any, shift: Any) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / cp.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5) * scale + shift


def _scaled_product(cp: Any, a: Any, b: Any, c: Any) -> Any:
    c[:] = 1.5 * a @ b + 1.2 * c
    return c


def _relaxed(cp: Any, x: Any) -> Any:
    y = x.copy()
    y[1:-1, 1:-1] = 0.25 * (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2])
    return y


PROGRAMS: dict[str, Program] = {
    "softmax": Program(lambda n: ((4 * n, n),), _softmax),
    "layer_norm": Program(lambda n: ((2 * n, n), (n,), (n,)), _layer_norm),
    "scaled_product": Program(lambda n: ((n, n + 100), (n + 100, n), (n, n)), _scaled_product),
    "three_products": Program(
        lambda n: ((n, n - 10), (n - 10, n), (n, n - 20), (n - 20, n)), lambda cp, a, b, c, d: (a @ b) @ (c @ d)
    ),
    "twice_by_a_vector": Program(lambda n: ((4 * n, n), (n,)), lambda cp, a, x: (a @ x) @ a),
    "clipped_and_mixed": Program(
        lambda n: ((2 * n, n), (2 * n, n)), lambda cp, a, b: cp.clip(a, 0.2, 0.8) * 4 + b * 3 + 9
    ),
    "rows_by_a_table": Program(lambda n: ((3 * n, 1, 128), (128, 128)), lambda cp, x, table: (x @ table)[:, 0]),
    "relaxed": Program(lambda n: ((2 * n, 2 * n),), _relaxed),
}


# --- one side ---------------------------------------------------------------------------------------------------------


def library(which: str, device: str) -> Any:
    """Return CuPy as this side has it; NumPy where there is none beside the CPU device."""
    if which == "native" and device == "cpu":
        return np
    if which != "native":
        import kernelproxy

        kernelproxy.activate()
    import cupy

    return cupy


def series(cp: Any, program: Program, size: int) -> tuple[list[float], str]:
    """Return the seconds of each run, and what tells the last result's bits."""
    drawn = np.random.default_rng(size)
    given = [drawn.random(shape) for shape in program.shapes(size)]
    wait = cp.cuda.get_current_stream().synchronize if cp is not np else lambda: None
    times: list[float] = []
    made: Any = None
    for _ in range(_RUNS):
        made = None
        args = [cp.array(one) for one in given]
        wait()
        begun = perf_counter()
        made = program.run(cp, *args)
        wait()
        times.append(perf_counter() - begun)
    host = made if cp is np else made.get()
    return times, hashlib.sha1(np.ascontiguousarray(host).tobytes()).hexdigest()


def measure(which: str, device: str, turn: int) -> None:
    """Run all programs, on arrays of other shapes in each turn, and print what came of it."""
    cp, size = library(which, device), (_SMALL if device == "cpu" else _FULL) + turn
    print(json.dumps({name: series(cp, program, size) for name, program in PROGRAMS.items()}), flush=True)


# --- both sides -------------------------------------------------------------------------------------------------------

Series = dict[str, tuple[list[float], str]]


def measure_all(device: str) -> tuple[str, dict[str, list[Series]]]:
    """Return what the device is, and what each side measured in each turn."""
    from remoting_pool import OwnPool

    found: dict[str, list[Series]] = {which: [] for which in _SIDES}
    with OwnPool(device) as pool:
        name = pool.view().devices[0].name
        # As users have it: a pool of benchmarks that count trips has the notebook answer nothing by itself.
        environment = pool.environment | {"GPU_WORKBENCH_HOST_MIRROR": "on"}
        for turn in range(_TURNS):
            for which, turns in found.items():
                command = [sys.executable, __file__, "--as", which, "--device", pool.device_kind, "--turn", str(turn)]
                done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
                turns.append(json.loads(done.stdout))
    return name, found


def show(name: str, found: dict[str, list[Series]]) -> None:
    """Print the table."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"few large ops on {name}: through the pool over native, run for run")
    for heading in ("program", "native", *(f"run {run}" for run in _SHOWN), "least", f"from {_LATER}", "result"):
        table.add_column(heading, justify="right")
    ratios: list[float] = []
    for program in PROGRAMS:
        native, remote = ([turn[program][0] for turn in found[which]] for which in _SIDES)
        native_least = min(time for turn in native for time in turn[1:])
        median = statistics.median(time for turn in native for time in turn[1:])
        early = [statistics.median(turn[run - 1] for turn in remote) / median for run in _SHOWN]
        least = min(time for turn in remote for time in turn[1:]) / native_least
        later = statistics.median(time for turn in remote for time in turn[_LATER - 1 :]) / median
        bits = [len({turns[number][program][1] for turns in found.values()}) == 1 for number in range(_TURNS)]
        ratios.append(later)
        row = [f"{one:.2f}" for one in (*early, least, later)]
        table.add_row(program, f"{median * 1e6:.0f} µs", *row, "same bits" if all(bits) else "differs")
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    print(
        f"geometric mean of {len(ratios)}, from run {_LATER} on: {statistics.geometric_mean(ratios):.2f}; "
        f"{sum(one > 1.1 for one in ratios)} above 1.1"
    )


def main() -> None:
    """Run one side, or both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto", help="what to compute on")
    parser.add_argument("--turn", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--as", dest="which", choices=_SIDES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.which is not None:
        measure(options.which, options.device, options.turn)
    else:
        show(*measure_all(options.device))


if __name__ == "__main__":
    main()
