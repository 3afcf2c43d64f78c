"""Our own figures for the systems' claims, as the benchmarks recorded them.

Any JSON file under ``benchmarks/results/`` may carry them: wherever an object in it has the key ``catalogue``,
its value is one record or a list of records::

    {"catalogue": {"system": "tgs", "quantity": "throughput of the production session", "value": 0.98, "unit": "x",
                   "conditions": "one H200, opportunistic matmuls", "recorded": "2026-11-21", "claim": "..."}}

A run of the sharing benchmark needs no such key: :mod:`catalog.phases` reads its phases. What a quick run has written
only shows that it works, and is left out.

``system``, ``quantity``, ``value`` and ``unit`` are required. ``runs`` are the values of all runs, of which ``value``
is the median. ``claim`` names the entry's claim that the figure
stands beside, if it is the same quantity; ``policy`` may say under which policy it was measured.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from catalog.paths import RESULTS
from catalog.phases import figures_of
from catalog.render.words import measured_text

__all__ = ["Measured", "in_unit", "measured"]


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """A figure that one of this project's benchmarks recorded."""

    system: str
    quantity: str
    value: float
    unit: str
    conditions: str = ""
    recorded: str = ""
    when: str = ""
    """Date and time of the run, by which the newest is known; the day alone where the run does not say."""
    claim: str = ""
    policy: str = ""
    hardware: str = ""
    commit: str = ""
    figure: str = ""
    """Name by which a verdict refers to it."""
    runs: tuple[float, ...] = ()
    """Values of the single runs, in their order; empty if it was one run."""
    file: str = ""

    def sentence(self) -> str:
        """Return the figure with its conditions and where it was recorded."""
        policy, commit = f"policy {self.policy}", f"commit {self.commit}"
        details = [self._spread(), self.conditions, policy * bool(self.policy), self.hardware]
        details += [commit * bool(self.commit), self.recorded, self.file]
        number = in_unit(measured_text(self.value), self.unit)
        return f"{self.quantity}: {number} ({'; '.join(part for part in details if part)})"

    def _spread(self) -> str:
        if len(self.runs) < 2:
            return ""
        return f"median of {len(self.runs)} runs, {measured_text(min(self.runs))} to {measured_text(max(self.runs))}"


def in_unit(number: str, unit: str) -> str:
    """Return a number, or words with numbers, in its unit: ``3x``, ``3 %``, ``3``."""
    return f"{number}{'' if unit in {'x', '1'} else ' '}{unit.replace('1', '')}"


@functools.cache
def measured(root: Path = RESULTS) -> dict[str, tuple[Measured, ...]]:
    """Return the recorded figures by system id, the newest last; empty where there is no folder of results."""
    found: dict[str, list[Measured]] = {}
    for path in sorted(root.rglob("*.json")):
        data = msgspec.json.decode(path.read_bytes())
        if isinstance(data, dict) and data.get("is_quick") is True:
            continue
        about = {"file": f"benchmarks/results/{path.relative_to(root)}"}
        about |= {"when": data["date"]} if isinstance(data, dict) and "date" in data else {}
        for record in (*_records(data), *figures_of(data)):
            one = msgspec.convert({"when": record.get("recorded", ""), **record, **about}, Measured)
            found.setdefault(one.system, []).append(one)
    return {system: tuple(sorted(each, key=lambda one: (one.when, one.file))) for system, each in found.items()}


def _records(data: Any) -> Iterator[dict[str, Any]]:
    """Yield every record under a key ``catalogue``, however deep."""
    if isinstance(data, dict):
        for key, value in data.items():
            if key == "catalogue":
                yield from value if isinstance(value, list) else [value]
            else:
                yield from _records(value)
    elif isinstance(data, list):
        for value in data:
            yield from _records(value)
