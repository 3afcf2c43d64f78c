"""The programs over links of some length: what distance costs each of them, and how often it waits."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.far_links import far_links, port_range
from benchmarks.programs.sides import Side
from benchmarks.programs.table import Row, geometric_mean, row
from benchmarks.remoting_pool import OwnPool
from kernelproxy.settings import CONFIG_VARIABLE, MIRROR_VARIABLE


@dataclass(frozen=True)
class Link:
    """What was measured over one link.

    Attributes
    ----------
    added
        The round trip that was asked for, seconds; 0 on the host's own way.
    wait
        What an empty wait for the device took, seconds: the median of some.
    rows
        The programs, compared with native CuPy where there is a GPU.
    """

    added: float
    wait: float
    rows: list[Row]


def round_trips(text: str) -> list[float]:
    """Return round trips of the command line, milliseconds between commas, in seconds."""
    return [float(one) / 1e3 for one in text.split(",")]


def measure(device: str, added: list[float], names: set[str], is_small: bool, rounds: int) -> tuple[str, list[Link]]:
    """Run the programs on all sides in turns; return the device's kind, the host's own way, and each far link."""
    ports = port_range()
    with ExitStack() as stack:
        # Each side is there from the first to the last, and one executor is kept ready beside them.
        places = {"sessions_per_device": len(added) + 2, "executor_ports": ports}
        pool = stack.enter_context(OwnPool(device, **places))
        configs = [pool.config, *stack.enter_context(far_links(pool.config, ports, added))]
        near = pool.environment | {MIRROR_VARIABLE: "on"}
        native = stack.enter_context(Side("native", near)) if pool.device_kind == "cuda" else None
        remote = [
            stack.enter_context(Side("far" if number else "remote", near | {CONFIG_VARIABLE: str(config)}))
            for number, config in enumerate(configs)
        ]
        waits = [median(side.wait() for _ in range(20)) for side in remote]
        found: list[list[Row]] = [[] for _ in remote]
        for name, kind, full, small in remote[0].programs:
            if names and not names & {name, kind}:
                continue
            size = small if is_small or native is None else full
            theirs: list[dict[str, Any]] = []
            ours: list[list[dict[str, Any]]] = [[] for _ in remote]
            for _ in range(rounds + 1):
                if native is not None:
                    theirs.append(native.run(name, size))
                for side, runs in zip(remote, ours, strict=True):
                    runs.append(side.run(name, size))
            for rows, runs in zip(found, ours, strict=True):
                rows.append(row(name, kind, theirs, runs))
        return pool.device_kind, [Link(*each) for each in zip([0.0, *added], waits, found, strict=True)]


def ratios(link: Link, near: Link) -> list[float]:
    """Return how many times as long each program takes over ``link``: as native CuPy, or as ``near`` without a GPU."""
    return [each.ratio or each.warm / beside.warm for each, beside in zip(link.rows, near.rows, strict=True)]


def show(links: list[Link]) -> None:
    """Print the table and the means."""
    near = links[0]
    beside = _beside(near)
    table = Table(title=f"programs from afar: milliseconds, and times as long as {beside}")
    for heading in ("kind", "program"):
        table.add_column(heading)
    for heading in ("native", "trips", *(_length(link) for link in links)):
        table.add_column(heading, justify="right")
    per_link = [ratios(link, near) for link in links]
    for number, each in enumerate(near.rows):
        times = [
            f"{1e3 * link.rows[number].warm:.2f} ({found[number]:.2f})"
            for link, found in zip(links, per_link, strict=True)
        ]
        native = f"{1e3 * each.native:.2f}" if each.native else ""
        table.add_row(each.kind, each.name, native, str(each.costs.get("round_trips", "")), *times)
    console = Console(width=None if sys.stdout.isatty() else 180)
    console.print(table)
    for link, found in zip(links, per_link, strict=True):
        mean = geometric_mean(found) or 0.0
        console.print(
            f"{_length(link)}: {mean:.2f} times as long as {beside} (geometric mean), "
            f"an empty wait {1e3 * link.wait:.2f} ms"
        )


def _beside(near: Link) -> str:
    return "native CuPy" if any(each.native for each in near.rows) else "on the host's own way"


def _length(link: Link) -> str:
    return f"{1e3 * link.added:g} ms" if link.added else "here"


def judged(links: list[Link]) -> dict[str, Any]:
    """Return all that a run has found."""
    return {
        "links": [
            {
                "round_trip_seconds": link.added,
                "wait_seconds": link.wait,
                "compared_with": _beside(links[0]),
                "geometric_mean": geometric_mean(ratios(link, links[0])),
                "rows": [{**asdict(each), "ratio": each.ratio} for each in link.rows],
            }
            for link in links
        ]
    }


def is_wrong(links: list[Link]) -> bool:
    """Tell whether anything came out differently."""
    return any(each.verdict == "WRONG" for link in links for each in link.rows)
