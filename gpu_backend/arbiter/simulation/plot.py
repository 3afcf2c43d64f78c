"""The policies side by side in one figure."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gpu_backend.arbiter.simulation.outcome import Outcome, quantile

__all__ = ["save"]

_PARTS = [step / 200 for step in range(201)]


def save(outcomes: dict[str, Outcome], path: Path) -> None:
    """Save the distributions of share error and delay, and utilisation, by policy. The suffix names the format."""
    figure = Figure(figsize=(13, 4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for name, outcome in outcomes.items():
        _curve(left, name, [100 * error for error in outcome.share_errors])
        _curve(middle, name, [1e3 * max(delay, 1e-5) for delay in outcome.delays])
    left.set(title="Share error over 5 s", xlabel="% of the fair share", ylabel="part of windows", xscale="symlog")
    middle.set(title="Delay of short cells", xlabel="ms", ylabel="part of cells", xscale="log")
    names = list(outcomes)
    right.barh(names, [100 * outcomes[name].utilisation for name in names])
    right.invert_yaxis()
    right.set(title="Work done while some waited", xlabel="% of the device's time")
    for axes in (left, middle):
        if axes.lines:
            axes.legend(fontsize="small")
    figure.savefig(path)


def _curve(axes: Axes, name: str, values: list[float]) -> None:
    ordered = sorted(values)
    if ordered:
        axes.plot([quantile(ordered, part) for part in _PARTS], _PARTS, label=name)
