"""A scatter plot of estimates against measurements, both logarithmic, as SVG text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judge import Judged

SIZE, LEFT, TOP, SPACE = 560, 64, 16, 44
LOW, HIGH = -1, 4
"""Powers of ten, of milliseconds."""
COLOURS = {"imx93 NPU": "#0072b2", "imx95 NPU": "#d55e00", "imx8mp NPU": "#009e73", "imx93 CPU": "#cc79a7",
           "imx8mp CPU": "#8a8a8a", "mcxn947 NPU": "#b58900", "mcxn947 CPU": "#5b4bb5"}
"""Colours that stay apart for most eyes."""


def plot(found: Sequence[Judged]) -> str:
    """Return the picture: a dot for each row, full in the second half, a ring in the first."""
    width, height = SIZE + LEFT + 150, SIZE + TOP + SPACE
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
             'font-family="sans-serif" font-size="12">',
             "<title>Estimated against measured latency</title>",
             f'<rect width="{width}" height="{height}" fill="#ffffff"/>', *_grid(), *_dots(found),
             *_legend([group for group in COLOURS if any(one.row.group == group for one in found)]), "</svg>"]
    return "\n".join(parts) + "\n"


def _x(ms: float) -> float:
    return LEFT + SIZE * (min(max(math.log10(ms), LOW), HIGH) - LOW) / (HIGH - LOW)


def _y(ms: float) -> float:
    return TOP + SIZE - (_x(ms) - LEFT)


def _grid() -> Iterable[str]:
    """The frame, a line for each power of ten, the diagonal, and the two lines a factor of two away."""
    for power in range(LOW, HIGH + 1):
        ms, label = 10.0 ** power, f"{10.0 ** power:g}"
        yield (f'<path d="M{_x(ms):.1f} {TOP}V{TOP + SIZE}M{LEFT} {_y(ms):.1f}H{LEFT + SIZE}" stroke="#dddddd" '
               'fill="none"/>')
        yield f'<text x="{_x(ms):.1f}" y="{TOP + SIZE + 16}" text-anchor="middle" fill="#333333">{label}</text>'
        yield f'<text x="{LEFT - 6}" y="{_y(ms) + 4:.1f}" text-anchor="end" fill="#333333">{label}</text>'
    for factor, dash in ((1.0, ""), (2.0, ' stroke-dasharray="5 4"'), (0.5, ' stroke-dasharray="5 4"')):
        low, high = 10.0 ** LOW * max(1.0, 1 / factor), 10.0 ** HIGH * min(1.0, 1 / factor)
        yield (f'<path d="M{_x(low):.1f} {_y(low * factor):.1f}L{_x(high):.1f} {_y(high * factor):.1f}" '
               f'stroke="#555555" fill="none"{dash}/>')
    yield (f'<text x="{LEFT + SIZE / 2}" y="{TOP + SIZE + 36}" text-anchor="middle" fill="#333333">measured, ms</text>'
           f'<text transform="translate(16 {TOP + SIZE / 2}) rotate(-90)" text-anchor="middle" fill="#333333">'
           "estimated, ms</text>")


def _dots(found: Sequence[Judged]) -> Iterable[str]:
    for one in sorted(found, key=lambda one: not one.row.first):
        colour = COLOURS[one.row.group]
        what = f"{one.row.model}, {one.row.group}: {one.row.ms:g} ms measured, {one.estimate.likely:.3g} estimated"
        fill = "#ffffff" if one.row.first else colour
        yield (f'<circle cx="{_x(one.row.ms):.1f}" cy="{_y(one.estimate.likely):.1f}" r="4" fill="{fill}" '
               f'fill-opacity="0.8" stroke="{colour}"><title>{escape(what)}</title></circle>')


def _legend(groups: Sequence[str]) -> Iterable[str]:
    x = LEFT + SIZE + 20
    for index, group in enumerate(groups):
        y = TOP + 14 + 20 * index
        yield (f'<circle cx="{x}" cy="{y - 4}" r="4" fill="{COLOURS[group]}"/>'
               f'<text x="{x + 10}" y="{y}" fill="#333333">{group}</text>')
    y = TOP + 34 + 20 * len(groups)
    yield (f'<text x="{x - 4}" y="{y}" fill="#333333">full: second half</text>'
           f'<text x="{x - 4}" y="{y + 18}" fill="#333333">ring: first half</text>'
           f'<text x="{x - 4}" y="{y + 36}" fill="#333333">dashed: factor 2</text>')
