"""The figures of `sharing.py` as one picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes

_OURS, _THEIRS, _FAIR = "#00796b", "#9e9e9e", "#d84315"


def save(figures: dict[str, Any], path: Path) -> None:
    """Draw what there is and save it as PNG."""
    figure, axes = pyplot.subplots(2, 2, figsize=(11, 7.5), layout="constrained")
    _shares(axes[0][0], figures.get("fair_share: shares"), "GPU time by user, 1, 2, 3 and 6 notebooks")
    _shares(axes[0][1], figures.get("fair_share: weights"), "GPU time by user, weights 1:2:4")
    _throughput(axes[1][0], figures)
    _latency(axes[1][1], figures)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _shares(ax: Axes, found: dict[str, Any] | None, title: str) -> None:
    ax.set_title(title)
    if not found:
        return
    users = list(found["fair"])
    error = [100 * found["worst_window_error"][user] for user in users]
    ax.bar(users, [100 * found["part"][user] for user in users], color=_OURS, yerr=error, capsize=4)
    for place, user in enumerate(users):
        ax.hlines(100 * found["fair"][user], place - 0.45, place + 0.45, color=_FAIR, linewidth=2)
    ax.set_ylabel(f"% of the time used (bars: worst {found['window_s']:g} s; line: fair)")


def _pairs(ax: Axes, names: list[str], ours: list[float], theirs: list[float], unit: str) -> None:
    places = range(len(names))
    ax.bar([place - 0.2 for place in places], ours, 0.38, color=_OURS, label="fair_share")
    ax.bar([place + 0.2 for place in places], theirs, 0.38, color=_THEIRS, label="driver")
    ax.set_xticks(list(places), names)
    ax.set_ylabel(unit)
    ax.set_ylim(top=1.2 * max(*ours, *theirs))  # room for the legend
    ax.legend(loc="upper left", ncols=2)


def _throughput(ax: Axes, figures: dict[str, Any]) -> None:
    ax.set_title("Work of three users together, by kernel")
    ours, theirs = figures.get("fair_share: throughput", {}), figures.get("driver: throughput", {})
    names = [name for name in ours if name in theirs]
    if names:
        alone = [max(ours[name]["alone"], theirs[name]["alone"]) for name in names]
        mine = [100 * ours[name]["together"] / one for name, one in zip(names, alone, strict=True)]
        other = [100 * theirs[name]["together"] / one for name, one in zip(names, alone, strict=True)]
        _pairs(ax, names, mine, other, "% of one user alone")
        ax.axhline(97, color=_FAIR, linewidth=1)


def _latency(ax: Axes, figures: dict[str, Any]) -> None:
    ax.set_title("A small op beside three hogs: p99, by the hogs' kernel")
    ours, theirs = figures.get("fair_share: interactive", {}), figures.get("driver: interactive", {})
    names = [name for name in ours if name in theirs and name != "alone"]
    if names:
        mine, other = [ours[name]["p99_ms"] for name in names], [theirs[name]["p99_ms"] for name in names]
        _pairs(ax, names, mine, other, "ms")
        ax.axhline(1.5, color=_FAIR, linewidth=1)
