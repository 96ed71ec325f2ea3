"""Turned boxes: average precision by the likeness of their Gaussians, as Ultralytics validates them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vitrify.tasks.found import Objects
from vitrify.tasks.metrics.base import Record, Truth, measure
from vitrify.tasks.spec import TaskSpec
from vitrify.tasks.turned import likeness

Array = np.ndarray[Any, np.dtype[Any]]

LEVELS = np.linspace(0.5, 0.95, 10)


def _record(found: Objects, truth: Truth, spec: TaskSpec) -> Record:
    quads = found.quads if found.quads is not None else np.zeros((0, 4, 2))
    return {"turned": [_turned(q) for q in quads], "labels": found.labels.tolist(),
            "scores": [float(s) for s in found.scores]}


def _turned(quad: Any) -> list[float]:
    """Centre, sides and angle of four corners in their order."""
    corners = np.asarray(quad, np.float64)
    middle, first, second = corners.mean(0), corners[1] - corners[0], corners[2] - corners[1]
    return [*middle.tolist(), float(np.linalg.norm(first)), float(np.linalg.norm(second)),
            float(np.arctan2(first[1], first[0]))]


def _truth(found: Objects, spec: TaskSpec) -> Truth:
    return {"quads": [] if found.quads is None else found.quads.tolist(), "labels": found.labels.tolist(), "boxes": []}


@measure("oriented", needs=("quads",), main="mAP", record=_record, truth=_truth)
def precision(records: Sequence[Record], truths: Sequence[Truth], spec: TaskSpec) -> dict[str, float]:
    """Average precision over overlaps of 0.5 to 0.95, and at 0.5; of classes that occur."""
    labels = sorted({int(v) for truth in truths for v in truth["labels"]})
    found = np.array([_of_class(label, records, truths) for label in labels])
    return {"mAP": 100 * float(found.mean()), "AP50": 100 * float(found[:, 0].mean())} if len(found) else {}


def _of_class(label: int, records: Sequence[Record], truths: Sequence[Truth]) -> Array:
    """The average precision of one class at each level."""
    scores, hits, wanted = [], [], 0
    for record, truth in zip(records, truths, strict=True):
        real = np.array([_turned(q) for q, v in zip(truth.get("quads", ()), truth["labels"], strict=True)
                         if v == label]).reshape(-1, 5)
        own = [i for i, v in enumerate(record["labels"]) if v == label]
        wanted += len(real)
        free = np.ones((len(LEVELS), len(real)), bool)
        for index in sorted(own, key=lambda i: -record["scores"][i]):
            scores.append(record["scores"][index])
            hits.append(_taken(np.array(record["turned"][index]), real, free))
    if not hits:
        return np.zeros(len(LEVELS))
    order = np.argsort(-np.array(scores), kind="stable")
    right = np.cumsum(np.array(hits)[order], 0)
    precision = right / np.arange(1, len(order) + 1)[:, None]
    recall = right / wanted
    smooth = np.maximum.accumulate(precision[::-1], 0)[::-1]
    grid = np.linspace(0, 1, 101)
    found: Array = np.array([[smooth[min(np.searchsorted(recall[:, n], g), len(order))][n]
                      if np.searchsorted(recall[:, n], g) < len(order) else 0.0 for g in grid]
                     for n in range(len(LEVELS))]).mean(1)
    return found


def _taken(box: Array, real: Array, free: Array) -> Array:
    """At which levels the box finds an object that is free, which it then takes."""
    hit = np.zeros(len(LEVELS), bool)
    if not len(real):
        return hit
    alike = likeness(box, real)
    for number, level in enumerate(LEVELS):
        candidates = np.where(free[number], alike, -1)
        best = int(candidates.argmax())
        if candidates[best] >= level:
            hit[number], free[number, best] = True, False
    return hit
