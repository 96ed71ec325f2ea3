"""`vitrify inspect`: what a file holds, in any format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from vitrify.cli import options as o
from vitrify.cli.arguments import Argument
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.results import Result

FileArgument = Annotated[Path, Argument("FILE", help="A model's file, or a folder of them.")]


def inspect(file: FileArgument, json: o.JsonOption = False, quiet: o.QuietOption = False) -> int:
    """Show inputs, outputs, operators, types and quantization of a file; of a folder, what each model in it is."""

    def work(reporter: Reporter) -> Result:
        from vitrify.pipeline.inspecting.inspect import inspect_path

        return inspect_path(file)

    return run_command("inspect", work, json=json, quiet=quiet)
