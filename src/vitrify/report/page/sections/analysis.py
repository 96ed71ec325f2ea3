"""The error analysis on the page: what has come together at each operator, its own error, and how values are spread."""

from __future__ import annotations

from vitrify.core.words import counted, decibels, percent
from vitrify.report.analysis_text import remark
from vitrify.report.page.charts import spread
from vitrify.report.page.markup import Child, table, tag
from vitrify.report.page.section import Section, tools
from vitrify.results import AnalysisRow, DistributionRow, FigureRow, OperatorRow, RunRecord

COLUMNS = ("operator", "node", "#bits", "#accumulated SQNR", "#cosine", "#steps", "#single SQNR", "#cosine", "#steps",
           "#outputs alone", "#share", "")


def analysis(record: RunRecord) -> Section | None:
    """Return the operators by what they cost the outputs, when the run analyzed them."""
    row = record.analysis
    if row is None or not row.operators:
        return None
    text = (f"What has come together up to an operator, and its own error when it is fed with the float model's values "
            f"({counted(row.samples, 'sample')}). Alone: what the outputs keep when only this operator computes in "
            f"integers. Share: what it adds to the noise of the outputs.")
    rows = [_cells(operator) for operator in row.worst(len(row.operators))]
    parts: list[Child] = [tools("analysis-operators"), table(COLUMNS, rows, id="analysis-operators")]
    if row.distributions:
        parts.append(tag("h3", "Values of the operators that cost most: float behind, integers in front"))
        parts += [_spread(shown) for shown in _ordered(row)]
    return Section.of("analysis", "Error by operator", tag("p", text), parts)


def _ordered(row: AnalysisRow) -> list[DistributionRow]:
    place = {operator.tensor: number for number, operator in enumerate(row.worst(len(row.operators)))}
    return sorted(row.distributions, key=lambda shown: place.get(shown.tensor, len(place)))


def _cells(row: OperatorRow) -> tuple[Child, ...]:
    name = tag("span", row.node, tag("small", row.tensor) if row.tensor != row.node else None)
    return (row.operator, name, "" if row.bits is None else str(row.bits), *_figures(row.accumulated),
            *_figures(row.single), decibels(row.alone_db), "" if row.share is None else percent(row.share), remark(row))


def _figures(row: FigureRow) -> tuple[Child, ...]:
    return (decibels(row.sqnr_db, row.equal), "" if row.cosine is None else f"{row.cosine:.6g}",
            "" if row.max_lsb is None else f"{row.max_lsb:.3g}")


def _spread(row: DistributionRow) -> Child:
    caption = (f"{row.tensor} ({row.operator}): {row.levels} of {row.levels_in_all} levels, {percent(row.saturated)} "
               f"at an end, {percent(row.dead)} become zero")
    return tag("figure", tag("figcaption", caption), spread(row.float_counts, row.integer_counts, row.low, row.high))
