"""What `run` and `eval` can be told of a model's task."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from vitrify.cli.arguments import Option
from vitrify.core.errors import UsageError

if TYPE_CHECKING:
    from vitrify.pipeline.running.model import TaskOptions


class Kernels(Enum):
    """LiteRT's kernels."""

    XNNPACK = "xnnpack"
    OPTIMIZED = "optimized"
    REFERENCE = "reference"


TaskOption = Annotated[str, Option(
    "--task", metavar="TASK", help="What the model is for (default: told by its outputs and metadata): classification, "
    "detection, instances, segmentation, pose, oriented, text, reading, landmarks, depth, saliency, enlarging, "
    "keywords, speech, embedding.")]
DecoderOption = Annotated[str, Option(
    "--decoder", metavar="NAME", help="The form of its outputs, such as yolov8 or yolox (default: told by their "
                                       "shapes).")]
NamesOption = Annotated[Path | None, Option(
    "--names", metavar="FILE", help="A text file with the name of a class in each line (default: the model's own).")]
ScoreOption = Annotated[float | None, Option("--score", metavar="S", min=0.0, help="The least score that counts.")]
OverlapOption = Annotated[float | None, Option(
    "--overlap", metavar="S", min=0.0, help="The overlap above which the weaker of two boxes of a class goes.")]
MostOption = Annotated[int | None, Option("--most", metavar="N", min=1, help="Boxes that stay at most.")]
SetOption = Annotated[list[str], Option(
    "--set", metavar="NAME=V", help="An option of the decoder, such as anchors or strides. Repeatable.")]
KernelsOption = Annotated[Kernels, Option(
    "--kernels", help="LiteRT's kernels: xnnpack and optimized are fast, reference is bit-exact by definition.")]


def task_options(task: str, decoder: str, names: Path | None, score: float | None, overlap: float | None,
                 most: int | None, options: list[str]) -> TaskOptions:
    """Read what is told of the task.

    Raises:
        UsageError: an option of the decoder is no name with a value, or the names cannot be read.
    """
    from vitrify.pipeline.running.model import TaskOptions

    return TaskOptions(task=task, decoder=decoder, names=_names(names), score=score, overlap=overlap, most=most,
                       options=dict(map(_option, options)))


def _names(path: Path | None) -> tuple[str, ...]:
    if path is None:
        return ()
    try:
        return tuple(path.read_text(encoding="utf-8").rstrip("\n").split("\n"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError.of("task.names", f"cannot read {path}: {error}", where="--names",
                            help="give a text file with the name of a class in each line") from error


def _option(text: str) -> tuple[str, Any]:
    import json

    name, _, value = text.partition("=")
    if not name or not value:
        raise UsageError.of("task.option", f"--set {text!r} is no name with a value", where="--set",
                            help="write it like --set strides=[8,16,32]")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
