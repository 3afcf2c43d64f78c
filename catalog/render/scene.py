"""A figure as points, lines and words in one plane, before any library draws it.

``svg`` draws it at once, in the colours of the notebook's theme; ``figure`` hands it to matplotlib for those who
want to change or print it. The layout is decided here and in the results, once.
"""

from __future__ import annotations

import msgspec

__all__ = ["CHARACTER", "Dot", "Line", "Scene", "Words"]

#: How wide a character of a label may be at a font size of 12, in the widest of the usual fonts (DejaVu Sans).
CHARACTER = 7.4


class Dot(msgspec.Struct, frozen=True):
    """A labelled point. ``group`` chooses colour and shape together."""

    x: float
    y: float
    label: str
    group: str
    hint: str = ""
    """Longer text, shown on hovering and read by screen readers."""
    above: bool = False
    """The label stands above the point, leaving both sides to lines, instead of to its right."""

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Return left, top, right and bottom of point and label together."""
        length = CHARACTER * len(self.label)
        if self.above:
            return (self.x - length / 2, self.y - 22, self.x + length / 2, self.y + 7)
        return (self.x - 7, self.y - 9, self.x + 10 + length, self.y + 9)


class Line(msgspec.Struct, frozen=True):
    """A curve between two points, with an arrow at its end unless it holds both ways."""

    x: float
    y: float
    x_to: float
    y_to: float
    group: str
    arrow: bool
    hint: str = ""
    straight: bool = False


class Words(msgspec.Struct, frozen=True):
    """A label in the margin: a year below (``axis='x'``) or a lane's name at the left (``axis='y'``)."""

    at: float
    text: str
    axis: str


class Scene(msgspec.Struct, frozen=True):
    """Everything that is drawn, in units of one label's height; y grows downwards."""

    title: str
    width: float
    height: float
    dots: tuple[Dot, ...]
    lines: tuple[Line, ...] = ()
    words: tuple[Words, ...] = ()

    @property
    def dot_groups(self) -> tuple[str, ...]:
        """The groups of the points, in order of appearance."""
        return tuple(dict.fromkeys(dot.group for dot in self.dots))

    @property
    def line_groups(self) -> tuple[str, ...]:
        """The groups of the lines, in order of appearance."""
        return tuple(dict.fromkeys(line.group for line in self.lines))
