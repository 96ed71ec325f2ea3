"""`vitrify sweep`: one model over sizes, precisions and memory modes of a target."""

from __future__ import annotations

from vitrify.cli import options as o
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.results import Result


def sweep(model: o.ModelArgument, target: o.TargetOption, size: o.SizeOption = o.NONE,
          precision: o.PrecisionOption = o.NONE, memory_mode: o.MemoryModeOption = o.NONE,
          arena: o.ArenaOption = o.NONE, input: o.PictureOption = "", data: o.DataOption = None,
          samples: o.SamplesOption = None,
          shape: o.ShapeOption = o.NONE, dim: o.DimOption = o.NONE, value: o.ValueOption = o.NONE,
          trust: o.TrustOption = False, mean: o.MeanOption = None, std: o.StdOption = None, fit: o.FitOption = None,
          color: o.ColorOption = None, prepare: o.PrepareOption = o.NONE, seed: o.SeedOption = 0,
          workers: o.WorkersOption = 2, output: o.FolderOption = None, json: o.JsonOption = False,
          quiet: o.QuietOption = False) -> int:
    """Estimate a model over sizes, precisions and memory modes, and find where it jumps.

    Without --data it is quantized on random values: where nodes run and how long they take depends on shapes, not on
    values. The same command again goes on where it stopped.
    """

    def work(reporter: Reporter) -> Result:
        from vitrify.pipeline.sweeping.sweep import SweepOptions, sweep_file
        from vitrify.report.page.sweep_page import write_page

        options = SweepOptions(target=target, sizes=tuple(size), precisions=tuple(precision),
                               memory_modes=tuple(memory_mode), arenas=tuple(arena), input=input, workers=workers)
        given = o.data_options(data, samples, False, seed, fit, color, mean, std, prepare)
        result = sweep_file(model, output, options, given, o.conversion(shape, dim, value, trust), reporter)
        write_page(result)
        return result

    return run_command("sweep", work, json=json, quiet=quiet)
