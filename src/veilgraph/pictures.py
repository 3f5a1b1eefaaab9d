"""Pictures as SVG, to be looked at or read aloud: bars, lines, points. Knows nothing of what it draws."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

PALE = "#8a98a8"
COLOURS = ("#1f6feb", "#d1672a", "#2c974b", "#8250df", "#cf222e", "#57606a", "#bf8700", "#0550ae")


def _drawing(width: float, height: float, description: str, parts: Sequence[str]) -> str:
    """An SVG that can be read aloud, in a page or as a file."""
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' role='img' viewBox='0 0 {width} {height}' "
        f"font-family='system-ui, sans-serif' font-size='13'>"
        f"<title>{html.escape(description)}</title>{''.join(parts)}</svg>"
    )


def bars(values: Mapping[str, float], description: str) -> str:
    """Horizontal bars from 0 to the largest value (at least 1), as an SVG with alternative text."""
    row, width, left = 30, 720, 300
    most = max([1.0, *values.values()])
    parts: list[str] = []
    for i, (name, value) in enumerate(values.items()):
        y = i * row + 6
        parts.append(
            f"<text x='{left - 10}' y='{y + 14}' text-anchor='end'>{html.escape(name)}</text>"
            f"<rect x='{left}' y='{y}' width='{max(value, 0) / most * (width - left - 70):.1f}' height='19' fill='#1f6feb' rx='3'/>"
            f"<text x='{left + max(value, 0) / most * (width - left - 70) + 8:.1f}' y='{y + 14}'>{value:.3f}</text>"
        )
    return _drawing(width, len(values) * row + 8, description, parts)


def lines(
    series: Mapping[str, Sequence[tuple[float, float]]],
    x_label: str,
    y_label: str,
    description: str,
    *,
    across: Mapping[str, float] | None = None,
    logarithmic: bool = False,
    pale: Sequence[str] = (),
    bottom: float = 0.0,
) -> str:
    """Lines on common axes (``pale`` ones dashed and grey), and levels drawn ``across``, as an SVG with alternative text.

    The upright axis begins at ``bottom``, or at the lowest point.
    """
    width, height, left, right, top, below = 720, 340, 64, 170, 18, 48
    points = [point for found in series.values() for point in found]
    if not points:
        return ""
    level = dict(across or {})

    def place(x: float) -> float:
        return math.log(x) if logarithmic else x

    low_x, high_x = min(place(x) for x, _ in points), max(place(x) for x, _ in points)
    high_x = max(high_x, low_x + 1e-9)
    heights = [y for _, y in points] + list(level.values())
    marks = _round_marks(min(bottom, *heights), max(heights))
    low_y, high_y = marks[0], marks[-1]

    def at(x: float, y: float) -> tuple[float, float]:
        across_x = left + (place(x) - low_x) / (high_x - low_x) * (width - left - right)
        return across_x, height - below - (y - low_y) / (high_y - low_y) * (height - top - below)

    parts = []
    for value in marks:
        y = at(points[0][0], value)[1]
        parts.append(
            f"<line x1='{left}' y1='{y:.1f}' x2='{width - right}' y2='{y:.1f}' stroke='#e6ebf0'/>"
            f"<text x='{left - 8}' y='{y + 4:.1f}' text-anchor='end' fill='#5b6b7b'>{value:.3g}</text>"
        )
    for x in _ticks(sorted({x for x, _ in points}), logarithmic):
        parts.append(
            f"<text x='{at(x, low_y)[0]:.1f}' y='{height - below + 18}' text-anchor='middle' fill='#5b6b7b'>{x:.3g}</text>"
        )
    labels: list[tuple[float, str, str]] = []
    for i, (name, found) in enumerate(series.items()):
        colour, dash = (PALE, " stroke-dasharray='6 4'") if name in pale else (COLOURS[i % len(COLOURS)], "")
        path = [at(x, y) for x, y in sorted(found)]
        drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in path)
        parts.append(f"<polyline fill='none' stroke='{colour}' stroke-width='2.5' points='{drawn}'{dash}/>")
        if len(path) <= 40 and name not in pale:
            parts += [f"<circle cx='{x:.1f}' cy='{y:.1f}' r='3.5' fill='{colour}'/>" for x, y in path]
        labels.append((path[-1][1], name, colour))
    for name, value in level.items():
        y = at(points[0][0], value)[1]
        parts.append(
            f"<line x1='{left}' y1='{y:.1f}' x2='{width - right}' y2='{y:.1f}' stroke='{PALE}' stroke-dasharray='6 4'/>"
        )
        labels.append((y, name, "#5b6b7b"))
    lowest = -1e9
    for y, name, colour in sorted(labels):
        lowest = max(y, lowest + 16)
        parts.append(
            f"<text x='{width - right + 8}' y='{lowest + 4:.1f}' fill='{colour}'>{html.escape(name)}</text>"
        )
    parts.append(
        f"<text x='{left}' y='{height - 8}' fill='#1d2733'>{html.escape(x_label)}</text>"
        f"<text x='{left}' y='12' fill='#1d2733'>{html.escape(y_label)}</text>"
    )
    return _drawing(width, height, description, parts)


def _round_marks(low: float, high: float) -> list[float]:
    """Four to six round numbers that enclose a range."""
    span = max(high - low, 1e-9)
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if span / (power * m) <= 5)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [step * k for k in range(first, max(last, first + 1) + 1)]


def _ticks(values: Sequence[float], logarithmic: bool) -> list[float]:
    """The values themselves if they are few, else five of them or five between."""
    if len(values) <= 9:
        return list(values)
    if logarithmic:
        return [values[round(i * (len(values) - 1) / 4)] for i in range(5)]
    return [values[0] + (values[-1] - values[0]) * i / 4 for i in range(5)]


def scatter(points: Any, groups: Sequence[str], description: str) -> str:
    """Points in the plane, coloured by group, as an SVG with alternative text."""
    width, height, edge, legend = 720, 420, 14, 190
    if not len(points):
        return ""
    low, high = points.min(0), points.max(0)
    span = [max(float(high[i] - low[i]), 1e-9) for i in (0, 1)]
    names = sorted(
        set(groups),
        key=lambda name: (name == "others", -groups.count(name) if isinstance(groups, list) else 0),
    )
    colour = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    parts = []
    for (x, y), group in zip(points, groups):
        at_x = edge + (float(x) - float(low[0])) / span[0] * (width - legend - 2 * edge)
        at_y = height - edge - (float(y) - float(low[1])) / span[1] * (height - 2 * edge)
        parts.append(
            f"<circle cx='{at_x:.1f}' cy='{at_y:.1f}' r='3' fill='{colour[group]}' fill-opacity='.55'/>"
        )
    for i, name in enumerate(names):
        y = 24 + 20 * i
        parts.append(
            f"<circle cx='{width - legend + 12}' cy='{y - 4}' r='5' fill='{colour[name]}'/>"
            f"<text x='{width - legend + 24}' y='{y}'>{html.escape(name or 'no kind')}</text>"
        )
    return _drawing(width, height, description, parts)
