"""A machine or a board, part by part, as text for a person."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from vitrify.results import BoardRow, DoctorResult

_MARKS = {"ok": "[green]ok[/]", "error": "[bold red]bad[/]", "warning": "[yellow]look[/]", "unknown": "[dim]?[/]",
          "info": ""}


def show_doctor(result: DoctorResult, out: Console) -> None:
    """Print the parts, what can be compiled, and what fits the board; a probe is printed as it is."""
    if result.probe:
        out.print(result.probe, markup=False, highlight=False, soft_wrap=True, end="")
        return
    if result.board is not None:
        _board(result.board, out)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("", "part", "found", "fits" if result.board is not None else "tested", "for"):
        table.add_column(column, overflow="fold")
    for part in result.parts:
        table.add_row(_MARKS.get(part.state, ""), *map(escape, (part.name, part.found, part.fits, part.source)))
    if result.parts:
        out.print(table)
    for can, words in (("compiled", "compiled here"), ("judged", "judged by rules only, no compiler here")):
        groups: dict[str, list[str]] = {}
        for row in result.served:
            if row.can == can:
                groups.setdefault(row.compiler, []).append(row.target)
        for compiler, names in groups.items():
            out.print(f"{words}{f' ({escape(compiler)})' if compiler else ''}: {escape(', '.join(names))}")
    if result.board is None:
        out.print("[bold green]all that is needed is here[/]" if result.ok else "[bold red]something is missing[/]")


def _board(board: BoardRow, out: Console) -> None:
    name = board.address or board.file
    out.print(f"[bold]{escape(name)}[/]: {escape(board.title or 'a chip that we do not know')}, "
              f"{escape(board.system or 'system not told')}, kernel {escape(board.kernel or 'not told')}")
    if not board.release:
        return
    out.print(f"release {escape(board.release)} [dim]({escape(board.source)})[/]" if board.exact else
              f"release not in our table; the nearest that is known is {escape(board.release)}")
    if board.compiler:
        sure = "" if board.exact else " for that one"
        out.print(f"compiler that fits{sure}: [bold]{escape(board.compiler)} "
                  f"{escape(board.compiler_version or '(version not in our table)')}[/]")
