"""`vitrify check`: where each node would run on a target, and why."""

from __future__ import annotations

import typer

from vitrify.cli import options as o
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.core.results import Result


def check(model: o.ModelArgument, target: o.TargetOption, data: o.DataOption = None, samples: o.SamplesOption = None,
          random_calibration: o.RandomOption = False, shape: o.ShapeOption = [],  # noqa: B006
          mean: o.MeanOption = "0", std: o.StdOption = "1", fit: o.FitOption = o.Fit.STRETCH,
          color: o.ColorOption = o.Color.RGB, seed: o.SeedOption = 0, json: o.JsonOption = False,
          quiet: o.QuietOption = False) -> None:
    """Say for each node whether it runs on the NPU or the CPU, and why.

    A float model is quantized first, with --data.
    """

    def work(reporter: Reporter) -> Result:
        from vitrify.pipeline.check import check_file
        from vitrify.pipeline.convert import ConvertOptions
        from vitrify.pipeline.options import DataOptions

        given = DataOptions(path=data, samples=samples, random=random_calibration, seed=seed, fit=fit.value,
                            color=color.value, mean=o.parse_numbers("--mean", mean), std=o.parse_numbers("--std", std))
        return check_file(model, target, given, ConvertOptions(shapes=o.parse_shapes(shape)), reporter)

    run_command("check", work, json=json, quiet=quiet)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check")(check)
