"""Maps over the picture: classes, depths, what stands out, text; and larger pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vitrify.tasks.decoders.transformers import IMAGENET
from vitrify.tasks.decoders.yolo import from_logits
from vitrify.tasks.found import LabelMap, Objects, Pixels, Plane
from vitrify.tasks.regions import regions
from vitrify.tasks.registry import Answer, Signs, decoder
from vitrify.tasks.spec import TaskSpec

Array = np.ndarray[Any, np.dtype[Any]]

COARSEST = 32
MOST_CLASSES = 512


def _planes(signs: Signs) -> tuple[int, int, int] | None:
    """Channels, height and width of the first output that lies over the picture."""
    if not any(signs.size) or not signs.shapes:
        return None
    shape = signs.shapes[0]
    inner = shape[1:] if shape[:1] == (1,) else shape
    if len(inner) == 2:
        return (1, *inner) if _over(inner, signs.size) else None
    if len(inner) != 3:
        return None
    if _over(inner[1:], signs.size):
        return inner[0], inner[1], inner[2]
    return (inner[2], inner[0], inner[1]) if _over(inner[:2], signs.size) else None


def _over(grid: tuple[int, ...], size: tuple[int, int]) -> bool:
    """True for a grid of the picture's shape, at most so much coarser."""
    coarse = size[0] / grid[0], size[1] / grid[1]
    return 1 <= coarse[0] <= COARSEST and abs(coarse[0] - coarse[1]) < 0.1


def plane(answer: Answer) -> Array:
    """The first output as [channels, h, w]."""
    value = next(iter(answer.values()))
    value = value[0] if value.ndim > 2 and value.shape[0] == 1 else value
    if value.ndim == 2:
        return value[None]
    last = value.shape[2] < min(value.shape[:2])
    found: Array = value.transpose(2, 0, 1) if last else value
    return found


def _classes(signs: Signs) -> Mapping[str, Any] | None:
    found = _planes(signs)
    return {"classes": found[0]} if found is not None and 2 <= found[0] <= MOST_CLASSES and len(
        {s[-2:] for s in signs.shapes}) == 1 else None


@decoder("semantic", "segmentation", "[1, classes, h, w]", fits=_classes, weight=8, **IMAGENET)
def semantic(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> LabelMap:
    """The best class of each pixel; coarser maps are enlarged before the best is chosen, as SegFormer's reference."""
    values = plane(answer)
    if len(values) == 1:
        return LabelMap(np.rint(values[0]).astype(np.int64))
    return LabelMap(enlarged(values.astype(np.float32), size).argmax(0))


def enlarged(values: Array, size: tuple[int, int]) -> Array:
    """Maps [channels, h, w] at another size, linearly between the middles of pixels."""
    if values.shape[1:] == size:
        return values
    down, across = (_between(values.shape[axis], size[axis - 1]) for axis in (1, 2))
    found: Array = down @ (values @ across.T)
    return found


def _between(given: int, wanted: int) -> Array:
    """The matrix [wanted, given] of a line's linear enlargement."""
    places = np.clip((np.arange(wanted) + 0.5) * given / wanted - 0.5, 0, given - 1)
    low = places.astype(np.int64)
    share, rows = (places - low).astype(np.float32), np.arange(wanted)
    found = np.zeros((wanted, given), np.float32)
    found[rows, low] = 1 - share
    found[rows, np.minimum(low + 1, given - 1)] += share
    return found


def _one(signs: Signs) -> Mapping[str, Any] | None:
    found = _planes(signs)
    return {} if found is not None and found[0] == 1 and len(signs.shapes[0]) == 4 else None


def _flat(signs: Signs) -> Mapping[str, Any] | None:
    found = _planes(signs)
    return {} if found is not None and found[0] == 1 and len(signs.shapes[0]) == 3 and len(signs.shapes) == 1 else None


@decoder("map", "saliency", "[1, 1, h, w] of 0..1: what stands out, or a person's mask", fits=_one, weight=8,
         fit="letterbox", **IMAGENET)
def stands_out(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Plane:
    """The map itself, of logits their logistic function."""
    return Plane(from_logits(plane(answer)[0].astype(np.float32)))


@decoder("depth", "depth", "[1, h, w] or [1, 1, h, w], near is high", fits=_flat, weight=9, **IMAGENET)
def depth(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Plane:
    """The depths as they come, at the input's size."""
    return Plane(enlarged(plane(answer).astype(np.float32), size)[0])


def _text(signs: Signs) -> Mapping[str, Any] | None:
    return _one(signs) if any("dbnet" in v.lower() or "paddle" in v.lower() for v in signs.metadata.values()) else None


@decoder("db", "text", "[1, 1, h, w]: how sure that a pixel is text", fits=_text, weight=12, score=0.5,
         fit="letterbox", color="bgr", pad=0.0, **IMAGENET)
def db(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """Connected regions above a limit, each grown by its area over its edge, since the map shows shrunk text.

    Source: Differentiable Binarization, arXiv 1911.08947, section 3.4.
    """
    return regions(plane(answer)[0].astype(np.float32), size, limit=float(spec.options.get("limit", 0.3)),
                   score=spec.score, growth=float(spec.options.get("growth", 1.6)), most=spec.most)


def _larger(signs: Signs) -> Mapping[str, Any] | None:
    if len(signs.shapes) != 1 or len(signs.shapes[0]) != 4 or not any(signs.size) or signs.channels not in (1, 3):
        return None
    inner = signs.shapes[0][1:]
    first = inner[0] == signs.channels
    grid = inner[1:] if first else inner[:2]
    factor = grid[0] / signs.size[0]
    fits = factor >= 2 and factor == int(factor) and grid[1] == factor * signs.size[1]
    return {"factor": int(factor)} if fits and signs.channels in (inner[0], inner[2]) else None


@decoder("larger", "enlarging", "[1, channels, k * h, k * w]", fits=_larger, weight=15)
def larger(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Pixels:
    """A picture; values of 0..1 become 0..255."""
    values = next(iter(answer.values()))[0].astype(np.float32)
    values = values.transpose(1, 2, 0) if values.shape[0] in (1, 3) else values
    top = 1.0 if spec.options.get("unit", float(np.abs(values).max(initial=0)) < 16) else 255.0
    return Pixels(np.rint(values * (255 / top)).clip(0, 255).astype(np.uint8))
