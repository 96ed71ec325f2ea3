"""Quality on the page: how far the float file is from the source model, and INT8 from float."""

from __future__ import annotations

from vitrify.core.words import agreeing, counted, decibels
from vitrify.report.page.charts import Bar, bars
from vitrify.report.page.markup import Child, table, tag
from vitrify.report.page.section import Section, tools
from vitrify.results import ComparisonRow, ErrorRow, GroupRow, RunRecord

EQUAL_DB = 140.0
"""How high bars stand where every tensor is free of error: more than float32 can show."""
POOR_DB = 10.0


def quality(record: RunRecord) -> Section | None:
    """Return the comparisons, outputs first, then every aligned tensor."""
    parts: list[Child] = []
    for key, title, row in (("float", "Float TFLite against the source model", record.verify_float),
                            ("int8", "INT8 against float", record.verify_int8)):
        if row is not None:
            parts.append(_comparison(key, title, row))
    if not parts:
        return None
    text = ("SQNR is the power of the reference over the power of the error; every 6 dB halve the error. "
            "Each output is judged by groups of channels too, as a good whole can hide a part that is all zero.")
    return Section.of("quality", "Quality", tag("p", text), parts)


def _comparison(key: str, title: str, row: ComparisonRow) -> list[Child]:
    verdict = tag("span", "good" if row.ok else "not good", class_="good" if row.ok else "bad")
    rows = [cells for error in row.outputs for cells in (_cells(error), *map(_group_cells, error.groups))]
    parts: list[Child] = [tag("h3", f"{title}, {counted(row.samples, 'sample')}: ", verdict),
                          table(("output", "#SQNR", "#cosine", "#largest error", "#steps", ""), rows)]
    return [*parts, *_inside(key, row)] if row.tensors else parts


def _inside(key: str, row: ComparisonRow) -> list[Child]:
    told = [error for error in row.tensors if error.aligned and (error.equal or error.sqnr_db is not None)]
    top = max((error.sqnr_db or 0.0 for error in told if not error.equal), default=EQUAL_DB)
    heights = [Bar(f"{error.tensor} {error.operator}", top if error.equal else error.sqnr_db or 0.0) for error in told]
    name = f"tensors-{key}"
    rows = [_inner_cells(error) for error in row.tensors]
    listing = table(("tensor", "operator", "#SQNR", "#cosine", "#largest error"), rows, id=name)
    return [bars(heights, "dB", POOR_DB),
            tag("details", tag("summary", f"all {len(rows)} aligned tensors"), tools(name), listing)]


def _inner_cells(error: ErrorRow) -> tuple[Child, ...]:
    name = tag("span", error.tensor, tag("small", error.note) if error.note else None)
    return (name, error.operator, decibels(error.sqnr_db, error.equal), _number(error.cosine, 6),
            _number(error.largest_error, 4))


def _cells(error: ErrorRow) -> tuple[Child, ...]:
    note = "" if error.ok else tag("span", error.reason or "not good", class_="bad")
    return (error.tensor, agreeing(error.agreement, error.equal) or decibels(error.sqnr_db, error.equal),
            _number(error.cosine, 6), _number(error.largest_error, 4), _number(error.max_lsb, 3), note)


def _group_cells(group: GroupRow) -> tuple[Child, ...]:
    note = "" if group.ok else tag("span", group.reason or "not good", class_="bad")
    return (tag("small", group.name, class_="in"), decibels(group.sqnr_db), _number(group.cosine, 6),
            _number(group.largest_error, 4), "", note)


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}g}"
