"""Codes in words and chips with their facts, as text for a person."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from vitrify.core.words import bytes_text, counted
from vitrify.results import ExplainResult, ExplanationRow, TargetRow, TargetsResult

_TITLES = {"rule": "a rule of", "diagnosis": "a diagnosis of the whole file", "finding": "a finding"}


def show_explanation(result: ExplainResult, out: Console) -> None:
    """Print what a code means, or all codes."""
    if not result.code:
        groups: dict[str, list[str]] = {}
        for code in result.codes:
            groups.setdefault(code.partition(".")[0], []).append(code)
        for name, codes in groups.items():
            out.print(f"[bold]{escape(name)}[/]: {escape(', '.join(codes))}")
        out.print(f"{counted(len(result.codes), 'code')}; `vitrify explain CODE` says what one means")
    for row in result.explanations:
        _explanation(row, out)


def _explanation(row: ExplanationRow, out: Console) -> None:
    chips = f" {_chips(row.targets)}" if row.kind == "rule" else ""
    severity = f" ({row.severity})" if row.severity else ""
    out.print(f"[bold]{escape(row.code)}[/]: {_TITLES.get(row.kind, row.kind)}{escape(chips)}{severity}")
    sure = ", ".join(filter(None, (row.confidence, row.versions and f"compiler {row.versions}")))
    label = "says" if row.kind == "finding" else "allowed"
    for name, text in ((label, row.says), ("operators", ", ".join(row.operators)), ("why", row.why), ("help", row.help),
                       ("fix", row.fix), ("causes", ", ".join(row.rules)), ("source", row.source),
                       ("confidence", sure)):
        if text:
            out.print(f"  [dim]{name:>10}:[/] {escape(text)}")


def _chips(names: list[str]) -> str:
    return ", ".join(names)


def show_targets(result: TargetsResult, out: Console) -> None:
    """Print the chips as a table, or one with its facts."""
    if result.name:
        for row in result.targets:
            _target(row, out)
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("target", "chip", "MACs/cycle", "clock", "on-chip memory", "compiler", "rules"):
        table.add_column(column, overflow="fold")
    for row in result.targets:
        table.add_row(*map(escape, (
            row.name, row.title, _value(row, "macs_per_cycle", str), _value(row, "clock_hz", _megahertz),
            _value(row, "cache_bytes", bytes_text), _compiler(row), str(row.rules))))
    out.print(table)
    out.print("`vitrify targets NAME` shows the facts of one, with their sources")


def _value(row: TargetRow, name: str, text: Callable[[Any], str]) -> str:
    """A fact as text; what is assumed is marked, what nobody tells is said."""
    found = getattr(row, name)
    return "not public" if found is None else f"{text(found)}{' (assumed)' if name in row.assumed else ''}"


def _megahertz(clock_hz: float) -> str:
    return f"{clock_hz / 1e6:.0f} MHz"


def _compiler(row: TargetRow) -> str:
    if row.where_compiled:
        return "none here"
    return f"{row.backend}{'' if row.has_compiler else ' (not installed)'}"


def _target(row: TargetRow, out: Console) -> None:
    out.print(f"[bold]{escape(row.name)}[/]: {escape(row.title)}, {escape(row.npu)}")
    compiler = f"compiler {_compiler(row)} as {row.accelerator}" if not row.where_compiled else row.where_compiled
    out.print(f"{escape(compiler)}; {counted(row.rules, 'rule')} of the "
              f"family {escape(row.family)}, core {escape(row.core)}")
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("fact", "value", "between", "basis", "source"):
        table.add_column(column, overflow="fold")
    for fact in row.facts:
        between = "" if fact.low is None or fact.high is None else f"{fact.low:g} and {fact.high:g}"
        table.add_row(*map(escape, (fact.name, f"{fact.value:g}", between, fact.basis, fact.source)))
    out.print(table)
    if row.operators:
        out.print(f"[dim]operators of some form:[/] {escape(' '.join(row.operators))}")
