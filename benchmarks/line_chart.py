"""Line charts over time as SVG: panels below each other with a common time axis. No library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Panel", "render_chart"]

WIDTH, PANEL_HEIGHT = 900, 190
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 34, 26
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b")
_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)

Line = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    """`lines` by label: points of (minutes, value)."""

    title: str
    lines: Mapping[str, Line]


def render_chart(panels: Sequence[Panel], minutes: float, events: Sequence[tuple[float, str]]) -> str:
    """`events` are (minutes, label), and marked in all panels."""
    height = len(panels) * PANEL_HEIGHT
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11" fill="#333">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
    ]
    for number, panel in enumerate(panels):
        parts += [
            f'<g transform="translate(0,{number * PANEL_HEIGHT})">',
            *_panel(panel, minutes, events),
            "</g>",
        ]
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel, minutes: float, events: Sequence[tuple[float, str]]) -> list[str]:
    top = _ceiling(max((y for line in panel.lines.values() for _, y in line), default=1.0))
    right, bottom = WIDTH - RIGHT, PANEL_HEIGHT - BOTTOM

    def x(at: float) -> float:
        return LEFT + (right - LEFT) * at / max(minutes, 1e-9)

    def y(value: float) -> float:
        return bottom - (bottom - TOP) * value / top

    parts = [f'<text x="{LEFT}" y="20" font-weight="bold">{escape(panel.title)}</text>']
    for step in range(5):
        value = top * step / 4
        parts += [
            f'<line x1="{LEFT}" y1="{y(value):.1f}" x2="{right}" y2="{y(value):.1f}" stroke="#ddd"/>',
            f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:,.6g}</text>',
        ]
    for step in range(7):
        at = minutes * step / 6
        parts.append(f'<text x="{x(at):.1f}" y="{bottom + 16}" text-anchor="middle">{at:.3g} min</text>')
    for number, (at, label) in enumerate(events):
        label_y = TOP + 8 + number % 2 * 11  # neighbours do not overlap
        parts += [
            f'<line x1="{x(at):.1f}" y1="{TOP}" x2="{x(at):.1f}" y2="{bottom}" stroke="#999" stroke-dasharray="4 3"/>',
            f'<text x="{x(at) + 3:.1f}" y="{label_y}" fill="#777" font-size="9">{escape(label)}</text>',
        ]
    for number, (label, line) in enumerate(panel.lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in line)
        parts += [
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.3"/>',
            f'<text x="{right + 10}" y="{TOP + 12 + 15 * number}" fill="{colour}">{escape(label)}</text>',
        ]
    return parts


def _ceiling(value: float) -> float:
    """The next round number."""
    if value <= 0:
        return 1.0
    magnitude = 1.0
    while magnitude * 10 <= value:
        magnitude *= 10
    while magnitude > value:
        magnitude /= 10
    return next(magnitude * nice for nice in _NICE if magnitude * nice >= value)
