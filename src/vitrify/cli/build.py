"""`vitrify build`: the whole way, from a trained model to a compiled and verified one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from vitrify.cli import options as o
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.core.results import Result

FolderOption = Annotated[Path | None, typer.Option(
    "-o", "--output", metavar="DIR", show_default=False, help="The folder of the run (default: runs/NAME-TARGET).")]


def build(model: o.ModelArgument, target: o.TargetOption, data: o.DataOption = None, output: FolderOption = None,
          samples: o.SamplesOption = None, random_calibration: o.RandomOption = False,
          shape: o.ShapeOption = [], io_layout: o.LayoutOption = o.Layout.NHWC,  # noqa: B006
          io: o.IoOption = o.Integer.INT8, outputs: o.OutputsOption = o.Outputs.SPLIT,
          calibrator: o.CalibratorOption = None, recipe: o.RecipeOption = None,
          save_recipe: o.SaveRecipeOption = None, mean: o.MeanOption = "0", std: o.StdOption = "1",
          fit: o.FitOption = o.Fit.STRETCH, color: o.ColorOption = o.Color.RGB, seed: o.SeedOption = 0,
          json: o.JsonOption = False, quiet: o.QuietOption = False) -> None:
    """Convert, quantize, verify and compile a model; writes a run folder with report.html.

    The same command again goes on where it stopped and reuses what has not changed.
    """

    def work(reporter: Reporter) -> Result:
        from vitrify.pipeline.build import BuildOptions, build_run
        from vitrify.pipeline.convert import ConvertOptions
        from vitrify.pipeline.options import DataOptions, QuantizeOptions
        from vitrify.report.html import write_report

        given = DataOptions(path=data, samples=samples, random=random_calibration, seed=seed, fit=fit.value,
                            color=color.value, mean=o.parse_numbers("--mean", mean), std=o.parse_numbers("--std", std))
        options = BuildOptions(
            model=model, target=target, data=given, command=["vitrify", *sys.argv[1:]],
            conversion=ConvertOptions(shapes=o.parse_shapes(shape), input_layout=io_layout.value,
                                      output_layout=io_layout.value),
            quantization=QuantizeOptions(io=io.value, outputs=outputs.value, recipe=recipe, save_recipe=save_recipe,
                                         calibrator=calibrator.value if calibrator else None))
        return build_run(options, output, write_report, reporter)

    run_command("build", work, json=json, quiet=quiet)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("build")(build)
