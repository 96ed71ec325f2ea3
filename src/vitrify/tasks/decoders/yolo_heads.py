"""Ultralytics' heads before decoding: logits of classes and distributions of distances for each level.

Three outputs [1, 64 + classes, h, w], or boxes and classes as outputs of their own, channels first or last: how
exporters for NPUs cut the graph. Source: Generalized Focal Loss, arXiv 2006.04388, for distances as distributions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vitrify.tasks.decoders.yolo import from_logits
from vitrify.tasks.found import Objects
from vitrify.tasks.grids import Level, cells_of, corners_of, levels, levels_of
from vitrify.tasks.naming import class_names
from vitrify.tasks.registry import Answer, Signs, decoder
from vitrify.tasks.spec import TaskSpec
from vitrify.tasks.suppression import objects, softmax

Array = np.ndarray[Any, np.dtype[Any]]

REACH = 16
"""Distances that a side is a distribution over."""


def _fits(signs: Signs) -> Mapping[str, Any] | None:
    found = levels_of(signs)
    if found is None or len(found) < 2 or {len(channels) for channels in found.values()} not in ({1}, {2}):
        return None
    names = len(class_names(signs.metadata.get("names", "")))
    whole = {sum(channels) for channels in found.values()}
    if len(whole) != 1:
        return None
    classes = whole.pop() - 4 * REACH
    both = all(4 * REACH in channels for channels in found.values()) if len(next(iter(found.values()))) == 2 else True
    if classes < 1 or not both or (names and classes != names):
        return None
    return {"classes": classes} if names or len(next(iter(found.values()))) == 2 or classes in (1, 80) else None


@decoder("yolov8-heads", "detection", "for each level [1, 64 + classes, h, w], before decoding", fits=_fits, weight=15,
         fit="letterbox")
def yolov8_heads(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """Boxes from the raw levels."""
    boxes, scores = [], []
    for level in levels(answer, size):
        box, own = _parted(level)
        boxes.append(_decoded(box, level))
        scores.append(from_logits(own))
    found, _ = objects(np.concatenate(boxes), np.concatenate(scores), spec)
    return found


def _parted(level: Level) -> tuple[Array, Array]:
    """Distances and classes, [cells, channels] each."""
    if len(level.values) == 1:
        return level.values[0][:, :4 * REACH], level.values[0][:, 4 * REACH:]
    first, second = level.values
    return (first, second) if first.shape[1] == 4 * REACH else (second, first)


def _decoded(box: Array, level: Level) -> Array:
    """Corners from distributions of distances to the four sides."""
    shares = softmax(box.reshape(len(box), 4, REACH).astype(np.float32))
    return corners_of(cells_of(level) + 0.5, shares @ np.arange(REACH, dtype=np.float32), level.stride)
