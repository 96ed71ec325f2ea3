"""`vitrify verify`: how far forms of one model agree, stage by stage and tensor by tensor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vitrify.cli import options as o
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.core.results import Result

ModelsArgument = Annotated[list[Path], typer.Argument(
    metavar="A B [C...]", show_default=False, help="Two or more forms of one model; each is compared with the first.")]


def verify(models: ModelsArgument, data: o.DataOption = None, samples: o.SamplesOption = None,
           random_inputs: o.RandomInputsOption = False, shape: o.ShapeOption = [],  # noqa: B006
           mean: o.MeanOption = "0", std: o.StdOption = "1", fit: o.FitOption = o.Fit.STRETCH,
           color: o.ColorOption = o.Color.RGB, seed: o.SeedOption = 0, json: o.JsonOption = False,
           quiet: o.QuietOption = False) -> None:
    """Run forms of one model on the same inputs and compare their outputs and inner tensors."""

    def work(reporter: Reporter) -> Result:
        from vitrify.pipeline.options import DataOptions
        from vitrify.pipeline.verify import verify_files

        given = DataOptions(path=data, samples=samples, random=random_inputs, seed=seed, fit=fit.value,
                            color=color.value, mean=o.parse_numbers("--mean", mean), std=o.parse_numbers("--std", std))
        return verify_files(models, given, o.parse_shapes(shape), reporter)

    run_command("verify", work, json=json, quiet=quiet)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("verify")(verify)
