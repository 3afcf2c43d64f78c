"""Whole programs through the pool beside native CuPy on the same GPU, in turns, in one run.

``python -m benchmarks.programs`` starts a pool of its own, runs every program of `suite` by both sides in turns (first
call, then the best of some warm ones, each to the last byte on the host), compares what came out, prints a table with
the geometric mean and the worst ten, and writes it to ``benchmarks/results/``. Without a GPU it runs the programs at
their small sizes on the CPU device, and counts ops and round trips: there is nothing to compare with. Exit status 1 if
anything came out differently.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.programs.table import Row, row, summary
from benchmarks.remoting_pool import OwnPool
from benchmarks.run_record import circumstances
from kernelproxy.settings import MIRROR_VARIABLE

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"


class Side:
    """A process that runs programs."""

    def __init__(self, which: str, environment: dict[str, str]) -> None:
        command = [sys.executable, "-m", "benchmarks.programs.side", which]
        self._process = subprocess.Popen(
            command, env=environment, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        #: Name, kind, size on a GPU and small size of each program.
        self.programs: list[tuple[str, str, int, int]] = self._read()

    def __enter__(self) -> Side:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def run(self, name: str, size: int) -> dict[str, Any]:
        """Run a program once; return what `side.measure` found."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"name": name, "size": size}) + "\n")
        self._process.stdin.flush()
        found: dict[str, Any] = self._read()
        return found

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"A side ended with status {self._process.wait()}; what it said stands above.")
        return json.loads(line)


def in_turns(pool: OwnPool, names: set[str], is_small: bool, rounds: int) -> list[Row]:
    """Run the programs of these names or kinds, all if there are none, on both sides in turns; return their rows."""
    found = []
    with ExitStack() as sides:
        remote = sides.enter_context(Side("remote", {**pool.environment, MIRROR_VARIABLE: "on"}))
        native = sides.enter_context(Side("native", pool.environment)) if pool.device_kind == "cuda" else None
        for name, kind, full, small in remote.programs:
            if names and not names & {name, kind}:
                continue
            size = small if is_small else full
            ours: list[dict[str, Any]] = []
            theirs: list[dict[str, Any]] = []
            for _ in range(rounds + 1):
                if native is not None:
                    theirs.append(native.run(name, size))
                ours.append(remote.run(name, size))
            found.append(row(name, kind, theirs, ours))
    return found


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
    judged = summary(rows)
    if judged["warm"] is not None:
        console.print(
            f"geometric mean of {judged['programs']}: warm {judged['warm']:.2f}, first call {judged['first']:.2f}; "
            f"{judged['above_1.1']} above 1.1"
        )
        for each in judged["worst"]:
            console.print(f"  {each['ratio']:.2f}  {each['name']}: {each['why']}")
    else:
        console.print(f"{judged['programs']} programs, {judged['ops']} ops, {judged['round_trips']} round trips")


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{1e3 * seconds:.2f} ms"


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def record(rows: list[Row], device: str) -> Path:
    """Write the run to ``benchmarks/results`` and return the file."""
    now = datetime.now(UTC)
    written = RESULTS / f"programs-{device}-{now:%Y%m%d-%H%M%S}.json"
    content = {
        "benchmark": "programs",
        "date": now.isoformat(timespec="seconds"),
        **circumstances(),
        "summary": summary(rows),
        "rows": [{**asdict(each), "ratio": each.ratio, "first_ratio": each.first_ratio} for each in rows],
    }
    written.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return written


def main() -> int:
    """Run both sides."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="names or kinds; all by default")
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto", help="what to compute on")
    parser.add_argument("--rounds", type=int, default=5, help="warm calls of each side")
    parser.add_argument("--small", action="store_true", help="small sizes on a GPU too")
    parser.add_argument("--record", action="store_true", help="write a file, without a GPU too")
    options = parser.parse_args()
    with OwnPool(options.device) as pool:
        on_gpu = pool.device_kind == "cuda"
        rows = in_turns(pool, set(options.programs), options.small or not on_gpu, options.rounds)
    show(rows, "programs on one GPU, native and remote in turns" if on_gpu else "programs on the CPU device, small")
    if on_gpu or options.record:
        print(f"written to {record(rows, 'cuda' if on_gpu else 'cpu')}")
    return 1 if summary(rows)["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
