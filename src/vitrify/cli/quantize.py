"""`vitrify quantize`: a model in any format to full-integer TFLite."""

from __future__ import annotations

from vitrify.cli import options as o
from vitrify.cli import tasks as t
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.results import Result


def quantize(model: o.ModelArgument, data: o.DataOption = None, output: o.OutputOption = None,
             samples: o.SamplesOption = None, random_calibration: o.RandomOption = False,
             shape: o.ShapeOption = o.NONE, dim: o.DimOption = o.NONE,
             value: o.ValueOption = o.NONE, trust: o.TrustOption = False, io_layout: o.LayoutOption = o.Layout.NHWC,
             io: o.IoOption = o.Integer.INT8, outputs: o.OutputsOption = o.Outputs.SPLIT,
             calibrator: o.CalibratorOption = None, least_db: o.LeastDbOption = None, recipe: o.RecipeOption = None,
             anew: o.AnewOption = False, preset: o.PresetOption = "", effort: o.EffortOption = None,
            save_recipe: o.SaveRecipeOption = None, mean: o.MeanOption = None, std: o.StdOption = None,
             fit: o.FitOption = None, color: o.ColorOption = None, prepare: o.PrepareOption = o.NONE,
             seed: o.SeedOption = 0, analyze: o.AnalyzeOption = False, target_quality: o.TargetQualityOption = "",
             metric: o.MetricOption = "", max_drop: o.MaxDropOption = None, budget_ms: o.BudgetOption = None,
             jobs: o.JobsOption = 1, target: o.ForTargetOption = "", task: t.TaskOption = "",
             json: o.JsonOption = False, quiet: o.QuietOption = False) -> int:
    """Quantize a model to full-integer TFLite, or refuse and name what stays float."""

    def work(reporter: Reporter) -> Result:
        from vitrify.pipeline.quantizing.quantize import quantize_file

        given = o.data_options(data, samples, random_calibration, seed, fit, color, mean, std, prepare)
        conversion = o.conversion(shape, dim, value, trust, io_layout, anew, task)
        quantization = o.quantize_options(io, outputs, calibrator, recipe, save_recipe, least_db, analyze)
        quantization = o.with_effort(quantization, effort, preset)
        quantization = o.with_search(quantization, target_quality, metric, max_drop, budget_ms, jobs, target)
        return quantize_file(model, output, given, quantization, conversion, reporter)

    return run_command("quantize", work, json=json, quiet=quiet)
