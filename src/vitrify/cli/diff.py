"""`vitrify diff`: how two models differ in structure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from vitrify.cli import options as o
from vitrify.cli.arguments import Argument, Option
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.results import Result

FirstArgument = Annotated[Path, Argument("A", help="A model in any format; of a compiled one, the file.")]
SecondArgument = Annotated[Path, Argument("B", help="The model that is compared with it.")]
AllOption = Annotated[bool, Option("--all", help="Show every node and every change, not only the weightiest.")]
ExitCodeOption = Annotated[bool, Option("--exit-code", help="Exit with 1 when the models differ, 0 when they do not.")]


def diff(a: FirstArgument, b: SecondArgument, all: AllOption = False, exit_code: ExitCodeOption = False,
         shape: o.ShapeOption = o.NONE, dim: o.DimOption = o.NONE, value: o.ValueOption = o.NONE,
         trust: o.TrustOption = False, json: o.JsonOption = False, quiet: o.QuietOption = False) -> int:
    """Compare two models: what was moved, fused, removed, added or changed, by which pass.

    Nodes are matched by what they were in the user's file, by name and by what stands around them, so the two may have
    different formats, layouts and types. Exits with 0 when the comparison was made, whatever it found, unless
    --exit-code is given.
    """

    def work(reporter: Reporter) -> Result:
        from vitrify.pipeline.diffing.diff import diff_models

        return diff_models(a, b, o.conversion(shape, dim, value, trust), reporter, exit_code=exit_code, all=all)

    return run_command("diff", work, json=json, quiet=quiet)
