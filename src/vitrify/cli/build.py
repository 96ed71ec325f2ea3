"""`vitrify build`: the whole way, from a trained model to a compiled and verified one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from vitrify.cli import options as o
from vitrify.cli import tasks as t
from vitrify.cli.arguments import Option
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.results import Result

FolderOption = Annotated[Path | None, Option(
    "-o", "--output", metavar="DIR", help="The folder of the run (default: runs/NAME-TARGET).")]


def build(model: o.ModelArgument, target: o.TargetOption, data: o.DataOption = None, output: FolderOption = None,
          samples: o.SamplesOption = None, random_calibration: o.RandomOption = False,
          shape: o.ShapeOption = o.NONE, dim: o.DimOption = o.NONE,
          value: o.ValueOption = o.NONE, trust: o.TrustOption = False, io_layout: o.LayoutOption = o.Layout.NHWC,
          io: o.IoOption = o.Integer.INT8, outputs: o.OutputsOption = o.Outputs.SPLIT,
          calibrator: o.CalibratorOption = None, least_db: o.LeastDbOption = None, recipe: o.RecipeOption = None,
          preset: o.PresetOption = "", effort: o.EffortOption = None,
          save_recipe: o.SaveRecipeOption = None, mean: o.MeanOption = None, std: o.StdOption = None,
          fit: o.FitOption = None, color: o.ColorOption = None, prepare: o.PrepareOption = o.NONE,
          seed: o.SeedOption = 0, analyze: o.AnalyzeOption = False, target_quality: o.TargetQualityOption = "",
          metric: o.MetricOption = "", max_drop: o.MaxDropOption = None, budget_ms: o.BudgetOption = None,
          jobs: o.JobsOption = 1, neutron_sdk: o.NeutronSdkOption = "", neutron_option: o.NeutronOption = o.NONE,
          task: t.TaskOption = "",
          json: o.JsonOption = False, quiet: o.QuietOption = False) -> int:
    """Convert, quantize, verify and compile a model; writes a run folder with report.html.

    The same command again goes on where it stopped and reuses what has not changed.
    """

    def work(reporter: Reporter) -> Result:
        from vitrify.backends.base import CompilerOptions
        from vitrify.pipeline.building.build import BuildOptions, build_run
        from vitrify.pipeline.options import plain_options
        from vitrify.report.page.html import write_report

        given = o.data_options(data, samples, random_calibration, seed, fit, color, mean, std, prepare)
        options = BuildOptions(
            model=model, target=target, data=given, command=["vitrify", *sys.argv[1:]],
            compiler=CompilerOptions(where=neutron_sdk, options=plain_options(neutron_option)),
            conversion=o.conversion(shape, dim, value, trust, io_layout, task=task),
            quantization=o.with_search(
                o.with_effort(o.quantize_options(io, outputs, calibrator, recipe, save_recipe, least_db, analyze),
                              effort, preset),
                target_quality, metric, max_drop, budget_ms, jobs))
        return build_run(options, output, write_report, reporter)

    return run_command("build", work, json=json, quiet=quiet)
