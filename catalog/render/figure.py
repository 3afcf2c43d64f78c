"""Draws a scene with matplotlib, for those who want to change, combine or print it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog.render.palette import colour, dash, shape
from catalog.render.scene import Scene

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw", "save"]

_PIXELS_PER_INCH = 90


def draw(scene: Scene, axes: Axes | None = None) -> Axes:
    """Draw ``scene`` and return the axes.

    Parameters
    ----------
    scene
        What to draw.
    axes
        Where; by default a new figure of pyplot, so that a notebook shows it.

    Raises
    ------
    ModuleNotFoundError
        Without matplotlib, with the way to install it and the way to do without.
    """
    if axes is None:
        axes = _new_axes(scene)
    ink: dict[str, Any] = {"color": axes.xaxis.label.get_color(), "fontsize": 9}
    for words in scene.words:
        if words.axis == "x":
            axes.axvline(words.at, color=ink["color"], alpha=0.12, linewidth=0.8, zorder=0)
            axes.text(words.at, 8, words.text, ha="center", va="center", alpha=0.7, **ink)
        else:
            axes.text(20, words.at, words.text, va="center", alpha=0.7, **ink)
    _lines(scene, axes)
    _dots(scene, axes, ink)
    axes.set(xlim=(0, scene.width), ylim=(scene.height, 0), title=scene.title)
    axes.set_axis_off()
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper left", bbox_to_anchor=(0, -0.02), ncols=4, frameon=False, fontsize=8)
    return axes


def save(scene: Scene, path: Path) -> None:
    """Draw ``scene`` into a file; its ending chooses the format.

    Raises
    ------
    ModuleNotFoundError
        Without matplotlib.
    ValueError
        If matplotlib does not know the format.
    """
    with _explained():
        from matplotlib.figure import Figure
    figure = Figure(figsize=_size(scene), layout="constrained")
    draw(scene, figure.subplots())
    figure.savefig(path)


def _new_axes(scene: Scene) -> Axes:
    with _explained():
        from matplotlib import pyplot
    _, axes = pyplot.subplots(figsize=_size(scene), layout="constrained")
    return axes


def _size(scene: Scene) -> tuple[float, float]:
    """Return width and height in inches, with room for a title above and a legend below."""
    return (max(scene.width / _PIXELS_PER_INCH, 7.0), scene.height / _PIXELS_PER_INCH + 1.5)


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Turn a missing matplotlib into a sentence that says what to do."""
    try:
        yield
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "this figure needs matplotlib, which is not installed here: pip install matplotlib; "
            "the one that a notebook shows by itself needs nothing",
            name="matplotlib",
        ) from None


def _dots(scene: Scene, axes: Axes, ink: dict[str, Any]) -> None:
    lanes = {words.text for words in scene.words if words.axis == "y"}
    for number, group in enumerate(scene.dot_groups):
        dots = [dot for dot in scene.dots if dot.group == group]
        # matplotlib's y axis is turned round here, so the outlines are too.
        marker: Any = [(x, -y) for x, y in shape(number)] or "o"
        xs, ys = [dot.x for dot in dots], [dot.y for dot in dots]
        axes.scatter(
            xs, ys, s=45, marker=marker, color=colour(number), zorder=3, label=None if group in lanes else group
        )
        beside = [words.at for words in scene.words if words.text == group]
        axes.scatter([8] * len(beside), beside, s=45, marker=marker, color=colour(number))
        for dot in dots:
            if dot.above:
                axes.text(dot.x, dot.y - 8, dot.label, va="bottom", ha="center", zorder=4, **ink)
            else:
                axes.text(dot.x + 9, dot.y, dot.label, va="center", zorder=4, **ink)


def _lines(scene: Scene, axes: Axes) -> None:
    for number, group in enumerate(scene.line_groups):
        pattern = [float(part) for part in dash(number).split()]
        style: Any = (0, tuple(pattern)) if len(pattern) > 1 else "-"
        axes.plot([], [], color=colour(number), linestyle=style, label=group)
        for line in scene.lines:
            if line.group == group:
                arrow = {
                    "arrowstyle": "-|>" if line.arrow else "-",
                    "connectionstyle": "arc3,rad=0.16",
                    "color": colour(number),
                    "alpha": 0.75,
                    "linestyle": style,
                    "shrinkA": 5,
                    "shrinkB": 7,
                }
                axes.annotate("", (line.x_to, line.y_to), (line.x, line.y), arrowprops=arrow)
