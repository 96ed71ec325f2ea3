"""`vitrify bisect`: what brings an error."""

from __future__ import annotations

from typing import Annotated

from vitrify.cli import options as o
from vitrify.cli.arguments import Option
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.results import Result

LeastOption = Annotated[float, Option(
    "--least-db", metavar="DB", help="SQNR that every output should keep in 8 bits.")]


def bisect(model: o.ModelArgument, data: o.DataOption = None, samples: o.SamplesOption = None,
           random_calibration: o.RandomOption = False, least_db: LeastOption = 20.0, recipe: o.RecipeOption = None,
           preset: o.PresetOption = "", effort: o.EffortOption = None, shape: o.ShapeOption = o.NONE,
           dim: o.DimOption = o.NONE, value: o.ValueOption = o.NONE, trust: o.TrustOption = False,
           mean: o.MeanOption = None, std: o.StdOption = None, fit: o.FitOption = None, color: o.ColorOption = None,
           prepare: o.PrepareOption = o.NONE, seed: o.SeedOption = 0, json: o.JsonOption = False,
           quiet: o.QuietOption = False) -> int:
    """Find the pass, or the operators in 8 bits, that bring a model's error.

    Passes are switched off from the end, and operators left in float, until the fewest are left that the error needs.
    """

    def work(reporter: Reporter) -> Result:
        import msgspec

        from vitrify.pipeline.bisecting.bisect import bisect_file
        from vitrify.pipeline.options import QuantizeOptions

        given = o.data_options(data, samples, random_calibration, seed, fit, color, mean, std, prepare)
        options = msgspec.structs.replace(o.with_effort(QuantizeOptions(recipe=recipe), effort, preset), outputs="keep")
        return bisect_file(model, given, options, o.conversion(shape, dim, value, trust), reporter, least_db=least_db)

    return run_command("bisect", work, json=json, quiet=quiet)
