"""`vitrify check`: where each node would run on a target, and why."""

from __future__ import annotations

from vitrify.cli import options as o
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.results import Result


def check(model: o.ModelArgument, target: o.TargetOption, data: o.DataOption = None, samples: o.SamplesOption = None,
          random_calibration: o.RandomOption = False, shape: o.ShapeOption = o.NONE, dim: o.DimOption = o.NONE,
          value: o.ValueOption = o.NONE, trust: o.TrustOption = False,
          mean: o.MeanOption = None, std: o.StdOption = None, fit: o.FitOption = None,
          color: o.ColorOption = None, prepare: o.PrepareOption = o.NONE,
          seed: o.SeedOption = 0, rules_only: o.RulesOnlyOption = False, fix: o.FixOption = False,
          output: o.OutputOption = None, fix_only: o.FixOnlyOption = o.NONE, approximate: o.ApproximateOption = o.NONE,
          json: o.JsonOption = False,
          quiet: o.QuietOption = False) -> int:
    """Say for each node whether it runs on the NPU or the CPU, why, and what mends it.

    A float model is judged as it is and as it would be quantized: with --data, or else on random values, since where a
    node runs does not depend on them.
    """

    def work(reporter: Reporter) -> Result:
        from vitrify.pipeline.checking.check import check_file
        from vitrify.pipeline.checking.fixing import FixOptions

        fixing = FixOptions(wanted=fix, output=output, only=tuple(o.words(fix_only)), seed=seed,
                            approximate=tuple(o.words(approximate)))
        given = o.data_options(data, samples, random_calibration, seed, fit, color, mean, std, prepare)
        return check_file(model, target, given, o.conversion(shape, dim, value, trust), reporter, rules_only,
                          fixing)

    return run_command("check", work, json=json, quiet=quiet)
