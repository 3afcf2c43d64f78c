"""Whole programs through the pool beside native CuPy on the same GPU, in turns, in one run.

``python -m benchmarks.programs`` starts a pool of its own, runs every program of `suite` by both sides in turns (first
call, then the best of some warm ones, each to the last byte on the host), compares what came out, prints a table with
the geometric mean and the worst ten, and writes it to ``benchmarks/results/``. Without a GPU it runs the programs at
their small sizes on the CPU device, and counts ops and round trips: there is nothing to compare with. Exit status 1 if
anything came out differently.

``--far 0.1,0.5,1,10,30`` runs them over links of these round trips, milliseconds, as well, and prints what each program
takes from so far away, and how often it waits.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.programs import far
from benchmarks.programs.sides import Side
from benchmarks.programs.table import Row, row, summary
from benchmarks.remoting_pool import OwnPool
from benchmarks.run_record import circumstances
from kernelproxy.settings import MIRROR_VARIABLE

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"


def in_turns(pool: OwnPool, names: set[str], is_small: bool, rounds: int, passes: int) -> list[Row]:
    """Run the programs of these names or kinds, all if there are none, on both sides in turns; return their rows.

    All of them are gone through several times: what slows a machine for some seconds slows none of them each time.
    """
    with ExitStack() as sides:
        # First calls are of who has compiled nothing yet, on both sides.
        compiled = sides.enter_context(TemporaryDirectory())
        remote = sides.enter_context(Side("remote", {**pool.environment, MIRROR_VARIABLE: "on"}))
        native = None
        if pool.device_kind == "cuda":
            native = sides.enter_context(Side("native", {**pool.environment, "CUPY_CACHE_DIR": compiled}))
        chosen = [one for one in remote.programs if not names or names & {one[0], one[1]}]
        ours: dict[str, list[dict[str, Any]]] = {name: [] for name, *_ in chosen}
        theirs: dict[str, list[dict[str, Any]]] = {name: [] for name, *_ in chosen}
        for turn in range(passes):
            for name, _, full, small in chosen:
                for _ in range(rounds if turn else rounds + 1):
                    if native is not None:
                        theirs[name].append(native.run(name, small if is_small else full))
                    ours[name].append(remote.run(name, small if is_small else full))
    return [row(name, kind, theirs[name], ours[name]) for name, kind, *_ in chosen]


def show(rows: list[Row], title: str) -> None:
    """Print the table, the mean and the worst."""
    table = Table(title=title)
    for heading in ("kind", "program", "native", "remote", "ratio", "first", "ops", "trips", "result"):
        table.add_column(heading, justify="left" if heading in ("kind", "program", "result") else "right")
    for each in rows:
        table.add_row(
            each.kind,
            each.name,
            _milliseconds(each.native),
            _milliseconds(each.warm),
            _times(each.ratio),
            _times(each.first_ratio),
            str(each.costs.get("ops", "")),
            str(each.costs.get("round_trips", "")),
            each.verdict,
        )
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(table)
    found = summary(rows)
    if found["warm"] is not None:
        console.print(
            f"geometric mean of {found['programs']}: warm {found['warm']:.2f}, first call {found['first']:.2f}; "
            f"{found['above_1.1']} above 1.1"
        )
        recording, programs = found["recording"] or 0.0, found["recorded_programs"]
        console.print(f"recording alone, of {programs} that hardly wait: {recording:.2f} of native")
        for each in found["worst"]:
            console.print(f"  {each['ratio']:.2f}  {each['name']}: {each['why']}")
    else:
        console.print(f"{found['programs']} programs, {found['ops']} ops, {found['round_trips']} round trips")


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{1e3 * seconds:.2f} ms"


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def record(name: str, device: str, found: dict[str, Any]) -> Path:
    """Write what a run has ``found`` to ``benchmarks/results`` and return the file."""
    now = datetime.now(UTC)
    written = RESULTS / f"{name}-{device}-{now:%Y%m%d-%H%M%S}.json"
    content = {"benchmark": name, "date": now.isoformat(timespec="seconds"), **circumstances(), **found}
    written.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return written


def judged(rows: list[Row]) -> dict[str, Any]:
    """Return all that a run has found."""
    return {
        "summary": summary(rows),
        "rows": [{**asdict(each), "ratio": each.ratio, "first_ratio": each.first_ratio} for each in rows],
    }


def main() -> int:
    """Run both sides."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="names or kinds; all by default")
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto", help="what to compute on")
    parser.add_argument("--rounds", type=int, default=5, help="warm calls of each side in a pass")
    parser.add_argument("--passes", type=int, default=3, help="how often all are gone through")
    parser.add_argument("--small", action="store_true", help="small sizes on a GPU too")
    parser.add_argument("--record", action="store_true", help="write a file, without a GPU too")
    parser.add_argument("--far", type=far.round_trips, metavar="MS,MS,...", help="round trips to run them over too")
    options = parser.parse_args()
    names = set(options.programs)
    if options.far:
        device, found = far.measure(options.device, options.far, names, options.small, options.rounds)
        far.show(found)
        if device == "cuda" or options.record:
            print(f"written to {record('programs-far', device, far.judged(found))}")
        return 1 if far.is_wrong(found) else 0
    with OwnPool(options.device) as pool:
        device = pool.device_kind
        rows = in_turns(pool, names, options.small or device == "cpu", options.rounds, options.passes)
    show(
        rows,
        "programs on one GPU, native and remote in turns" if device == "cuda" else "programs on the CPU device, small",
    )
    if device == "cuda" or options.record:
        print(f"written to {record('programs', device, judged(rows))}")
    return 1 if summary(rows)["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
