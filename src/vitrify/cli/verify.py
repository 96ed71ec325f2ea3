"""`vitrify verify`: how far forms of one model agree, stage by stage and tensor by tensor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from vitrify.cli import options as o
from vitrify.cli.arguments import Argument, Option
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.results import Result

ModelsArgument = Annotated[list[Path], Argument(
    "FORM", help="Two or more forms of one model; each is compared with the first.")]

OperatorsOption = Annotated[bool, Option(
    "--operators", help="Also give each operator of the last form its own error, and what it costs the outputs.")]

OnOption = Annotated[str | None, Option(
    "--on", metavar="WHAT", help="What runs a compiled form. npusim, the default: Vitrify's model of the Ethos-U, bit "
                                 "for bit.")]


def verify(models: ModelsArgument, data: o.DataOption = None, samples: o.SamplesOption = None,
           random_inputs: o.RandomInputsOption = False, shape: o.ShapeOption = o.NONE, dim: o.DimOption = o.NONE,
           value: o.ValueOption = o.NONE, trust: o.TrustOption = False,
           mean: o.MeanOption = None, std: o.StdOption = None, fit: o.FitOption = None,
           color: o.ColorOption = None, prepare: o.PrepareOption = o.NONE,
           seed: o.SeedOption = 0, on: OnOption = None, operators: OperatorsOption = False, json: o.JsonOption = False,
           quiet: o.QuietOption = False) -> int:
    """Run forms of one model on the same inputs and compare their outputs and inner tensors."""

    def work(reporter: Reporter) -> Result:
        from vitrify.pipeline.verifying.verify import verify_files

        given = o.data_options(data, samples, random_inputs, seed, fit, color, mean, std, prepare)
        conversion = o.conversion(shape, dim, value, trust)
        return verify_files(models, given, conversion, reporter, operators=operators, on=on)

    return run_command("verify", work, json=json, quiet=quiet)
