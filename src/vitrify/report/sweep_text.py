"""A sweep in the terminal: sizes down, settings across, cliffs marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from vitrify.core.progress import duration
from vitrify.core.words import bytes_text, count_text, counted, percent
from vitrify.results import CellRow, CliffRow, SweepResult

_BAR = 20
_MARK = "!"
_COLUMNS = ("size", "MACs", "on the NPU", "latency", "per GMAC", "on chip", "outside", "")
Setting = tuple[str, str, int | None]


def show_sweep(result: SweepResult, out: Console) -> None:
    """Print the grid: a table of all settings, or with only one all that is known of each size."""
    settings = list(dict.fromkeys(setting_of(cell) for cell in result.cells))
    cliffs = {(setting_of(cliff), cliff.size_after) for cliff in result.cliffs}
    out.print(f"[bold]{escape(result.target)}[/]: {counted(len(result.sizes), 'size')}, "
              f"{counted(len(settings), 'setting')}, estimates{_source(result.cells)}; not measurements")
    out.print(_single(result.cells, cliffs) if len(settings) == 1 else _matrix(result, settings, cliffs))
    if cliffs:
        out.print(f"  {_MARK} a cliff: this size costs more than the step from the size before explains")
    if any(map(over_limit, result.cells)):
        out.print("  over: more has to be on the chip than fits; the estimate is of a chip that has room for it")
    for setting in settings:
        if text := recommended(result, setting):
            out.print(f"  {escape(name_of(setting))}: {escape(text)}")
    reused = f", {result.reused} of them from before" if result.reused else ""
    out.print(f"[bold green]wrote[/] {escape(result.output)}: {counted(len(result.cells), 'cell')}{reused} in "
              f"{duration(result.seconds)}, {duration(result.cpu_seconds)} of CPU")


def setting_of(row: CellRow | CliffRow) -> Setting:
    """What of a row is not its size."""
    return row.precision, row.memory_mode, row.arena_bytes


def name_of(setting: Setting) -> str:
    """Return a setting in words."""
    precision, mode, arena = setting
    return ", ".join(filter(None, (precision, mode, "" if arena is None else f"{arena / 1024:g} KiB")))


def recommended(result: SweepResult, setting: Setting) -> str:
    """Return the largest sizes before the cliffs of a setting, in words."""
    before: dict[str, list[str]] = {}
    for cliff in result.cliffs:
        if setting_of(cliff) == setting:
            before.setdefault(cliff.recommended, []).append(cliff.kind)
    return "largest size before a cliff: " + ", ".join(
        f"{size} ({', '.join(kinds)})" for size, kinds in before.items()) if before else ""


def _source(cells: Sequence[CellRow]) -> str:
    found = next((cell.source for cell in cells if cell.source), "")
    return f" by {escape(found)}" if found else ""


def _matrix(result: SweepResult, settings: Sequence[Setting], cliffs: set[Any]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("size")
    for setting in settings:
        table.add_column(escape(name_of(setting)), justify="right")
    cells = {(cell.size, setting_of(cell)): cell for cell in result.cells}
    for size in result.sizes:
        table.add_row(size, *(_short(cells[size, setting], (setting, size) in cliffs) for setting in settings))
    return table


def _short(cell: CellRow, marked: bool) -> str:
    if cell.problem:
        return f"[red]{escape(cell.code)}[/]{f' [bold yellow]{_MARK}[/]' if marked else '  '}"
    share = "" if cell.coverage.nodes in (None, 1.0) else f" {percent(cell.coverage.nodes)}"
    text = "" if cell.latency_ms is None else f"{cell.latency_ms:.3g} ms"
    over = " over" if over_limit(cell) else ""
    return f"{text}{share}[red]{over}[/]{f' [bold yellow]{_MARK}[/]' if marked else '  '}"


def over_limit(cell: CellRow) -> bool:
    """True where more has to fit into on-chip memory than does."""
    return cell.near_limit_bytes is not None and (cell.near_bytes or 0) > cell.near_limit_bytes


def _single(cells: Sequence[CellRow], cliffs: set[Any]) -> Table:
    """One row for each size; what nothing is known of has no column."""
    slowest = max((cell.latency_ms or 0.0 for cell in cells), default=0.0) or 1.0
    rows = [_row(cell, slowest, (setting_of(cell), cell.size) in cliffs) for cell in cells]
    shown = [index for index in range(len(_COLUMNS)) if index in (0, len(_COLUMNS) - 1) or any(r[index] for r in rows)]
    table = Table(box=None, pad_edge=False, header_style="dim")
    for index in shown:
        table.add_column(_COLUMNS[index], justify="left" if _COLUMNS[index] in ("size", "") else "right",
                         overflow="fold")
    for row in rows:
        table.add_row(*(row[index] for index in shown))
    return table


def _row(cell: CellRow, slowest: float, marked: bool) -> list[str]:
    mark = f" [bold yellow]{_MARK}[/]" if marked else ""
    if cell.problem:
        return [cell.size, *[""] * (len(_COLUMNS) - 2), f"[red]{escape(cell.problem)}[/]{mark}"]
    time = cell.latency_ms
    return [cell.size, count_text(cell.macs), percent(cell.coverage.nodes), "" if time is None else f"{time:.3g} ms",
            "" if time is None or not cell.macs else f"{time / cell.macs * 1e9:.3g} ms",
            "" if cell.near_bytes is None else bytes_text(cell.near_bytes) + (" over" if over_limit(cell) else ""),
            "" if cell.far_bytes is None else bytes_text(cell.far_bytes),
            "#" * round(_BAR * (time or 0.0) / slowest) + mark]
