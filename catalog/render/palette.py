"""Colours, shapes and dashes that tell groups apart, on light and on dark ground, with and without colour vision.

The colours are mid-tones after P. Tol's "bright" scheme, darkened or lightened until each has a contrast of at
least 3:1 against both white and JupyterLab's dark ground (``tests/unit/catalog/test_render.py`` computes it).
"""

from __future__ import annotations

__all__ = ["COLOURS", "colour", "dash", "shape"]

COLOURS = ("#4a82bd", "#d9566a", "#2f9150", "#a97f0f", "#8d6cc9", "#2a929c", "#c0622b", "#80868f")

_DASHES = ("", "6 3", "2 3", "9 3 2 3", "1 3", "12 4")

#: Outlines in half-widths; an empty one is a circle.
_SHAPES: tuple[tuple[tuple[float, float], ...], ...] = (
    (),
    ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
    ((0, -1.15), (1.1, 0.85), (-1.1, 0.85)),
    ((-1.1, -0.85), (1.1, -0.85), (0, 1.15)),
    ((-1.2, -0.5), (1.2, -0.5), (1.2, 0.5), (-1.2, 0.5)),
    ((-0.5, -1.2), (0.5, -1.2), (0.5, 1.2), (-0.5, 1.2)),
    ((-0.6, -1.1), (0.6, -1.1), (1.2, 0), (0.6, 1.1), (-0.6, 1.1), (-1.2, 0)),
)


def colour(group: int) -> str:
    """Return the colour of the group with that number; it comes round again after the last."""
    return COLOURS[group % len(COLOURS)]


def shape(group: int) -> tuple[tuple[float, float], ...]:
    """Return the outline of the group's points in half-widths, empty for a circle."""
    # A colour that comes round again comes with another shape.
    return _SHAPES[(group + group // len(COLOURS)) % len(_SHAPES)]


def dash(group: int) -> str:
    """Return the group's ``stroke-dasharray``."""
    return _DASHES[group % len(_DASHES)]
