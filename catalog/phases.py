"""What a recorded run of ``benchmarks/sharing.py`` says of the systems whose promise it tried.

A run keeps one phase per policy. Each phase becomes figures that name system, quantity, hardware, commit and file, so
that a verdict can rest on them. A phase that the run lacks gives none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["FIGURES", "figures_of"]

_Number = Callable[[dict[str, Any], dict[str, Any]], float]

#: System, figure, what is counted, unit, and how it is worked out from the system's phase and the whole run.
_ALL: tuple[tuple[str, str, str, str, _Number], ...] = (
    ("gemini", "request", "share of the device of a session that requests 50 % beside another", "%",
     lambda phase, _: 100 * phase["part"]["one"]),
    ("gemini", "limit", "share of the device of a session that is limited to 30 %", "%",
     lambda phase, _: 100 * phase["part"]["two"]),
    ("gaiagpu", "target", "share of the device of a session with a hard target of 30 %", "%",
     lambda phase, _: 100 * phase["part"]["one"]),
    ("gaiagpu", "growth", "share of the device of an elastic session that requests 20 %", "%",
     lambda phase, _: 100 * phase["part"]["two"]),
    ("tgs", "production-kept", "rate that production keeps beside an opportunistic session", "%",
     lambda phase, _: 100 * phase["production_beside"] / phase["production_alone"]),
    ("tgs", "harvest", "share of the device that the opportunistic session uses", "%",
     lambda phase, _: 100 * phase["part"]["two"]),
    ("tgs", "harvest-to-antman", "what the opportunistic session uses, against the policy antman in the same run", "x",
     lambda phase, run: float(phase["part"]["two"] / run["antman: promise"]["part"]["two"])),
    ("antman", "production-kept", "rate that the guaranteed session keeps beside an opportunistic one", "%",
     lambda phase, _: 100 * phase["production_beside"] / phase["production_alone"]),
    ("antman", "harvest", "share of the device that the opportunistic session uses", "%",
     lambda phase, _: 100 * phase["part"]["two"]),
    ("reef", "added-latency", "median latency added to short operations by a best-effort session of 2 ms kernels", "%",
     lambda phase, _: 100 * (phase["beside"]["p50_ms"] / phase["alone"]["p50_ms"] - 1)),
    ("reef", "throughput-kept", "share of the device that the best-effort session keeps beside them", "%",
     lambda phase, _: 100 * phase["part"]["one"]),
    ("paella", "short-median", "median latency of short operations beside a long job", "ms",
     lambda phase, _: float(phase["p50_ms"])),
)  # fmt: skip

#: The figures that a verdict may name, by system.
FIGURES: dict[str, tuple[str, ...]] = {
    system: tuple(name for of, name, *_ in _ALL if of == system) for system in dict.fromkeys(each[0] for each in _ALL)
}


def figures_of(run: Any) -> Iterator[dict[str, Any]]:
    """Yield the figures of a run as :class:`~catalog.measured.Measured` takes them; none if it is another record."""
    if not isinstance(run, dict) or run.get("benchmark") != "sharing" or run.get("is_quick") is True:
        return
    about = {
        "hardware": run.get("machine", {}).get("gpu") or run.get("device", ""),
        "commit": str(run.get("commit", "")),
        "recorded": str(run.get("date", ""))[:10],
    }
    phases = run.get("figures", {})
    for system, name, quantity, unit, number in _ALL:
        phase = phases.get(f"{system}: promise")
        if phase:
            value = round(number(phase, phases), 2)
            yield {"system": system, "figure": name, "quantity": quantity, "value": value, "unit": unit,
                   "policy": system, **about}  # fmt: skip
