"""sweep.html: the curves of a sweep and its table, in one file that needs no other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vitrify.core.files import write_atomically
from vitrify.core.words import bytes_text, count_text, percent
from vitrify.report.page.charts import Curve, curves
from vitrify.report.page.html import page
from vitrify.report.page.markup import table, tag
from vitrify.report.page.section import Section
from vitrify.report.sweep_text import name_of, over_limit, recommended, setting_of
from vitrify.results import CellRow, SweepResult

PAGE = "sweep.html"


def write_page(result: SweepResult) -> None:
    """Write the page into the folder of the sweep."""
    write_atomically(Path(result.output) / PAGE, render_page(result).encode(errors="backslashreplace"))


def render_page(result: SweepResult) -> str:
    """Return the page of a sweep."""
    name = Path(result.model).name
    title = f"{name} on {result.target}"
    text = "Estimates, no measurements. A ring marks a cliff: a size that costs more than the step from the size " \
           "before explains."
    top = tag("header", tag("h1", title), tag("p", text), class_="top")
    sections = [*(_chart(result, *chart) for chart in _CHARTS), _cliffs(result), _table(result)]
    return page(title, top, sections, "", result)


_CHARTS: tuple[tuple[str, str, Callable[[CellRow], float | None]], ...] = (
    ("Latency", "ms", lambda cell: cell.latency_ms),
    ("Latency for a thousand million MACs", "ms", lambda cell: None if cell.latency_ms is None or not cell.macs
     else cell.latency_ms / cell.macs * 1e9),
    ("Nodes on the NPU", "%", lambda cell: None if cell.coverage.nodes is None else cell.coverage.nodes * 100),
    ("Memory on the chip", "kB", lambda cell: None if cell.near_bytes is None else cell.near_bytes / 1e3),
    ("Memory outside the chip", "MB", lambda cell: None if cell.far_bytes is None else cell.far_bytes / 1e6),
)


def _chart(result: SweepResult, title: str, unit: str, value: Callable[[CellRow], float | None]) -> Section | None:
    cliffs = {(setting_of(cliff), cliff.size_after) for cliff in result.cliffs}
    lines: dict[str, list[tuple[str, float | None, bool]]] = {}
    for cell in result.cells:
        known = None if cell.problem else value(cell)
        lines.setdefault(name_of(setting_of(cell)), []).append((cell.size, known,
                                                                (setting_of(cell), cell.size) in cliffs))
    if all(known is None for points in lines.values() for _, known, _ in points):
        return None
    drawn = curves([Curve(label, points) for label, points in lines.items()], result.sizes, unit)
    return Section.of(title.lower().replace(" ", "-"), title, drawn)


def _cliffs(result: SweepResult) -> Section | None:
    if not result.cliffs:
        return None
    rows = [(name_of(setting_of(row)), row.kind, f"{row.size_before} to {row.size_after}", row.headline,
             row.recommended) for row in result.cliffs]
    said = [tag("li", f"{name_of(setting)}: {text}") for setting in dict.fromkeys(map(setting_of, result.cliffs))
            if (text := recommended(result, setting))]
    return Section.of("cliffs", "Cliffs", tag("ul", said),
               table(("setting", "kind", "step", "what", "largest size before"), rows))


def _table(result: SweepResult) -> Section:
    rows = [(cell.size, name_of(setting_of(cell)), count_text(cell.macs), percent(cell.coverage.nodes),
             cell.problem or ("" if cell.latency_ms is None else f"{cell.latency_ms:.4g}"),
             "" if cell.near_bytes is None else bytes_text(cell.near_bytes) + (" (over)" if over_limit(cell) else ""),
             "" if cell.far_bytes is None else bytes_text(cell.far_bytes),
             ", ".join(f"{kind} {count}" for kind, count in cell.cpu_operators.items())) for cell in result.cells]
    return Section.of("cells", "Cells", table(
        ("size", "setting", "#MACs", "#on the NPU", "#ms", "#on chip", "#outside", "on the CPU"), rows))
