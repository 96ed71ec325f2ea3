"""Boxes in their forms, and which of several on one place stays."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.tasks.found import Objects, nothing
from vitrify.tasks.spec import TaskSpec

Array = np.ndarray[Any, np.dtype[Any]]

MOST_COMPARED = 30_000
"""Candidates that are compared at most, the best: a model whose every score is high costs bounded time."""


def corners(centred: Array) -> Array:
    """Boxes [..., 4] of centre and size as corners."""
    x, y, w, h = np.moveaxis(centred, -1, 0)
    return np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], -1)


def sigmoid(values: Array) -> Array:
    """The logistic function, without overflow."""
    found: Array = 0.5 * (1 + np.tanh(0.5 * values))
    return found


def softmax(values: Array, axis: int = -1) -> Array:
    """Shares that sum up to 1."""
    powers = np.exp(values - values.max(axis, keepdims=True))
    found: Array = powers / powers.sum(axis, keepdims=True)
    return found


def are_shares(values: Array) -> bool:
    """True for values of 0..1: an int8 file's shares of many classes no longer sum up to 1, as small ones are 0."""
    return bool(values.size and values.min() >= 0 and values.max() <= 1.001)


def suppressed(boxes: Array, labels: Array, scores: Array, overlap: float, most: int) -> Array:
    """Return which boxes stay, the best first: of two of one class with more than ``overlap``, the better."""
    order = np.argsort(-scores, kind="stable")[:MOST_COMPARED]
    boxes, labels = boxes[order].astype(np.float32), labels[order]
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    alive = np.ones(len(order), bool)
    kept: list[int] = []
    for index in range(len(order)):
        if not alive[index]:
            continue
        kept.append(index)
        if len(kept) == most:
            break
        rest = np.flatnonzero(alive[index + 1:] & (labels[index + 1:] == labels[index])) + index + 1
        low = np.maximum(boxes[index, :2], boxes[rest, :2])
        high = np.minimum(boxes[index, 2:], boxes[rest, 2:])
        shared = np.clip(high - low, 0, None).prod(1)
        alive[rest[shared / np.maximum(areas[index] + areas[rest] - shared, 1e-9) > overlap]] = False
    found: Array = order[np.asarray(kept, np.int64)]
    return found


def objects(boxes: Array, scores: Array, spec: TaskSpec, *, overlap: float | None = None) -> tuple[Objects, Array]:
    """Return the objects among candidates [n,4] (corners) with scores [n, classes], and which candidates they are.

    A candidate has its best class only; ``overlap`` 1 and more lets all stay.
    """
    if not len(boxes):
        return nothing(), np.zeros(0, np.int64)
    labels = scores.argmax(1)
    best = np.take_along_axis(scores, labels[:, None], 1)[:, 0]
    passed = np.flatnonzero(best > spec.score)
    limit = spec.overlap if overlap is None else overlap
    boxes, labels, best = boxes[passed], labels[passed], best[passed]
    kept = (np.argsort(-best, kind="stable")[:spec.most] if limit >= 1
            else suppressed(boxes, labels, best, limit, spec.most))
    return Objects(boxes[kept].astype(np.float32), labels[kept], best[kept].astype(np.float32)), passed[kept]
