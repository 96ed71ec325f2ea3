"""`vitrify quantize`: a model in any format to full-integer TFLite."""

from __future__ import annotations

import typer

from vitrify.cli import options as o
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.core.results import Result


def quantize(model: o.ModelArgument, data: o.DataOption = None, output: o.OutputOption = None,
             samples: o.SamplesOption = None, random_calibration: o.RandomOption = False,
             shape: o.ShapeOption = [], io_layout: o.LayoutOption = o.Layout.NHWC,  # noqa: B006
             io: o.IoOption = o.Integer.INT8, outputs: o.OutputsOption = o.Outputs.SPLIT,
             calibrator: o.CalibratorOption = None, recipe: o.RecipeOption = None,
             save_recipe: o.SaveRecipeOption = None, mean: o.MeanOption = "0", std: o.StdOption = "1",
             fit: o.FitOption = o.Fit.STRETCH, color: o.ColorOption = o.Color.RGB, seed: o.SeedOption = 0,
             json: o.JsonOption = False, quiet: o.QuietOption = False) -> None:
    """Quantize a model to full-integer TFLite, or refuse and name what stays float."""

    def work(reporter: Reporter) -> Result:
        from vitrify.pipeline.convert import ConvertOptions
        from vitrify.pipeline.options import DataOptions, QuantizeOptions
        from vitrify.pipeline.quantize import quantize_file

        given = DataOptions(path=data, samples=samples, random=random_calibration, seed=seed, fit=fit.value,
                            color=color.value, mean=o.parse_numbers("--mean", mean), std=o.parse_numbers("--std", std))
        conversion = ConvertOptions(shapes=o.parse_shapes(shape), input_layout=io_layout.value,
                                    output_layout=io_layout.value)
        quantization = QuantizeOptions(io=io.value, outputs=outputs.value, recipe=recipe, save_recipe=save_recipe,
                                       calibrator=calibrator.value if calibrator else None)
        return quantize_file(model, output, given, quantization, conversion, reporter)

    run_command("quantize", work, json=json, quiet=quiet)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("quantize")(quantize)
