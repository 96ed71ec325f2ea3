"""`vitrify reduce`: the smallest model that still fails."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from vitrify.cli import options as o
from vitrify.cli.arguments import Option
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.results import Result

FailsOption = Annotated[str, Option(
    "--fails", metavar="CMD", help="A command that fails on the model: its exit status is not 0. {} stands for the "
                                   "model's path, {inputs} for a .npz file with values for its inputs.")]
FailsTextOption = Annotated[str, Option(
    "--fails-text", metavar="REGEX", help="What has to be in the output of the failure, so that no other is taken for "
                                          "it.")]
PredicateOption = Annotated[str, Option(
    "--predicate", metavar="NAME[:ARGS]", help="A failure known by name: import, quantize, sqnr:DB[,TENSOR], abort, "
                                               "vela:TARGET, miscompiled:TARGET.")]
SecondsOption = Annotated[float, Option("--seconds", metavar="N", min=1.0, help="The time that the search may take.")]
EachOption = Annotated[float, Option("--each", metavar="N", min=0.1, help="Seconds that one try may take.")]
OnceOption = Annotated[bool, Option(
    "--once", help="Only say whether the model fails: exit status 0 when it does.")]
DirOption = Annotated[Path | None, Option(
    "-o", "--output", metavar="DIR", help="The folder for what is left (default: MODEL_reduced).")]


def reduce(model: o.ModelArgument, fails: FailsOption = "", fails_text: FailsTextOption = "",
           predicate: PredicateOption = "", output: DirOption = None, seconds: SecondsOption = 600.0,
           each: EachOption = 60.0, once: OnceOption = False, data: o.DataOption = None, shape: o.ShapeOption = o.NONE,
           dim: o.DimOption = o.NONE, seed: o.SeedOption = 0, json: o.JsonOption = False,
           quiet: o.QuietOption = False) -> int:
    """Reduce a model that fails to the smallest one that fails the same way.

    Nodes, sizes, weights and names are left out as long as the failure stays. The folder then holds the model, values
    for its inputs, and a README with the command that repeats the failure. The same call again goes on where it was
    stopped. Works on .onnx and .tflite files.
    """

    def work(reporter: Reporter) -> Result:
        from vitrify.pipeline.reducing.judging import Asked
        from vitrify.pipeline.reducing.reduce import reduce_file, try_once

        asked = Asked(predicate=predicate, command=fails, pattern=fails_text, seconds=each)
        if once:
            return try_once(model, asked, data, reporter)
        given = o.data_options(data, None, False, seed, None, None, None, None)
        return reduce_file(model, output, asked, given, o.conversion(shape, dim, o.NONE), reporter, seconds=seconds,
                           seed=seed)

    return run_command("reduce", work, json=json, quiet=quiet)
