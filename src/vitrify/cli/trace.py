"""`vitrify trace`: one tensor's values through all stages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from vitrify.cli import options as o
from vitrify.cli.arguments import Argument, Option
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.results import Result

WordsArgument = Annotated[list[str], Argument(
    "RUN TENSOR", help="The folder of a build, or two or more forms of one model; then the tensor's name in the first "
                       "form, or the name of the node that makes it.")]
PictureOption = Annotated[Path | None, Option("-o", "--output", metavar="FILE", help="Write the tensor, and how each "
                                              "stage differs, as a PNG picture.", is_file=True)]


def trace(words: WordsArgument, output: PictureOption = None, data: o.DataOption = None,
          samples: o.SamplesOption = None, random_inputs: o.RandomInputsOption = False, shape: o.ShapeOption = o.NONE,
          dim: o.DimOption = o.NONE, value: o.ValueOption = o.NONE, trust: o.TrustOption = False,
          mean: o.MeanOption = None, std: o.StdOption = None, fit: o.FitOption = None, color: o.ColorOption = None,
          prepare: o.PrepareOption = o.NONE, seed: o.SeedOption = 0, json: o.JsonOption = False,
          quiet: o.QuietOption = False) -> int:
    """Follow one tensor through all stages: statistics, histograms, maps of differences, and where it went."""

    def work(reporter: Reporter) -> Result:
        from vitrify.core.errors import UsageError
        from vitrify.pipeline.tracing.trace import trace_tensor

        if len(words) < 2:
            raise UsageError.of("call.trace", f"'{words[0]}' alone: the tensor's name is missing",
                                help="vitrify trace RUN_FOLDER TENSOR")
        given = o.data_options(data, samples, random_inputs, seed, fit, color, mean, std, prepare)
        return trace_tensor([Path(word) for word in words[:-1]], words[-1], given,
                            o.conversion(shape, dim, value, trust), reporter, output=output)

    return run_command("trace", work, json=json, quiet=quiet)
