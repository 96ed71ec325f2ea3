"""`vitrify eval`: how good a model and its other forms are on labelled samples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from vitrify.cli import options as o
from vitrify.cli import tasks as t
from vitrify.cli.arguments import Argument, Option
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.results import Result

StagesArgument = Annotated[list[Path], Argument(
    "MODEL", help="A model, and other forms of it; all are scored alike, and held against the first.")]
SetOfSamplesOption = Annotated[Path, Option(
    "--data", "-d", metavar="PLACE", help="Samples with labels: COCO JSON, a folder in YOLO, VOC or ImageNet form, a "
    "CSV table, an .npz file; without labels, how well each form agrees with the first is told.")]
LabelsOption = Annotated[str, Option(
    "--labels", metavar="FORM", help="The form of the labels (default: told by what lies there): coco, yolo, folders, "
    "csv, voc, arrays, or none.")]
MaxDropOption = Annotated[float | None, Option(
    "--max-drop", metavar="P", min=0.0, help="Points of the main metric that a form may lose against the first; more "
    "is an error.")]
SchedulerOption = Annotated[str, Option(
    "--scheduler", metavar="ADDRESS", help="A Dask scheduler whose workers share the work: tcp://HOST:8786.")]
StateOption = Annotated[Path | None, Option(
    "--state", metavar="FILE", is_file=True, help="Where each finished batch is kept, so that a run that was killed "
    "goes on (default: named after model and data, in the current folder).")]
BatchOption = Annotated[int, Option("--batch", metavar="N", min=1, help="Samples that are worked on together.")]
WorkersOption = Annotated[int, Option("--workers", "-j", metavar="N", min=1, help="Processes at once.")]


def eval(models: StagesArgument, data: SetOfSamplesOption, task: t.TaskOption = "", labels: LabelsOption = "",
         decoder: t.DecoderOption = "", names: t.NamesOption = None, score: t.ScoreOption = None,
         overlap: t.OverlapOption = None, most: t.MostOption = None, set: t.SetOption = o.NONE,
         samples: o.SamplesOption = None, max_drop: MaxDropOption = None, workers: WorkersOption = 1,
         scheduler: SchedulerOption = "", state: StateOption = None, batch: BatchOption = 250,
         kernels: t.KernelsOption = t.Kernels.XNNPACK, shape: o.ShapeOption = o.NONE, dim: o.DimOption = o.NONE,
         value: o.ValueOption = o.NONE, trust: o.TrustOption = False, mean: o.MeanOption = None,
         std: o.StdOption = None, fit: o.FitOption = None, color: o.ColorOption = None,
         prepare: o.PrepareOption = o.NONE, json: o.JsonOption = False, quiet: o.QuietOption = False) -> int:
    """Score a model and other forms of it on a set of samples, all by one scorer.

    The same command again goes on where it stopped. Figures are the same whatever the number of workers.
    """

    def work(reporter: Reporter) -> Result:
        from vitrify.pipeline.evaluating.evaluate import EvalOptions, evaluate_files

        given = o.data_options(data, samples, False, 0, fit, color, mean, std, prepare)
        options = EvalOptions(
            labels=labels, samples=given.samples, max_drop=max_drop, workers=workers, scheduler=scheduler, state=state,
            batch=batch, kernels=kernels.value, told=given.how() if given.told else None,
            task=t.task_options(task, decoder, names, score, overlap, most, set),
            conversion=o.conversion(shape, dim, value, trust))
        return evaluate_files(models, data, options, reporter)

    return run_command("eval", work, json=json, quiet=quiet)
