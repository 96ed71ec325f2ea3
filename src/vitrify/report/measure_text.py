"""A measurement in the terminal: each part before and after, and the error over all."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from vitrify.core.words import counted
from vitrify.results import MeasureResult


def show_measurement(result: MeasureResult, out: Console) -> None:
    """Print what was measured beside what is estimated, before and after."""
    if not result.target:
        return
    where = f"CPU, {counted(result.threads, 'thread')}" if result.side == "cpu" else "NPU"
    out.print(f"[bold]{escape(result.model)}[/] on {result.target} ({where}), {escape(result.source)}")
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("part")
    for title in ("operators", "measured, ms", "estimated, ms", "corrected, ms"):
        table.add_column(title, justify="right")
    for part in result.parts:
        name = part.kind or ("all calls of the NPU" if part.side == "npu" else "all operators")
        measured = "" if part.measured_ms is None else f"{part.measured_ms:.3g}"
        table.add_row(f"{part.side.upper()} {escape(name)}", str(part.count), measured, f"{part.estimated_ms:.3g}",
                      f"{part.corrected_ms:.3g}")
    table.add_row("[bold]whole[/]", "", f"[bold]{result.measured_ms:.3g}[/]", f"{result.estimated_ms:.3g}",
                  f"{result.corrected_ms:.3g}")
    out.print(table)
    if result.error_before is not None and result.error_after is not None:
        out.print(f"median error over {counted(result.measurements, 'measurement')} of {result.target}: "
                  f"{result.error_before:.0%} before, {result.error_after:.0%} after")
    if result.error_of_others is not None:
        out.print(f"each corrected by the others alone: {result.error_of_others:.0%}")
    out.print(f"[bold green]kept[/] in {escape(result.file)}; estimates for {result.target} in this folder use it")
