"""`vitrify convert`: a model in any format to float TFLite."""

from __future__ import annotations

import typer

from vitrify.cli import options as o
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.core.results import Result


def convert(model: o.ModelArgument, output: o.OutputOption = None, shape: o.ShapeOption = [],  # noqa: B006
            io_layout: o.LayoutOption = o.Layout.NHWC, json: o.JsonOption = False,
            quiet: o.QuietOption = False) -> None:
    """Convert a model to float TFLite."""

    def work(reporter: Reporter) -> Result:
        from vitrify.pipeline.convert import ConvertOptions, convert_file

        options = ConvertOptions(shapes=o.parse_shapes(shape), input_layout=io_layout.value,
                                 output_layout=io_layout.value)
        return convert_file(model, output, options, reporter)

    run_command("convert", work, json=json, quiet=quiet)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("convert")(convert)
