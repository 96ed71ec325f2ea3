"""Decoders and metrics, registered by one decorator each; what there is, is what is listed to the user."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, TypeVar

import numpy as np

from vitrify.core.errors import UsageError
from vitrify.tasks.found import Found
from vitrify.tasks.spec import TaskSpec

Array = np.ndarray[Any, np.dtype[Any]]
Answer = Mapping[str, Array]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Signs:
    """What tells the form of a model's outputs: their shapes by name, the input's, and the exporter's words.

    ``size`` is height and width of a picture at the input, (0, 0) where it takes none; ``channels`` its channels.
    """

    outputs: dict[str, Shape]
    inputs: dict[str, Shape] = field(default_factory=dict)
    size: tuple[int, int] = (0, 0)
    channels: int = 0
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def shapes(self) -> list[Shape]:
        """The outputs' shapes in the model's order."""
        return list(self.outputs.values())

    @property
    def told(self) -> str:
        """The task that the exporter names: detect, segment, pose, obb, classify. Source: Ultralytics ONNX metadata."""
        return self.metadata.get("task", "")


Decode = Callable[[Answer, TaskSpec, tuple[int, int]], Found]
Made = TypeVar("Made", bound=Found)
Fits = Callable[[Signs], Mapping[str, Any] | None]


@dataclass(frozen=True)
class Decoder:
    """One form of outputs: what it is called, of which kind of task, and how it is told from others.

    ``fits`` returns the options that the shapes tell, None for outputs of another form. Of several that fit, the one
    with the largest ``weight`` is taken. ``prepare`` is how files usually become the input of such models.
    """

    name: str
    kind: str
    text: str
    decode: Decode
    fits: Fits
    weight: int
    prepare: Mapping[str, Any]
    score: float
    overlap: float


DECODERS: dict[str, Decoder] = {}
KINDS: dict[str, str] = {
    "classification": "classes of pictures, top-1 and top-5",
    "detection": "boxes with classes, COCO mAP",
    "instances": "boxes with masks, COCO mask mAP",
    "segmentation": "a class for each pixel, mIoU",
    "pose": "people with key points, OKS mAP",
    "oriented": "turned boxes, mAP of their overlap",
    "text": "regions of text, mAP",
    "reading": "a line of text, character error rate",
    "landmarks": "points of a face, mean distance",
    "depth": "a depth for each pixel, error relative to the truth",
    "saliency": "how much each pixel stands out, mean error",
    "enlarging": "a larger picture, PSNR",
    "keywords": "words that are spoken, top-1",
    "speech": "whether someone speaks, share of frames",
    "embedding": "vectors to be compared, cosine",
}
"""What models are for, with the metric of each."""


def decoder(name: str, kind: str, text: str, *, fits: Fits, weight: int = 10, score: float = 0.25,
            overlap: float = 0.45, **prepare: Any
            ) -> Callable[[Callable[[Answer, TaskSpec, tuple[int, int]], Made]],
                          Callable[[Answer, TaskSpec, tuple[int, int]], Made]]:
    """Register a function of answers, spec and the input's (height, width), which gives places in input pixels."""
    if kind not in KINDS:
        raise ValueError(f"there is no kind of task '{kind}'")

    def register(function: Callable[[Answer, TaskSpec, tuple[int, int]], Made]
                 ) -> Callable[[Answer, TaskSpec, tuple[int, int]], Made]:
        DECODERS[name] = Decoder(name, kind, text, function, fits, weight, prepare, score, overlap)
        return function
    return register


def load() -> None:
    """Import every file of decoders, which registers what is in it."""
    for module in iter_modules([str(Path(__file__).parent / "decoders")]):
        import_module(f"vitrify.tasks.decoders.{module.name}")


def never(signs: Signs) -> None:
    """For decoders that nothing in a file tells of: only a person can name them."""
    del signs


def chosen(name: str) -> Decoder:
    """Return a decoder by its name.

    Raises:
        UsageError: there is none.
    """
    load()
    if name not in DECODERS:
        raise UsageError.of("task.decoder", f"there is no decoder '{name}'", where="--decoder",
                            help=f"there are {', '.join(sorted(DECODERS))}")
    return DECODERS[name]


def require_kind(kind: str) -> None:
    """See to it that there is such a task.

    Raises:
        UsageError: there is none.
    """
    if kind not in KINDS:
        from difflib import get_close_matches

        near = get_close_matches(kind, KINDS, 1)
        raise UsageError.of("task.unknown", f"there is no task '{kind}'", where="--task",
                            help=(f"perhaps {near[0]}; " if near else "") + f"there are {', '.join(KINDS)}")


def cells(size: tuple[int, int], strides: Sequence[int]) -> int:
    """How many places grids of these strides have."""
    return sum(math.ceil(size[0] / s) * math.ceil(size[1] / s) for s in strides)
