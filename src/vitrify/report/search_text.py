"""The curve of a search among the compiler's settings, in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from vitrify.core.words import bytes_text, counted
from vitrify.results import CompileResult, TrialRow

_WIDTH = 24


def show_search(result: CompileResult, out: Console) -> None:
    """Print each setting with its estimate as a bar, and what the search won."""
    rows = [row for row in result.search if row.latency_ms is not None]
    if not rows:
        return
    slowest, first = max(row.latency_ms or 0.0 for row in rows), rows[0].latency_ms or 0.0
    out.print(f"[bold]search[/], {counted(len(result.search), 'setting')}, estimates of the compiler:")
    for row in sorted(rows, key=lambda one: (-one.arena_bytes, one.optimise)):
        _print(row, slowest, out)
    for row in result.search:
        if row.problem:
            out.print(f"  {bytes_text(row.arena_bytes):>9}  {row.optimise:11}  {escape(row.problem)}")
    least = min(row.latency_ms or 0.0 for row in rows)
    before = first
    if result.fixes is not None and result.fixes.changed and result.fixes.ms_before is not None:
        before = result.fixes.ms_before
        out.print(f"rewritten before: {', '.join(f'{row.name} ({row.places})' for row in result.fixes.rows)}; "
                  f"{escape(result.fixes.proof)}")
    won = 1 - least / before if before else 0.0
    out.print(f"the default: {before:.4g} ms, the best: {least:.4g} ms ({won:.1%} less)")


def _print(row: TrialRow, slowest: float, out: Console) -> None:
    bar = "#" * max(1, round(_WIDTH * (row.latency_ms or 0.0) / slowest))
    mark = " <- kept" if row.chosen else ""
    out.print(f"  {bytes_text(row.arena_bytes):>9}  {row.optimise:11}  {row.latency_ms:8.4g} ms  {bar}{mark}")
