"""`vitrify compile`: an int8 TFLite file through the target's own compiler."""

from __future__ import annotations

import typer

from vitrify.cli import options as o
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.core.results import Result


def compile(model: o.ModelArgument, target: o.TargetOption, output: o.OutputOption = None, json: o.JsonOption = False,
            quiet: o.QuietOption = False) -> None:
    """Compile an int8 TFLite file for a target."""

    def work(reporter: Reporter) -> Result:
        from vitrify.pipeline.compile import compile_file

        return compile_file(model, target, output, reporter)

    run_command("compile", work, json=json, quiet=quiet)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compile")(compile)
