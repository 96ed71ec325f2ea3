"""The samples of a build, with what the float and the integer model make of them."""

from __future__ import annotations

import base64
from pathlib import Path

from vitrify.report.page.markup import Html, tag
from vitrify.report.page.section import Section
from vitrify.results import PictureRow, RunRecord, ScoreRow


def pictures(record: RunRecord, folder: Path) -> Section | None:
    """Return the samples with what float and INT8 make of them, side by side."""
    shown = [_sample(row, folder) for row in record.pictures]
    if not shown:
        return None
    text = "The same inputs through the float and the INT8 model; the first picture is what the model was given."
    return Section.of("pictures", "Pictures", tag("p", text), shown)


def _sample(row: PictureRow, folder: Path) -> Html:
    cells = [_figure(folder, row.input, f"{row.name}: input")]
    for file, scores, label in ((row.float_picture, row.float_scores, "float"),
                                (row.int8_picture, row.int8_scores, "INT8")):
        cells.append(_scores(scores, label) if scores else _figure(folder, file, label))
    return Html(tag("div", [cell for cell in cells if cell], class_="shots") + (tag("p", row.text) if row.text else ""))


def _figure(folder: Path, file: str, caption: str) -> Html | None:
    path = folder / file
    if not file or not path.is_file():
        return None
    data = base64.b64encode(path.read_bytes()).decode()
    return tag("figure", tag("img", src=f"data:image/png;base64,{data}", alt=caption, loading="lazy"),
               tag("figcaption", caption))


def _scores(scores: list[ScoreRow], label: str) -> Html:
    top = max((abs(score.value) for score in scores), default=1.0) or 1.0
    bars = [tag("div", tag("span", score.label), tag("i", style=f"width:{100 * max(0.0, score.value) / top:.1f}%"),
                tag("em", f"{score.value:.3g}")) for score in scores]
    return tag("figure", tag("div", bars, class_="scores"), tag("figcaption", label))
