"""A reduction and a bisection in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from vitrify.core.progress import duration
from vitrify.core.words import bytes_text, counted, decibels
from vitrify.results import BisectResult, ReduceResult


def show_reduction(result: ReduceResult, out: Console) -> None:
    """Print what is left, what fails, and how to repeat it."""
    if not result.file:
        return
    out.print(f"[bold]{escape(result.model)}[/]: {counted(result.nodes_before, 'node')} -> "
              f"[bold]{result.nodes_after}[/] ({escape(', '.join(result.operators))}), "
              f"{bytes_text(result.bytes_before)} -> {bytes_text(result.bytes_after)}")
    out.print(f"fails: {escape(result.reason)}")
    for step in result.steps:
        out.print(f"  [dim]{step.name:>12}[/] {step.nodes_before} -> {counted(step.nodes_after, 'node')}, "
                  f"{bytes_text(step.bytes_after)}; {step.tries} tried in {duration(step.seconds)}")
    kept = [f"weights {', '.join(result.kept_weights)}"] if result.kept_weights else []
    kept += ["values of inputs"] if result.kept_inputs else []
    out.print(f"of the user's values it holds {escape(' and '.join(kept))}" if kept
              else "it holds none of the user's weights or values")
    again = f", {result.reused} of them known from before" if result.reused else ""
    out.print(f"[bold green]wrote[/] {escape(result.output)}: {counted(result.tries + result.reused, 'model')} tried"
              f"{again} in {duration(result.seconds)}")
    out.print(f"repeat it there with\n  {escape(result.repeat)}", soft_wrap=True)


def show_bisection(result: BisectResult, out: Console) -> None:
    """Print what brings the error."""
    out.print(f"[bold]{escape(result.model)}[/]: worst output {escape(result.output or '-')}, float "
              f"{decibels(result.float_db, result.float_db is None)}, INT8 "
              f"{decibels(result.integer_db, result.integer_db is None)}; {result.least_db:g} dB asked for")
    for row in result.culprits:
        out.print(f"  [bold]{row.kind}[/] {escape(row.name)}: {escape(row.words)}")
    out.print(f"{counted(result.runs, 'run')} on {counted(result.samples, 'sample')} in {duration(result.seconds)}")
