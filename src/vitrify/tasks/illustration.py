"""One sample, shown: the input, and what the float and the INT8 model make of it, in the form that fits the output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from vitrify.ir import Interface
from vitrify.tasks import drawing
from vitrify.tasks.detection import decode, head_rows, matched

Array = np.ndarray[Any, np.dtype[Any]]

TOP = 5
SMALLEST_MAP = 8
MOST_CLASSES = 100_000


class Illustration(NamedTuple):
    """PNG pictures (empty when there is none) and scores as (label, value), float beside INT8."""

    task: str
    input: bytes = b""
    float_picture: bytes = b""
    int8_picture: bytes = b""
    float_scores: tuple[tuple[str, float], ...] = ()
    int8_scores: tuple[tuple[str, float], ...] = ()
    text: str = ""


class Preparation(NamedTuple):
    """How the pictures were made inputs, to be undone for showing."""

    mean: Sequence[float] = (0.0,)
    std: Sequence[float] = (1.0,)
    bgr: bool = False


def illustrate(interface: Interface, inputs: Mapping[str, Array], reference: Mapping[str, Array],
               candidate: Mapping[str, Array], prepared: Preparation,
               names: Sequence[str] = ()) -> Illustration | None:
    """Show one sample; None when neither the input nor an output can be shown.

    Args:
        interface: what the source model takes and gives.
        inputs: the sample, by the source's names.
        reference, candidate: the outputs of the float and of the INT8 model, by the source's names.
        prepared: how pictures were prepared.
        names: what the classes are called, by index.
    """
    ground = _ground(interface, inputs, prepared)
    for name, expected in reference.items():
        given = candidate[name]
        shown = (_detection(ground, expected, given, names) or _map(ground, expected, given)
                 or _classes(ground, expected, given, names))
        if shown is not None:
            return shown
    return None if ground is None else Illustration("picture", drawing.png(ground))


def interest(interface: Interface, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> float:
    """Return how much there is to see in a sample's outputs: boxes found, or how much of a map is high; else 0."""
    ground = _ground(interface, inputs, Preparation())
    if ground is None:
        return 0.0
    for output in outputs.values():
        rows = head_rows(output, *ground.shape[:2])
        if rows is not None:
            return sum(box.score for box in decode(rows))
        plane = _plane(output)
        if plane is not None:
            return float(np.abs(plane).mean())
    return 0.0


def _ground(interface: Interface, inputs: Mapping[str, Array], prepared: Preparation) -> Array | None:
    """The input as a picture, when there is one input that looks like one."""
    if len(interface.inputs) != 1:
        return None
    values = np.asarray(inputs[interface.inputs[0].name])
    if values.ndim != 4 or values.shape[0] != 1 or values.dtype.kind != "f":
        return None
    image = values[0]
    if image.shape[0] in (1, 3) and image.shape[2] not in (1, 3):
        image = image.transpose(1, 2, 0)
    if image.shape[2] not in (1, 3) or min(image.shape[:2]) < SMALLEST_MAP:
        return None
    return drawing.picture(image, prepared.mean, prepared.std, bgr=prepared.bgr)


def _detection(ground: Array | None, expected: Array, given: Array, names: Sequence[str]) -> Illustration | None:
    if ground is None:
        return None
    height, width = ground.shape[:2]
    rows, other = head_rows(expected, height, width), head_rows(given, height, width)
    if rows is None or other is None:
        return None
    wanted, found = decode(rows), decode(other)
    count, overlap = matched(wanted, found)
    text = (f"{count} of {len(wanted)} boxes found again, mean overlap {overlap:.2f}; {len(found)} boxes with INT8"
            if wanted else f"no box above the score limit with float, {len(found)} with INT8")
    return Illustration("detection", drawing.png(ground), drawing.png(drawing.boxes(ground, wanted, names)),
                        drawing.png(drawing.boxes(ground, found, names)), text=text)


def _map(ground: Array | None, expected: Array, given: Array) -> Illustration | None:
    plane, other = _plane(expected), _plane(given)
    if ground is None or plane is None or other is None:
        return None
    low, high = float(plane.min()), float(plane.max())
    low, high = (0.0, 1.0) if low >= 0 and 0.2 < high <= 1.0 else (low, high)
    text = f"mean difference of the map {float(np.abs(plane - other).mean()):.4g}, range {low:.3g} to {high:.3g}"
    return Illustration("map", drawing.png(ground), drawing.png(drawing.heat(ground, plane, low, high)),
                        drawing.png(drawing.heat(ground, other, low, high)), text=text)


def _plane(output: Array) -> Array | None:
    """The output as one plane [H,W], when it is one."""
    if output.ndim not in (3, 4) or output.shape[0] != 1:
        return None
    sides = [extent for extent in output.shape[1:] if extent > 1]
    if len(sides) != 2 or min(sides) < SMALLEST_MAP:
        return None
    if output.ndim == 4 and 1 not in (output.shape[1], output.shape[3]):
        return None
    return output.reshape(sides)


def _classes(ground: Array | None, expected: Array, given: Array, names: Sequence[str]) -> Illustration | None:
    scores, other = expected.reshape(-1), given.reshape(-1)
    if not 2 <= scores.size <= MOST_CLASSES or max(expected.shape) != scores.size or scores.dtype.kind != "f":
        return None
    agree = "the same class" if int(scores.argmax()) == int(other.argmax()) else "another class"
    shown = drawing.png(ground) if ground is not None else b""
    return Illustration("classification", shown, float_scores=_top(scores, names),
                        int8_scores=_top(other, names),
                        text=f"INT8 names {agree}")


def _top(scores: Array, names: Sequence[str]) -> tuple[tuple[str, float], ...]:
    best = np.argsort(-scores, kind="stable")[:TOP]
    return tuple((names[index] if index < len(names) else f"class {index}", float(scores[index])) for index in best)
