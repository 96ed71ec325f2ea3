"""`vitrify run`: a model on a picture, a video, a recording or an array."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from vitrify.cli import options as o
from vitrify.cli import tasks as t
from vitrify.cli.arguments import Argument, Option
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.results import Result

InputArgument = Annotated[Path, Argument(
    "INPUT", "A picture, a video, a recording (.wav), arrays (.npy, .npz), or a folder of those.")]
PicturesOption = Annotated[Path | None, Option(
    "-o", "--output", metavar="PLACE", help="Draw what is found: a .png file, a folder, or a video (.mp4).")]
NO_FORMS: list[Path] = []
CompareOption = Annotated[list[Path], Option(
    "--compare", metavar="FORM", help="Another form of the model, drawn beside it. Repeatable.")]


def run(model: o.ModelArgument, input: InputArgument, output: PicturesOption = None, compare: CompareOption = NO_FORMS,
        task: t.TaskOption = "", decoder: t.DecoderOption = "", names: t.NamesOption = None,
        score: t.ScoreOption = None, overlap: t.OverlapOption = None, most: t.MostOption = None,
        set: t.SetOption = o.NONE, kernels: t.KernelsOption = t.Kernels.XNNPACK,
        shape: o.ShapeOption = o.NONE, dim: o.DimOption = o.NONE, value: o.ValueOption = o.NONE,
        trust: o.TrustOption = False, mean: o.MeanOption = None, std: o.StdOption = None, fit: o.FitOption = None,
        color: o.ColorOption = None, prepare: o.PrepareOption = o.NONE, json: o.JsonOption = False,
        quiet: o.QuietOption = False) -> int:
    """Run a model and say, or draw, what it finds: boxes, masks, classes, text."""

    def work(reporter: Reporter) -> Result:
        from vitrify.pipeline.running.run import RunOptions, run_files

        given = o.data_options(None, None, False, 0, fit, color, mean, std, prepare)
        options = RunOptions(output=output, kernels=kernels.value, told=given.how() if given.told else None,
                             task=t.task_options(task, decoder, names, score, overlap, most, set),
                             conversion=o.conversion(shape, dim, value, trust))
        return run_files([model, *compare], input, options, reporter)

    return run_command("run", work, json=json, quiet=quiet)
