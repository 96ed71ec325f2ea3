"""How two models differ, as text for a person: the paragraph first, then the ends, operators and nodes."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from vitrify.core.words import counted, percent, shape_text
from vitrify.results import DiffResult, EndRow, NodeRow, TensorRow

SHOWN = 12
"""Nodes of one relation that are shown without ``--all``."""

SHOWN_CHANGES = 3
SHOWN_NAMES = 4
MARKS = {"added": "[green]+[/]", "removed": "[red]-[/]", "changed": "[yellow]~[/]", "moved": "[yellow]>[/]",
         "fused": "[cyan]<[/]", "split": "[cyan]%[/]", "rewritten": "[cyan]*[/]", "compiled": "[magenta]#[/]",
         "quantized": "[dim]q[/]", "layout": "[dim]l[/]", "resized": "[dim]r[/]", "same": "[dim]=[/]"}
ORDER = ("changed", "moved", "rewritten", "fused", "split", "removed", "added", "compiled")
MINOR = ("float-rounding", "layout", "rounding", "quantization", "extent", "type")
QUIET = ("quantized", "layout", "resized", "same")


def show_diff(result: DiffResult, out: Console) -> None:
    """Print the differences."""
    for name, side in (("A", result.a), ("B", result.b)):
        made = f", by {side.producer}" if side.producer else ""
        out.print(f"[bold]{name}[/] {escape(side.file)}: {side.kind} {side.format}, {counted(side.nodes, 'node')}"
                  f"{escape(made)}")
    for sentence in result.summary:
        out.print(f"  {escape(sentence)}")
    if not result.related and not result.all:
        return
    _ends("inputs", result.inputs, out)
    _ends("outputs", result.outputs, out)
    _operators(result, out)
    told = ", ".join(f"{result.counts[r]} {r}" for r in (*ORDER, *QUIET) if result.counts.get(r))
    out.print(f"[bold]nodes[/]: {told or 'none'}; {percent(result.alike)} of the smaller graph matched")
    for relation in (*ORDER, *(QUIET if result.all else ())):
        _nodes(relation, [row for row in result.nodes if row.relation == relation], result.all, out)
    _sources(result, out)


def _ends(title: str, rows: list[EndRow], out: Console) -> None:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in (title, "A", "B", ""):
        table.add_column(column, overflow="fold")
    for row in rows:
        name = row.a.name if row.a is not None else row.b.name if row.b is not None else ""
        renamed = f"'{row.b.name}'" if row.a is not None and row.b is not None and row.a.name != row.b.name else ""
        table.add_row(*map(escape, (name, _type(row.a), _type(row.b), renamed)))
    out.print(table)


def _type(row: TensorRow | None) -> str:
    if row is None:
        return "-"
    scale = "" if row.scale is None else f" scale {row.scale:.6g} zero point {row.zero_point}"
    return f"{row.dtype}{shape_text(row.shape)}{scale}"


def _operators(result: DiffResult, out: Console) -> None:
    kinds = dict.fromkeys((*result.a.operators, *result.b.operators))
    rows = [(k, result.a.operators.get(k, 0), result.b.operators.get(k, 0)) for k in kinds]
    differing = rows if result.all else [row for row in rows if row[1] != row[2]]
    if differing:
        out.print("[bold]operators[/]: " + escape(", ".join(f"{k} {a} -> {b}" for k, a, b in differing)))


def _nodes(relation: str, rows: list[NodeRow], everything: bool, out: Console) -> None:
    shown = rows if everything else rows[:SHOWN]
    for row in shown:
        passes = f" [dim](by {escape(', '.join(row.passes))})[/]" if row.passes else ""
        out.print(f"{MARKS.get(relation, ' ')} {relation} {escape(_what(row))}{passes}")
        changes = [c for c in row.changes if everything or c.kind not in MINOR]
        for change in changes if everything else changes[:SHOWN_CHANGES]:
            out.print(f"    {escape(change.text)}")
        if not everything and len(changes) > SHOWN_CHANGES:
            out.print(f"    [dim]and {len(changes) - SHOWN_CHANGES} more[/]")
    if len(rows) > len(shown):
        out.print(f"  [dim]and {len(rows) - len(shown)} more {relation}; --all shows them[/]")


def _what(row: NodeRow) -> str:
    left, right = _side(row.a, row.a_operators), _side(row.b, row.b_operators)
    if not left or not right:
        return left or right
    if row.a == row.b and row.a_operators == row.b_operators:
        return left
    return f"{left} -> {right}"


def _side(names: list[str], operators: list[str]) -> str:
    listed = [f"{op} '{name}'" for name, op in zip(names, operators, strict=True)]
    more = f" and {len(listed) - SHOWN_NAMES} more" if len(listed) > SHOWN_NAMES else ""
    return " + ".join(listed[:SHOWN_NAMES]) + more


def _sources(result: DiffResult, out: Console) -> None:
    if not result.sources:
        return
    counts: dict[str, int] = {}
    for row in result.sources:
        counts[row.how] = counts.get(row.how, 0) + 1
    told = ", ".join(f"{number} {how}" for how, number in counts.items())
    out.print(f"[bold]{counted(len(result.sources), 'node')} of the ONNX file A in B[/]: {told}")
    if result.all:
        for row in result.sources:
            into = ", ".join(row.into[:SHOWN_NAMES]) or "nothing"
            out.print(f"  {escape(row.operator)} '{escape(row.name)}' {row.how}: {escape(into)}")
