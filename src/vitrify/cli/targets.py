"""`vitrify targets`: the chips that --target can name."""

from __future__ import annotations

from typing import Annotated

from vitrify.cli import options as o
from vitrify.cli.arguments import Argument
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.results import Result

NameArgument = Annotated[str, Argument("NAME", help="Show this one with all its facts and their sources.")]


def targets(name: NameArgument = "", json: o.JsonOption = False, quiet: o.QuietOption = False) -> int:
    """List the chips that --target can name."""

    def work(reporter: Reporter) -> Result:
        from vitrify.pipeline.listing import list_targets

        return list_targets(name)

    return run_command("targets", work, json=json, quiet=quiet)
