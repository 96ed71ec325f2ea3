"""What models found, and how good they are, in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from vitrify.core.progress import duration
from vitrify.core.words import counted, percent
from vitrify.results import EvalResult, RunResult, TaskFacts

SHOWN = 40


def show_run(result: RunResult, out: Console) -> None:
    """Print what was found in each input by each stage."""
    out.print(_facts(result.facts))
    several = len({row.stage for row in result.rows}) > 1
    for row in result.rows[:SHOWN]:
        stage = f" [dim]{escape(row.stage)}[/]" if several else ""
        out.print(f"[bold]{escape(row.input)}[/]{stage}")
        for line in row.lines:
            out.print(f"  {escape(line)}")
    if len(result.rows) > SHOWN:
        out.print(f"and {counted(len(result.rows) - SHOWN, 'more answer')}; --json gives them all")
    for file in result.files[:5]:
        out.print(f"[bold green]wrote[/] {escape(file)}")
    if len(result.files) > 5:
        out.print(f"and {counted(len(result.files) - 5, 'more picture')}")


def show_eval(result: EvalResult, out: Console) -> None:
    """Print a table of stages and metrics."""
    out.print(f"{_facts(result.facts)}; {escape(result.data)}, {escape(result.format)}, "
              f"{counted(result.samples, 'sample')}")
    if result.truth != "labels":
        out.print("[yellow]agreement with the first stage, whose answers stand for labels; not accuracy[/]")
    names = list(dict.fromkeys(name for stage in result.stages for name in stage.figures))
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("stage")
    for name in [*names, "drop", "in the runtime"]:
        table.add_column(name, justify="right")
    for stage in result.stages:
        if stage.problem:
            table.add_row(escape(stage.stage), f"[red]{escape(stage.problem)}[/]")
            continue
        drop = "" if stage.drop is None else f"{stage.drop:.2f}"
        table.add_row(escape(stage.stage), *(f"{stage.figures[n]:.2f}" if n in stage.figures else "" for n in names),
                      drop, duration(stage.seconds))
    out.print(table)
    reused = f", {result.reused} samples from before" if result.reused else ""
    out.print(f"{duration(result.seconds)} with {counted(result.workers, 'worker')}{reused}, "
              f"{percent(result.inside)} of their time inside the runtimes")


def _facts(facts: TaskFacts) -> str:
    return f"[bold]{escape(facts.task)}[/] by decoder {escape(facts.decoder)}"
