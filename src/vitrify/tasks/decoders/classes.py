"""Scores of classes: of pictures, of spoken words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vitrify.tasks.found import Classes
from vitrify.tasks.registry import Answer, Signs, decoder, never
from vitrify.tasks.spec import TaskSpec
from vitrify.tasks.suppression import are_shares, softmax

MOST_CLASSES = 100_000


def _one_row(signs: Signs) -> Mapping[str, Any] | None:
    """One output of scores, the rest as 1."""
    shapes = signs.shapes
    if len(shapes) != 1 or not 2 <= max(shapes[0], default=0) <= MOST_CLASSES:
        return None
    return {} if int(np.prod(shapes[0])) == max(shapes[0]) else None


def _of_pictures(signs: Signs) -> Mapping[str, Any] | None:
    return _one_row(signs) if signs.channels in (1, 3) and min(signs.size) >= 8 else None


@decoder("classes", "classification", "one row of scores or logits", fits=_of_pictures, weight=5, fit="crop")
def classes(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Classes:
    """Shares that sum up to 1: where the model ends before its softmax, what that gives."""
    scores = next(iter(answer.values())).reshape(-1).astype(np.float32)
    return Classes(scores if are_shares(scores) or scores.size < 2 else softmax(scores))


@decoder("words", "keywords", "scores of words", fits=never)
def words(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Classes:
    """The same of a recording's features."""
    return classes(answer, spec, size)
