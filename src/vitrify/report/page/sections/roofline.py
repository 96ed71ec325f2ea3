"""The roofline: what each operator reaches of the chip's two limits, multiplications and far memory."""

from __future__ import annotations

import math
from typing import NamedTuple

from vitrify.core.words import count_text
from vitrify.report.page.charts import HALF, HEIGHT, gridline
from vitrify.report.page.markup import Html, brief, tag
from vitrify.report.page.section import Section
from vitrify.report.page.sections.times import WORDS, style_of
from vitrify.results import ProfileResult
from vitrify.results.profiling import EstimatedRow, RooflineRow

MOST_SPOTS = 800
TALL = HEIGHT + 150
LEFT, RIGHT, TOP, BOTTOM = 74, 16, 14, 40


class Spot(NamedTuple):
    """An operator: MACs a byte of far memory, MACs a second, its share of the time, and the row."""

    density: float
    speed: float
    share: float
    row: EstimatedRow


class Axes(NamedTuple):
    """Powers of ten at the ends of both axes."""

    x0: float
    x1: float
    y0: float
    y1: float

    def x(self, value: float) -> float:
        """Return the place of MACs a byte."""
        return LEFT + (math.log10(value) - self.x0) / (self.x1 - self.x0) * (HALF - LEFT - RIGHT)

    def y(self, value: float) -> float:
        """Return the place of MACs a second."""
        return TALL - BOTTOM - (math.log10(value) - self.y0) / (self.y1 - self.y0) * (TALL - TOP - BOTTOM)


def roofline(profile: ProfileResult) -> Section | None:
    """Return the chart of a chip whose limits are known, of operators that multiply on its NPU."""
    limits = profile.roofline
    if limits is None or not limits.peak_macs_per_s or not limits.bytes_per_s:
        return None
    spots = _spots(profile)
    if not spots:
        return None
    axes = _axes(spots, limits)
    styles = sorted({style_of(spot.row.bound) for spot in spots})
    key = tag("p", [[tag("i", class_=style), WORDS.get(style, style)] for style in styles], class_="key")
    marks = [_mark(spot, axes) for spot in sorted(spots, key=lambda spot: -spot.share)]
    chart = tag("svg", _grid(axes), _roof(limits, axes), marks, viewBox=f"0 0 {HALF} {TALL}", class_="chart half",
                role="img", aria_label="Roofline: MACs a second over MACs a byte of far memory")
    text = (f"Each spot is an operator, as large as its share of the time. Left of the bend at {limits.ridge:.3g} MACs "
            f"a byte the far memory is the limit, right of it the multipliers. {limits.source}.")
    return Section.of("roofline", "Roofline", tag("p", text), key, chart)


def _spots(profile: ProfileResult) -> list[Spot]:
    found = []
    for row in profile.operators:
        if not isinstance(row, EstimatedRow) or row.placement != "npu" or not row.macs or not row.time_ms:
            continue
        moved = row.far_bytes if row.far_bytes else row.bytes
        if moved:
            found.append(Spot(row.macs / moved, row.macs / row.time_ms * 1e3, row.share or 0.0, row))
    return sorted(found, key=lambda spot: -spot.share)[:MOST_SPOTS]


def _axes(spots: list[Spot], limits: RooflineRow) -> Axes:
    densities = [*(spot.density for spot in spots), limits.ridge * 3, limits.ridge / 3]
    speeds = [*(spot.speed for spot in spots), limits.peak_macs_per_s]
    return Axes(math.log10(min(densities)) - 0.15, math.log10(max(densities)) + 0.15, math.log10(min(speeds)) - 0.2,
                math.log10(max(speeds)) + 0.2)


def _grid(axes: Axes) -> list[Html]:
    lines = [gridline(axes.y(10.0 ** power), count_text(10.0 ** power), LEFT, HALF)
             for power in range(math.ceil(axes.y0), math.floor(axes.y1) + 1)]
    for power in range(math.ceil(axes.x0), math.floor(axes.x1) + 1):
        x = axes.x(10.0 ** power)
        lines += [tag("line", x1=f"{x:.1f}", x2=f"{x:.1f}", y1=TOP, y2=TALL - BOTTOM, class_="gridline"),
                  tag("text", f"{10.0 ** power:g}", x=f"{x:.1f}", y=TALL - BOTTOM + 16, class_="axis mid")]
    return [*lines, tag("text", "MACs a byte of far memory", x=(LEFT + HALF) / 2, y=TALL - 6, class_="axis mid"),
            tag("text", "MACs/s", x=4, y=TOP, class_="axis")]


def _roof(limits: RooflineRow, axes: Axes) -> list[Html]:
    start, end = 10.0 ** axes.x0, 10.0 ** axes.x1
    low = max(start * limits.bytes_per_s, 10.0 ** axes.y0)
    points = [(low / limits.bytes_per_s, low), (limits.ridge, limits.peak_macs_per_s), (end, limits.peak_macs_per_s)]
    path = " L".join(f"{axes.x(x):.1f} {axes.y(y):.1f}" for x, y in points)
    return [tag("path", d=f"M{path}", class_="roof"),
            tag("text", f"{count_text(limits.peak_macs_per_s)}MACs/s", x=HALF - RIGHT - 4,
                y=f"{axes.y(limits.peak_macs_per_s) - 6:.1f}", class_="axis end strong")]


def _mark(spot: Spot, axes: Axes) -> Html:
    row = spot.row
    name = brief(f"{row.operator} {row.node}")
    label = f"{name}: {count_text(spot.speed)}MACs/s, {spot.density:.3g} MACs a byte, {row.time_ms:.3g} ms"
    return tag("circle", tag("title", label), cx=f"{axes.x(spot.density):.1f}", cy=f"{axes.y(spot.speed):.1f}",
               r=f"{3 + 40 * math.sqrt(spot.share) * 0.45:.1f}", class_=f"spot {style_of(row.bound)}-f",
               data_ops=row.index)
