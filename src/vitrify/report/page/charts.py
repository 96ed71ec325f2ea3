"""Charts as inline SVG; colours come from the page's style."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from vitrify.report.page.markup import Html, render, tag

HALF, WIDE, HEIGHT = 640, 1320, 220
"""Widths of charts: of those that stand beside another, and of those that have the page for themselves."""
LEFT, RIGHT, TOP, BOTTOM = 44, 8, 12, 22
MOST_BARS = 400
"""More tensors than this are shown by the worst of each neighbourhood: below two pixels nothing can be seen."""


class Bar(NamedTuple):
    """One bar: a label for the pointer, and its height."""

    label: str
    value: float


def bars(values: Sequence[Bar], unit: str, limit: float | None = None) -> Html:
    """Return a bar chart of ``values`` in order; low bars, and those under ``limit``, stand out."""
    shown = _thinned(values)
    if not shown:
        return Html("")
    top = _round_up(max(max(bar.value for bar in shown), limit or 0.0, 1e-9))
    step = (WIDE - LEFT - RIGHT) / len(shown)
    scale = (HEIGHT - TOP - BOTTOM) / top
    base = HEIGHT - BOTTOM
    marks = []
    for index, bar in enumerate(shown):
        height = max(1.0, max(0.0, bar.value) * scale)
        poor = limit is not None and bar.value < limit
        marks.append(tag("rect", tag("title", f"{bar.label}: {bar.value:.1f} {unit}"), x=f"{LEFT + index * step:.1f}",
                         y=f"{base - height:.1f}", width=f"{max(0.8, step * 0.82):.1f}", height=f"{height:.1f}",
                         class_="bar poor" if poor else "bar"))
    lines = [gridline(base - share * top * scale, f"{share * top:.0f}") for share in (0, 0.25, 0.5, 0.75, 1)]
    if limit is not None:
        y = base - limit * scale
        marks.append(tag("line", x1=LEFT, x2=WIDE - RIGHT, y1=f"{y:.1f}", y2=f"{y:.1f}", class_="limit"))
    caption = tag("text", f"{unit}, in running order", x=LEFT, y=HEIGHT - 6, class_="axis")
    return tag("svg", lines, marks, caption, viewBox=f"0 0 {WIDE} {HEIGHT}", class_="chart", role="img")


class Curve(NamedTuple):
    """A line: its label, and points of the name on the axis, the value (None: a gap) and whether it is marked."""

    label: str
    points: Sequence[tuple[str, float | None, bool]]


_INKS = ("#3b6ea5", "#c4622d", "#3d8b5f", "#8a5aa8", "#b03a5b", "#6b6b2f", "#2f8f9d", "#7a4b2a")
_SHOWN_NAMES = 18


def curves(lines: Sequence[Curve], names: Sequence[str], unit: str) -> Html:
    """Return lines over the same names, with a ring around marked points and a legend below."""
    known = [value for line in lines for _, value, _ in line.points if value is not None]
    top = _round_up(max([*known, 1e-9]))
    step = (WIDE - LEFT - RIGHT - 20) / max(1, len(names) - 1)
    base, scale = HEIGHT - BOTTOM, (HEIGHT - TOP - BOTTOM) / top
    place = {name: LEFT + 10 + index * step for index, name in enumerate(names)}
    marks = [_curve(line, place, lambda value: base - value * scale, _INKS[number % len(_INKS)], unit)
             for number, line in enumerate(lines)]
    grid = [gridline(base - share * top * scale, f"{share * top:.3g}") for share in (0, 0.25, 0.5, 0.75, 1)]
    every = -(-len(names) // _SHOWN_NAMES) or 1
    axis = [tag("text", name, x=f"{place[name]:.1f}", y=HEIGHT - 6, class_="axis", text_anchor="middle")
            for name in names[::every]]
    legend = [tag("text", line.label, x=LEFT + (number % 3) * 300, y=HEIGHT + 14 + number // 3 * 16, class_="axis",
                  style=f"fill:{_INKS[number % len(_INKS)]}") for number, line in enumerate(lines)]
    tall = HEIGHT + 20 + (len(lines) - 1) // 3 * 16
    return tag("svg", grid, axis, marks, legend, tag("text", unit, x=2, y=TOP, class_="axis"),
               viewBox=f"0 0 {WIDE} {tall}", class_="chart", role="img")


def _curve(line: Curve, place: dict[str, float], height: Callable[[float], float], ink: str, unit: str) -> Html:
    drawn: list[Html] = []
    run: list[str] = []
    for name, value, marked in [*line.points, ("", None, False)]:
        if value is None:
            if len(run) > 1:
                drawn.append(tag("path", d=f"M{' L'.join(run)}", fill="none", stroke=ink, stroke_width=1.5))
            run = []
            continue
        x, y = place[name], height(value)
        run.append(f"{x:.1f} {y:.1f}")
        title = tag("title", f"{line.label}, {name}: {value:.4g} {unit}{', a cliff' if marked else ''}")
        drawn.append(tag("circle", title, cx=f"{x:.1f}", cy=f"{y:.1f}", r=2.5, fill=ink))
        if marked:
            drawn.append(tag("circle", title, cx=f"{x:.1f}", cy=f"{y:.1f}", r=6, fill="none", stroke=ink,
                             stroke_width=1.5))
    return Html(render(drawn))


def spread(before: Sequence[int], after: Sequence[int], low: float, high: float) -> Html:
    """Return two histograms from ``low`` to ``high``; heights go with the root of counts, so that tails are seen."""
    top = max(*before, *after, 1) ** 0.5
    base, height = 80, 72
    step = WIDE / max(1, len(before))
    marks = [tag("rect", tag("title", f"{low + (high - low) * (n + 0.5) / len(counts):.4g}: {count}"),
                 x=f"{(n + inset) * step:.1f}", y=f"{base - count ** 0.5 / top * height:.1f}",
                 width=f"{step * (1 - 2 * inset):.1f}", height=f"{count ** 0.5 / top * height:.1f}", class_=style)
             for style, counts, inset in (("cpu", before, 0.04), ("bar", after, 0.24))
             for n, count in enumerate(counts) if count]
    ends = [tag("text", f"{low:.4g}", x=2, y=base + 14, class_="axis"),
            tag("text", f"{high:.4g}", x=WIDE - 2, y=base + 14, class_="axis end")]
    return tag("svg", marks, ends, viewBox=f"0 0 {WIDE} {base + 18}", class_="chart", role="img")


class Part(NamedTuple):
    """A part of a strip: its style, a label for the pointer, how long it is, and the operators that it leads to."""

    style: str
    label: str
    weight: float
    operators: Sequence[int] = ()


def strip(parts: Sequence[Part]) -> Html:
    """Return one bar of consecutive parts."""
    total = sum(part.weight for part in parts) or 1.0
    x, marks = 0.0, []
    gap = 1.0 if len(parts) < WIDE / 4 else 0.3
    for part in parts:
        width = part.weight / total * WIDE
        marks.append(tag("rect", tag("title", part.label), x=f"{x:.2f}", y=0, width=f"{max(0.5, width - gap):.2f}",
                         height=22, class_=part.style, data_ops=",".join(map(str, part.operators)) or None))
        x += width
    return tag("svg", marks, viewBox=f"0 0 {WIDE} 22", class_="strip", preserveAspectRatio="none", role="img",
               aria_label=f"{len(parts)} parts in running order")


def gridline(y: float, label: str, left: int = LEFT, width: int = WIDE) -> Html:
    """Return a line across a chart with its label."""
    return Html(tag("line", x1=left, x2=width - RIGHT, y1=f"{y:.1f}", y2=f"{y:.1f}", class_="gridline")
                + tag("text", label, x=left - 6, y=f"{y + 4:.1f}", class_="axis end"))


def _thinned(values: Sequence[Bar]) -> list[Bar]:
    group = -(-len(values) // MOST_BARS) or 1
    return [min(values[start:start + group], key=lambda bar: bar.value) for start in range(0, len(values), group)]


def _round_up(value: float) -> float:
    for step in (1, 2, 4, 5, 8, 10, 20, 40, 50, 60, 80, 100, 120, 160, 200):
        if value <= step:
            return float(step)
    return value * 1.1
