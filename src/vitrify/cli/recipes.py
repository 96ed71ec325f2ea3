"""`vitrify recipes`: what `--preset` can name."""

from __future__ import annotations

from typing import Annotated

from vitrify.cli import options as o
from vitrify.cli.arguments import Argument
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.results import Result

NameArgument = Annotated[str, Argument("NAME", help="Print this one as TOML, to be changed and given with --recipe.")]


def recipes(name: NameArgument = "", json: o.JsonOption = False, quiet: o.QuietOption = False) -> int:
    """List the recipes that come along, which --preset names."""

    def work(reporter: Reporter) -> Result:
        from vitrify.pipeline.recipes import list_recipes

        return list_recipes(name)

    return run_command("recipes", work, json=json, quiet=quiet)
