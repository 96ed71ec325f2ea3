"""`vitrify explain`: what a code means."""

from __future__ import annotations

from typing import Annotated

from vitrify.cli import options as o
from vitrify.cli.arguments import Argument
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.results import Result

CodeArgument = Annotated[str, Argument("CODE", help="The code of a finding, such as ethos-u.stride; none: list all.")]


def explain(code: CodeArgument = "", json: o.JsonOption = False, quiet: o.QuietOption = False) -> int:
    """Say what a code means: the rule, why, what mends it, the source, and how sure it is."""

    def work(reporter: Reporter) -> Result:
        from vitrify.pipeline.explaining import explain as explained

        return explained(code)

    return run_command("explain", work, json=json, quiet=quiet)
