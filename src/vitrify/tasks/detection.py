"""Detection heads in the YOLOv8 form: one tensor [1, 4 + classes, anchors] of boxes in pixels and scores in 0..1."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

STRIDES = (8, 16, 32)
SCORE, OVERLAP = 0.25, 0.45
"""Least score of a box, and the overlap above which the weaker of two goes. Source: YOLOv8's own defaults."""
MOST_BOXES = 100


class Box(NamedTuple):
    """One detection: corners in pixels of the model's input, class index, score."""

    left: float
    top: float
    right: float
    bottom: float
    label: int
    score: float


def anchors(height: int, width: int) -> int:
    """Return how many boxes such a head gives for an input of this size."""
    return sum((height // stride) * (width // stride) for stride in STRIDES)


def head_rows(output: Array, height: int, width: int) -> Array | None:
    """Return the output as [4 + classes, anchors] when it is such a head for this input size, else None."""
    if output.ndim != 3 or output.shape[0] != 1:
        return None
    count = anchors(height, width)
    candidates: tuple[Array, Array] = (output[0], output[0].T)
    for rows in candidates:
        if rows.shape[1] == count and 5 <= rows.shape[0] < count:
            return rows
    return None


def decode(rows: Array, score: float = SCORE, overlap: float = OVERLAP) -> list[Box]:
    """Return the boxes of a head [4 + classes, anchors] (centre, size, scores), the best first, without doubles."""
    best = rows[4:].max(axis=0)
    kept = np.flatnonzero(best >= score)
    kept = kept[np.argsort(-best[kept], kind="stable")]
    labels = rows[4:, kept].argmax(axis=0)
    x, y, w, h = rows[:4, kept]
    corners = np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], axis=1)
    chosen: list[int] = []
    for index in range(len(kept)):
        same = [other for other in chosen if labels[other] == labels[index]]
        if not same or overlaps(corners[index], corners[same]).max() <= overlap:
            chosen.append(index)
        if len(chosen) == MOST_BOXES:
            break
    return [Box(float(corners[i, 0]), float(corners[i, 1]), float(corners[i, 2]), float(corners[i, 3]), int(labels[i]),
                float(best[kept[i]])) for i in chosen]


def overlaps(box: Array, others: Array) -> Array:
    """Return intersection over union of one box with each of several, all as corners."""
    low = np.maximum(box[:2], others[:, :2])
    high = np.minimum(box[2:], others[:, 2:])
    shared = np.prod(np.clip(high - low, 0, None), axis=1)
    area = np.prod(np.clip(others[:, 2:] - others[:, :2], 0, None), axis=1)
    own = float(np.prod(np.clip(box[2:] - box[:2], 0, None)))
    result: Array = shared / np.maximum(own + area - shared, 1e-12)
    return result


def matched(reference: list[Box], candidate: list[Box], overlap: float = 0.5) -> tuple[int, float]:
    """Return how many boxes of ``reference`` are found in ``candidate`` with the same class, and their mean overlap."""
    free = list(candidate)
    found: list[float] = []
    for box in reference:
        same = [other for other in free if other.label == box.label]
        if not same:
            continue
        shares = overlaps(np.array(box[:4]), np.array([other[:4] for other in same]))
        best = int(shares.argmax())
        if shares[best] >= overlap:
            found.append(float(shares[best]))
            free.remove(same[best])
    return len(found), float(np.mean(found)) if found else 0.0
