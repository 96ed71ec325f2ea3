"""`vitrify compile`: an int8 TFLite file through the target's own compiler."""

from __future__ import annotations

from vitrify.cli import options as o
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.results import Result


def compile(model: o.ModelArgument, target: o.TargetOption, output: o.OutputOption = None, json: o.JsonOption = False,
            quiet: o.QuietOption = False) -> int:
    """Compile an int8 TFLite file for a target."""

    def work(reporter: Reporter) -> Result:
        from vitrify.pipeline.compile import compile_file

        return compile_file(model, target, output, reporter)

    return run_command("compile", work, json=json, quiet=quiet)
