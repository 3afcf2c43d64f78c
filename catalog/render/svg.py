"""Draws a scene as inline SVG in the colours of the page around it."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from catalog.render.palette import colour, dash, shape
from catalog.render.scene import CHARACTER, Dot, Line, Scene

__all__ = ["render"]

_LEGEND_HEIGHT = 26
_FONT = 12


def render(scene: Scene) -> str:
    """Return ``scene`` as one ``<svg>`` element with a title, a legend and a hint on every point."""
    legend, legend_height = _legend(scene)
    height = scene.height + legend_height
    body = "".join([*_margins(scene), *_lines(scene), *_dots(scene), *legend])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(scene.title)}" '
        f'width="{scene.width:.0f}" height="{height:.0f}" viewBox="0 0 {scene.width:.0f} {height:.0f}" '
        f'font-size="{_FONT}"><title>{escape(scene.title)}</title>{_arrow_heads(scene)}{body}</svg>'
    )


def _margins(scene: Scene) -> Iterator[str]:
    for words in scene.words:
        if words.axis == "x":
            yield f'<line class="grid" x1="{words.at:.1f}" x2="{words.at:.1f}" y1="20" y2="{scene.height:.1f}"/>'
            yield f'<text class="quiet" x="{words.at:.1f}" y="13" text-anchor="middle">{escape(words.text)}</text>'
        else:
            if words.text in scene.dot_groups:
                yield _marker(Dot(8, words.at, "", words.text), scene.dot_groups.index(words.text))
            yield f'<text class="quiet" x="20" y="{words.at + 4:.1f}">{escape(words.text)}</text>'


def _dots(scene: Scene) -> Iterator[str]:
    groups = scene.dot_groups
    for dot in scene.dots:
        place = f'x="{dot.x:.1f}" y="{dot.y - 10:.1f}" text-anchor="middle"'
        if not dot.above:
            place = f'x="{dot.x + 9:.1f}" y="{dot.y + 4:.1f}"'
        yield (
            f"<g><title>{escape(dot.hint or dot.label)}</title>{_marker(dot, groups.index(dot.group))}"
            f'<text class="halo" {place}>{escape(dot.label)}</text></g>'
        )


def _marker(dot: Dot, group: int) -> str:
    outline = " ".join(f"{dot.x + dx * 5:.1f},{dot.y + dy * 5:.1f}" for dx, dy in shape(group))
    if not outline:
        return f'<circle cx="{dot.x:.1f}" cy="{dot.y:.1f}" r="5" fill="{colour(group)}"/>'
    return f'<polygon points="{outline}" fill="{colour(group)}"/>'


def _lines(scene: Scene) -> Iterator[str]:
    groups = scene.line_groups
    for line in scene.lines:
        number = groups.index(line.group)
        arrow = f' marker-end="url(#{_arrow_id(number)})"' if line.arrow else ""
        hint = f"<title>{escape(line.hint)}</title>" if line.hint else ""
        yield (
            f'<path d="{_curve(line)}" fill="none" stroke="{colour(number)}" stroke-width="1.4" '
            f'stroke-opacity=".75" stroke-dasharray="{dash(number)}"{arrow}>{hint}</path>'
        )


def _curve(line: Line) -> str:
    """Return a gentle curve that begins and ends a little outside its two points."""
    dx, dy = line.x_to - line.x, line.y_to - line.y
    length = max((dx * dx + dy * dy) ** 0.5, 1.0)
    start, stop = 7 / length, 1 - 9 / length
    bend = 0.0 if line.straight else min(0.12 * length, 26) / length
    middle_x, middle_y = line.x + dx / 2 + dy * bend, line.y + dy / 2 - dx * bend
    return (
        f"M{line.x + dx * start:.1f},{line.y + dy * start:.1f}"
        f"Q{middle_x:.1f},{middle_y:.1f} {line.x + dx * stop:.1f},{line.y + dy * stop:.1f}"
    )


def _arrow_id(number: int) -> str:
    # Several outputs share one page; equal ids are harmless because equal numbers mean equal arrows.
    return f"gpu-catalogue-arrow-{number}"


def _arrow_heads(scene: Scene) -> str:
    heads = "".join(
        f'<marker id="{_arrow_id(number)}" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0,0.8 L8,4 L0,7.2 z" fill="{colour(number)}"/></marker>'
        for number in range(len(scene.line_groups))
    )
    return f"<defs>{heads}</defs>" if heads else ""


def _legend(scene: Scene) -> tuple[list[str], float]:
    """Return what explains the lines, and the points unless the margin does, with its height."""
    parts: list[str] = []
    y = scene.height - _LEGEND_HEIGHT / 2
    named = {words.text for words in scene.words if words.axis == "y"}
    dots = [(_dot_sign, number, group) for number, group in enumerate(scene.dot_groups) if group not in named]
    lines = [(_line_sign, number, group) for number, group in enumerate(scene.line_groups)]
    for row in (dots, lines):
        x = scene.width  # begin a new row
        for sign, number, group in row:
            room = 52 + CHARACTER * len(group)
            if x + room > scene.width:
                x, y = 8.0, y + _LEGEND_HEIGHT
            parts.append(sign(x, y, number) + f'<text x="{x + 26:.1f}" y="{y + 4:.1f}">{escape(group)}</text>')
            x += room
    return parts, y + _LEGEND_HEIGHT / 2 - scene.height


def _dot_sign(x: float, y: float, number: int) -> str:
    return _marker(Dot(x + 11, y, "", ""), number)


def _line_sign(x: float, y: float, number: int) -> str:
    return (
        f'<line x1="{x:.1f}" x2="{x + 20:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colour(number)}" '
        f'stroke-width="2" stroke-dasharray="{dash(number)}"/>'
    )
