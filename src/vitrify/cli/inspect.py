"""`vitrify inspect`: what a file holds, in any format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from vitrify.cli import options as o
from vitrify.cli.arguments import Argument, Option
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.results import Result

FileArgument = Annotated[Path, Argument("FILE", help="A model's file, or a folder of them.")]


CommandsOption = Annotated[bool, Option(
    "--commands", help="Of a file that Vela compiled: every command of its NPU streams, in words.")]
RegistersOption = Annotated[bool, Option(
    "--registers", help="With --commands: also the registers that each command finds changed.")]


def inspect(file: FileArgument, commands: CommandsOption = False, registers: RegistersOption = False,
            json: o.JsonOption = False, quiet: o.QuietOption = False) -> int:
    """Show inputs, outputs, operators, types and quantization of a file; of a folder, what each model in it is."""

    def work(reporter: Reporter) -> Result:
        if commands or registers:
            from vitrify.pipeline.inspecting.streams import inspect_commands

            return inspect_commands(file, registers=registers)
        from vitrify.pipeline.inspecting.inspect import inspect_path

        return inspect_path(file)

    return run_command("inspect", work, json=json, quiet=quiet)
