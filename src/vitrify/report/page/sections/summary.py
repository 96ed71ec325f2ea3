"""The top of the page: the verdict in a sentence, the key figures, the pictures, the findings."""

from __future__ import annotations

import base64
from pathlib import Path

from vitrify.core.findings import Finding, Severity
from vitrify.core.words import bytes_text, percent
from vitrify.report.page.markup import Html, tag
from vitrify.report.page.section import Section
from vitrify.results import Estimate, PictureRow, RunRecord, ScoreRow

PILLS = {"done": ("good", "good"), "failed": ("bad", "failed"), "interrupted": ("warn", "interrupted"),
         "running": ("warn", "not finished")}


def head(record: RunRecord) -> Html:
    """Return the title, the verdict and the key figures."""
    style, word = PILLS.get(record.status, ("warn", record.status))
    return tag("header",
               tag("h1", f"{record.name} on {record.target}"),
               tag("p", f"{record.model} · {record.started}"),
               tag("div", tag("span", word, class_=f"pill {style}"), tag("span", record.verdict), class_="verdict"),
               tag("div", [card for card in _cards(record) if card], class_="cards"), class_="top")


def _cards(record: RunRecord) -> list[Html | None]:
    return [_quality(record), _latency(record.estimate), _coverage(record), _size(record), _memory(record)]


def _card(value: str, label: str, kind: str = "") -> Html:
    return tag("div", tag("span", kind, class_="kind") if kind else None, tag("b", value), tag("span", label),
               class_="card")


def _quality(record: RunRecord) -> Html | None:
    if record.verify_int8 is None or not record.verify_int8.outputs:
        return None
    worst = record.verify_int8.lowest()
    if worst is None:
        return _card("equal", "INT8 answers against float")
    return _card(str(worst), f"SQNR of {worst.name}, the lowest of INT8 against float", "measured")


def _latency(estimate: Estimate) -> Html | None:
    if estimate.latency_ms is None:
        return None
    span = ("" if estimate.low_ms is None or estimate.high_ms is None
            else f"{estimate.low_ms:.3g} to {estimate.high_ms:.3g} ms, ")
    return _card(f"{estimate.latency_ms:.3g} ms", f"latency: {span}by {estimate.source}", "estimate")


def _coverage(record: RunRecord) -> Html | None:
    shares = record.coverage
    if shares.nodes is None:
        return None
    macs = "" if shares.macs is None else f", {percent(shares.macs)} of the MACs"
    return _card(percent(shares.nodes), f"of the nodes on the NPU{macs}")


def _size(record: RunRecord) -> Html | None:
    if record.int8_model is None:
        return None
    before = f"; float {bytes_text(record.float_model.bytes)}" if record.float_model else ""
    return _card(bytes_text(record.int8_model.bytes), f"INT8 file{before}")


def _memory(record: RunRecord) -> Html | None:
    size = record.memory.get("arena_bytes")
    return None if size is None else _card(bytes_text(size), "tensor arena at run time", "compiler")


def pictures(record: RunRecord, folder: Path) -> Section | None:
    """Return the samples with what float and INT8 make of them, side by side."""
    shown = [_sample(row, folder) for row in record.pictures]
    if not shown:
        return None
    text = "The same inputs through the float and the INT8 model; the first picture is what the model was given."
    return Section("pictures", "Pictures", tag("p", text), shown)


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


def findings(record: RunRecord) -> Section | None:
    """Return the findings, the heaviest first."""
    if not record.findings:
        return None
    order = list(Severity)
    ranked = sorted(record.findings, key=lambda finding: order.index(finding.severity))
    return Section("findings", "Findings", [_finding(finding) for finding in ranked])


def _finding(finding: Finding) -> Html:
    facts = [(label, text) for label, text in (("where", finding.where), ("why", finding.why), ("help", finding.help))
             if text]
    return tag("div", tag("b", f"{finding.severity.value} {finding.code}: "), finding.headline,
               tag("dl", [[tag("dt", label), tag("dd", text)] for label, text in facts]),
               class_=f"finding {finding.severity.value}")
