"""`vitrify convert`: a model in any format to float TFLite."""

from __future__ import annotations

from vitrify.cli import options as o
from vitrify.cli import tasks as t
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.results import Result


def convert(model: o.ModelArgument, output: o.OutputOption = None, shape: o.ShapeOption = o.NONE,
            dim: o.DimOption = o.NONE,
            value: o.ValueOption = o.NONE, trust: o.TrustOption = False,
            io_layout: o.LayoutOption = o.Layout.NHWC, task: t.TaskOption = "", json: o.JsonOption = False,
            quiet: o.QuietOption = False) -> int:
    """Convert a model to float TFLite."""

    def work(reporter: Reporter) -> Result:
        from vitrify.pipeline.convert import convert_file

        options = o.conversion(shape, dim, value, trust, io_layout, task=task)
        return convert_file(model, output, options, reporter)

    return run_command("convert", work, json=json, quiet=quiet)
