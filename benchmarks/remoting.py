"""Remote CuPy beside native CuPy, on the same GPU, in one run: what a call, a chain, a number and a copy cost.

``python benchmarks/remoting.py`` starts a pool of its own on this machine, measures native CuPy and CuPy through the
pool in turns, five processes of each, of which the best counts, prints a table with ratios, and writes it to
``benchmarks/results/``. Without a GPU it compares the CPU device with NumPy: another comparison, and labelled so. Exit
status 1 if a goal is missed on a GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from remoting_pool import OwnPool, kernel_seconds, measure_in_turns
from rich.console import Console
from rich.table import Table
from run_record import circumstances

RESULTS = Path(__file__).parent / "results"
#: Loops of small ops, from the first to a number.
_LOOPS = {
    "10,000 x[1:-1] += y[2:]": "in_place_s",
    "10,000 y.sum()": "reductions_s",
    "2,500 u[1:-1] = 0.5 * (u[:-2] + u[2:])": "sweeps_s",
    "2,500 x[1:-1] += y[2:]; x[1:].sum()": "mixed_s",
    "10,000 launches of a RawKernel": "raw_s",
    "10,000 launches of an ElementwiseKernel": "elementwise_s",
    "10,000 launches of a RawKernel, another float each": "raw_numbers_s",
    "10,000 launches of an ElementwiseKernel, another float each": "elementwise_numbers_s",
}


class Row(NamedTuple):
    """One quantity on both sides."""

    name: str
    unit: str
    native: float | None
    remote: float
    goal: str = ""
    met: bool | None = None

    @property
    def ratio(self) -> float | None:
        """Remote by native."""
        return self.remote / self.native if self.native else None


def rows(native: dict[str, Any], remote: dict[str, Any], kernels: dict[str, float]) -> list[Row]:
    """Return the table: every quantity with its goal and whether it was met."""
    add, view, chain, read = remote["add_us"], remote["view_us"], remote["chain_s"], remote["read_us"]
    above = read - native["read_us"]
    found = [
        Row("x + y, on the client", "µs", native["add_us"], add, "under 4", add < 4),
        Row("x[1:-1], on the client", "µs", native["view_us"], view, "under 1.5", view < 1.5),
        Row("x[1:-1] += y[2:], on the client", "µs", native["in_place_us"], remote["in_place_us"]),
        Row("100,000 dependent adds", "s", native["chain_s"], chain, "at most 1.2 ×", chain <= 1.2 * native["chain_s"]),
        *[
            Row(name, "s", native[key], remote[key], "at most 1.1 ×", remote[key] <= 1.1 * native[key])
            for name, key in _LOOPS.items()
            if key in native
        ],
        Row("float(x[0])", "µs", native["read_us"], read, "at most 60 above", above <= 60),
        Row("upload, ordinary memory", "GB/s", native["upload_gbs"], remote["upload_gbs"]),
        Row("download, ordinary memory", "GB/s", native["download_gbs"], remote["download_gbs"]),
        Row("first result, plain process", "s", native["first_result_s"], remote["first_result_s"]),
    ]
    if kernels:
        first = kernels["first_result_s"]
        found.append(Row("kernel start to ready", "s", None, kernels["ready_s"]))
        found.append(Row("kernel start to first result", "s", None, first, "under 1.5", first < 1.5))
    return found


def show(table_rows: list[Row], native: str, remote: str, title: str) -> None:
    """Print the table."""
    table = Table(title=title)
    for heading in ("", native, remote, "ratio", "goal"):
        table.add_column(heading, justify="left" if heading == "" else "right")
    for row in table_rows:
        table.add_row(
            row.name,
            "" if row.native is None else f"{row.native:.3g} {row.unit}",
            f"{row.remote:.3g} {row.unit}",
            "" if row.ratio is None else f"{row.ratio:.2f}",
            "" if row.met is None else f"{row.goal}: {'met' if row.met else 'MISSED'}",
        )
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def record(table_rows: list[Row], native: dict[str, Any], remote: dict[str, Any], device: str) -> Path:
    """Write the run to ``benchmarks/results`` and return the file."""
    now = datetime.now(UTC)
    written = RESULTS / f"remoting-{device}-{now:%Y%m%d-%H%M%S}.json"
    content = {
        "benchmark": "remoting",
        "date": now.isoformat(timespec="seconds"),
        **circumstances(),
        "device": native["device"],
        "native": native["library"],
        "rows": [{**row._asdict(), "ratio": row.ratio} for row in table_rows],
        "counters": remote.get("counters", {}),
    }
    RESULTS.mkdir(exist_ok=True)
    written.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return written


def main() -> int:
    """Run both sides."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto", help="what to compute on")
    parser.add_argument("--no-kernel", action="store_true", help="leave out the start of a Jupyter kernel")
    parser.add_argument("--no-record", action="store_true", help="write no file")
    options = parser.parse_args()
    with OwnPool(options.device) as pool:
        native, remote = measure_in_turns(pool.device_kind, pool.environment)
        kernels = {} if options.no_kernel else kernel_seconds(pool)
    found = rows(native, remote, kernels)
    on_gpu = pool.device_kind == "cuda"
    title = f"on one {native['device']}" if on_gpu else "on the CPU device, beside NumPy (no GPU: goals do not apply)"
    if not on_gpu:
        found = [row._replace(goal="", met=None) for row in found]
    show(found, native["library"], "through the pool", title)
    if not options.no_record:
        print(f"written to {record(found, native, remote, pool.device_kind)}")
    return 1 if any(row.met is False for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
