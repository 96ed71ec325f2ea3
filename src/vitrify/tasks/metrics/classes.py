"""Classes: how often the right one is first, or among the first five."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vitrify.tasks.found import Classes
from vitrify.tasks.metrics.base import Record, Truth, measure, percent
from vitrify.tasks.spec import TaskSpec

Array = np.ndarray[Any, np.dtype[Any]]


def _record(found: Classes, truth: Truth, spec: TaskSpec) -> Record:
    """How many classes stand before the right one; of equal scores the first class stands first."""
    label, scores = int(truth["label"]), found.scores
    return int((scores > scores[label]).sum() + (scores[:label] == scores[label]).sum())


def ranks(scores: Array, labels: Array) -> list[int]:
    """The records of many samples at once, scores [n, classes]."""
    own = np.take_along_axis(scores, labels[:, None], 1)
    earlier = np.arange(scores.shape[1])[None] < labels[:, None]
    found: list[int] = ((scores > own).sum(1) + ((scores == own) & earlier).sum(1)).tolist()
    return found


def _truth(found: Classes, spec: TaskSpec) -> Truth:
    return {"label": int(found.scores.argmax())}


@measure("classification", "keywords", needs=("label",), main="top-1", record=_record, truth=_truth)
def total(records: Sequence[Record], truths: Sequence[Truth], spec: TaskSpec) -> dict[str, float]:
    """Percent of samples."""
    found = np.asarray(records)
    return {"top-1": percent(float((found == 0).sum()), len(found)),
            "top-5": percent(float((found < 5).sum()), len(found))}
