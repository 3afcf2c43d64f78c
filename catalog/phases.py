"""What a recorded run of ``benchmarks/sharing.py`` says of the systems whose promise it tried.

A run keeps one phase per policy. Each phase becomes figures that name system, quantity, hardware, commit and file, so
that a verdict can rest on them. A phase that the run lacks gives none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from catalog.figures import FIGURES

__all__ = ["figures_of", "policy_figures", "policy_of"]

_Number = Callable[[dict[str, Any]], float]

#: How a system's figures are worked out from its phase.
_NUMBERS: dict[tuple[str, str], _Number] = {
    ("gemini", "request"): lambda phase: 100 * phase["part"]["one"],
    ("gemini", "limit"): lambda phase: 100 * phase["part"]["two"],
    ("kubeshare", "request"): lambda phase: 100 * phase["part"]["one"],
    ("kubeshare", "limit"): lambda phase: 100 * phase["part"]["two"],
    ("gaiagpu", "target"): lambda phase: 100 * phase["part"]["one"],
    ("gaiagpu", "growth"): lambda phase: 100 * phase["part"]["two"],
    ("tgs", "production-kept"): lambda phase: 100 * phase["production_beside"] / phase["production_alone"],
    ("tgs", "harvest"): lambda phase: 100 * phase["part"]["two"],
    ("antman", "production-kept"): lambda phase: 100 * phase["production_beside"] / phase["production_alone"],
    ("antman", "harvest"): lambda phase: 100 * phase["part"]["two"],
    ("reef", "added-latency"): lambda phase: 100 * (phase["beside"]["p50_ms"] / phase["alone"]["p50_ms"] - 1),
    ("reef", "throughput-kept"): lambda phase: 100 * phase["part"]["one"],
    ("orion", "production-kept"): lambda phase: 100 * phase["production_beside"] / phase["production_alone"],
    ("orion", "harvest"): lambda phase: 100 * phase["part"]["two"],
    ("muxflow", "production-kept"): lambda phase: 100 * phase["production_beside"] / phase["production_alone"],
    ("muxflow", "harvest"): lambda phase: 100 * phase["part"]["two"],
    ("iadeep", "throughput"): lambda phase: phase["pausing_together"] / phase["pausing_alone"],
    ("paella", "short-median"): lambda phase: float(phase["p50_ms"]),
    ("csur2017-survey", "fairness"): lambda phase: 100 * max(phase["worst_window_error"].values()),
}

#: Whose question another policy answers than one of its own name, and the phase of the run that asks it.
_OTHERS = {"csur2017-survey": ("fair_share", "fair_share: shares")}


def policy_of(system: str) -> str:
    """Return the policy under which the figures of ``system`` are measured."""
    return _OTHERS[system][0] if system in _OTHERS else system


def policy_figures(system: str, phase: dict[str, Any]) -> dict[str, float]:
    """Return the figures that the phase of ``system`` gives, by their names."""
    return {name: number(phase) for (of, name), number in _NUMBERS.items() if of == system}


def figures_of(run: Any) -> Iterator[dict[str, Any]]:
    """Yield the figures of a run as :class:`~catalog.measured.Measured` takes them; none if it is another record."""
    if not isinstance(run, dict) or run.get("benchmark") != "sharing" or run.get("is_quick") is True:
        return
    about = {
        "hardware": run.get("machine", {}).get("gpu") or run.get("device", ""),
        "commit": str(run.get("commit", "")),
        "recorded": str(run.get("date", ""))[:10],
    }
    for (system, name), value in _all_figures(run.get("figures", {})).items():
        quantity, unit = FIGURES[system, name]
        yield {"system": system, "figure": name, "quantity": quantity, "value": round(value, 2), "unit": unit,
               "policy": policy_of(system), **about}  # fmt: skip


def _all_figures(phases: dict[str, Any]) -> dict[tuple[str, str], float]:
    found = {
        (system, name): value
        for system in dict.fromkeys(system for system, _ in _NUMBERS)
        if (phase := phases.get(_OTHERS[system][1] if system in _OTHERS else f"{system}: promise"))
        for name, value in policy_figures(system, phase).items()
    }
    if ("tgs", "harvest") in found and ("antman", "harvest") in found:
        found["tgs", "harvest-to-antman"] = found["tgs", "harvest"] / found["antman", "harvest"]
    return found
