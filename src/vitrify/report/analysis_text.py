"""The error analysis as text for a person."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from vitrify.core.words import counted, decibels, percent
from vitrify.results import AnalysisRow, DistributionRow, FigureRow, OperatorRow

SHOWN = 15
SPARKS = " ▁▂▃▄▅▆▇█"


def show_analysis(row: AnalysisRow, out: Console) -> None:
    """Print the operators that cost the outputs most, and how the values of the worst are spread."""
    out.print(f"operators of [bold]{escape(row.candidate)}[/] by what they cost the outputs, "
              f"{counted(row.samples, 'sample')}; single: fed with the float model's own values")
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("operator", "node", "bits", "accumulated", "cosine", "steps", "single", "cosine", "steps", "alone",
                   "share", ""):
        table.add_column(column, overflow="fold")
    for operator in row.worst(SHOWN):
        table.add_row(*(escape(cell) for cell in _cells(operator)))
    out.print(table)
    if len(row.operators) > SHOWN:
        out.print(f"... and {len(row.operators) - SHOWN} more; --json lists all")
    for shown in row.distributions[:3]:
        out.print(escape(_spread(shown)), style="dim")


def remark(row: OperatorRow) -> str:
    """Say what the figures of an operator do not."""
    if row.cause:
        return f"its scale is that of the join {row.cause}"
    if row.part and row.part_db is not None:
        return f"of its parts, {row.part} keeps {decibels(row.part_db)}"
    return ""


def _cells(row: OperatorRow) -> list[str]:
    return [row.operator, row.node, "" if row.bits is None else str(row.bits), *_figures(row.accumulated),
            *_figures(row.single), decibels(row.alone_db), "" if row.share is None else percent(row.share), remark(row)]


def _figures(row: FigureRow) -> list[str]:
    return [decibels(row.sqnr_db, row.equal), "" if row.cosine is None else f"{row.cosine:.5f}",
            "" if row.max_lsb is None else f"{row.max_lsb:.3g}"]


def _spread(row: DistributionRow) -> str:
    return (f"{row.tensor} from {row.low:.4g} to {row.high:.4g}, {row.levels} of {row.levels_in_all} levels, "
            f"{percent(row.saturated)} at an end, {percent(row.dead)} become zero\n"
            f"    float |{spark(row.float_counts)}|\n  integer |{spark(row.integer_counts)}|")


def spark(counts: list[int]) -> str:
    """Columns whose height goes with the root of the count: tails are what matters."""
    top = max(counts, default=0) or 1
    return "".join(SPARKS[0 if not count else max(1, round((count / top) ** 0.5 * 8))] for count in counts)
