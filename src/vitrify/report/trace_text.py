"""Single tensors as text for a person: `verify`'s table of both errors, and `trace`."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from vitrify.core.words import counted, decibels, percent
from vitrify.report.analysis_text import SPARKS, spark
from vitrify.results import TraceResult, VerifyResult
from vitrify.results.tracing import FigureOfTensor, TracedRow, TraceRow

SHOWN = 8
_SEEN = 1e-4
"""Share of the largest value below which a map of errors shows only last places."""
_STYLES = {"fault": "[bold red]fault[/]", "excess": "[yellow]excess[/]", "carried": "[yellow]carried[/]",
           "rounding": "[green]rounding[/]", "equal": "[green]equal[/]"}


def show_tensors(result: VerifyResult, out: Console) -> None:
    """Print, stage by stage, the tensors that are wrong, or else those with the lowest error of their own."""
    for stage in dict.fromkeys(row.stage for row in result.tensors):
        rows = [row for row in result.tensors if row.stage == stage]
        counts = {verdict: sum(row.verdict == verdict for row in rows) for verdict in _STYLES}
        told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
        out.print(f"[bold]{escape(stage)}[/], {counted(len(rows), 'tensor')}: {told}")
        bad = [row for row in rows if row.verdict in ("fault", "excess")]
        ranked = sorted(rows, key=lambda row: float("inf") if row.own is None or row.own.sqnr_db is None
                        else row.own.sqnr_db)
        _tensors((bad or ranked)[:SHOWN if bad else 3], out)
        if len(bad) > SHOWN:
            out.print(f"... and {len(bad) - SHOWN} more; --json lists all")


def _tensors(rows: list[TracedRow], out: Console) -> None:
    table = _table("tensor", "operator", "accumulated", "steps", "own inputs", "steps", "rounding leaves", "", "")
    for row in rows:
        own = row.own or FigureOfTensor()
        table.add_row(escape(row.tensor), row.operator, decibels(row.accumulated.sqnr_db, row.accumulated.equal),
                      _number(row.accumulated.max_lsb), decibels(own.sqnr_db, own.equal), _number(own.max_lsb),
                      "" if row.expected_db is None else decibels(row.expected_db),
                      _STYLES.get(row.verdict, row.verdict), escape(row.why))
    out.print(table)


def show_trace(result: TraceResult, out: Console) -> None:
    """Print a tensor's values in every stage."""
    out.print(f"[bold]{escape(result.tensor)}[/], {counted(result.samples, 'sample')}")
    table = _table("stage", "", "type", "range", "mean", "std", "zeros", "at an end", "levels", "SQNR", "largest error",
                   "steps")
    for row in result.stages:
        error = row.error or FigureOfTensor()
        has = row.minimum is not None
        table.add_row(
            escape(row.stage), row.state, f"{row.type}{row.shape}" if has else "",
            f"{row.minimum:.4g} .. {row.maximum:.4g}" if has else "", _number(row.mean), _number(row.deviation),
            percent(row.zeros) if row.zeros is not None else "",
            percent(row.saturated) if row.saturated is not None else "",
            f"{row.used_levels} of {row.all_levels}" if row.all_levels else "",
            decibels(error.sqnr_db, error.equal) if row.error is not None else "", _number(error.largest_error),
            _number(error.max_lsb))
    out.print(table)
    for row in result.stages:
        _stage(row, out)
    for file in result.files:
        out.print(f"[bold green]wrote[/] {escape(file)}")


def _stage(row: TraceRow, out: Console) -> None:
    if row.where:
        out.print(f"{escape(row.stage)}: {escape(row.where)}")
    if row.counts:
        out.print(f"  {row.low:>9.4g} |{spark(row.counts)}| {row.high:.4g}   {escape(row.stage)}")
    if row.not_finite:
        out.print(f"  {row.not_finite} values are not finite")
    for worst in row.worst[:2]:
        out.print(f"  at {worst.place}: {worst.value:.5g}, in the reference {worst.reference:.5g}")
    if row.map and any(value > _SEEN for line in row.map for value in line):
        top = max(value for line in row.map for value in line)
        out.print(f"  error over the picture, darkest {100 * top:.3g} % of the largest value")
        for line in row.map:
            out.print("    |" + "".join(SPARKS[0 if value <= 0 else max(1, round(8 * value / top))] for value in line)
                      + "|")


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
