"""What a metric asks of a model's answers: why it says nothing of a model, in words, or an empty text.

A metric that does not belong to a model gives a number all the same: the arg-max of a depth map agrees or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vitrify.tasks.detection import SCORE, decode

Array = np.ndarray[Any, np.dtype[Any]]
Answers = Sequence[Mapping[str, Array]]

SMOOTH = 0.8
"""Neighbours in maps and signals are alike by at least this correlation; scores of neighbouring classes are not."""

FEW = 16
"""Scores of fewer classes say nothing of how alike neighbours are."""

LEAST_HEAD = 5
"""Rows of a detection head: a box and a score."""

SHOWN = 4


def reals(answers: Answers) -> list[str]:
    """The names of the outputs that are real numbers."""
    return [name for name, value in answers[0].items() if value.dtype.kind == "f" and value.size]


def integers(answers: Answers) -> list[str]:
    """The names of the outputs that are class numbers, indices, counts or flags."""
    return [name for name, value in answers[0].items() if value.dtype.kind in "iub" and value.size]


def no_reals(answers: Answers) -> str:
    """Why a ratio of signal to error says nothing."""
    return "" if reals(answers) else f"no output is real numbers: {_outputs(answers)}"


def no_integers(answers: Answers) -> str:
    """Why the agreement of whole numbers says nothing."""
    return "" if integers(answers) else f"no output is class numbers, indices or flags: {_outputs(answers)}"


def no_classes(answers: Answers) -> str:
    """Why the place of the highest score says nothing: the first output of real numbers does not hold classes."""
    name = next(iter(reals(answers)), "")
    if not name:
        return no_reals(answers)
    values = [answer[name] for answer in answers]
    shown = f"output '{name}' is {list(values[0].shape)}"
    if values[0].ndim == 0 or values[0].shape[-1] < 2:
        return f"{shown}, and holds one value where scores of classes would be"
    if _are_shares(values):
        return ""
    if sum(extent > 1 for extent in values[0].shape) > 2:
        return f"{shown}: a map, not scores of classes"
    if head(answers) == name:
        return f"{shown}: boxes and scores of a detector"
    if _smoothness(values) > SMOOTH:
        return f"{shown}, and neighbouring values are alike, as in a map or a signal"
    return ""


def no_detections(answers: Answers) -> str:
    """Why boxes that are found again say nothing: there is no head to decode, or nothing is found."""
    name = head(answers)
    if not name:
        return f"no output is [1, 4 + classes, boxes] with scores of 0..1: {_outputs(answers)}"
    if not any(decode(rows_of(answer[name])) for answer in answers):
        return f"the float model finds nothing above {SCORE:g} on {len(answers)} samples"
    return ""


def head(answers: Answers) -> str:
    """The name of the output that holds boxes and scores, or nothing."""
    for name, value in answers[0].items():
        if value.ndim == 3 and value.shape[0] == 1 and min(value.shape[1:]) >= LEAST_HEAD and value.dtype.kind == "f":
            scores = [rows_of(answer[name])[4:] for answer in answers]
            boxes = [rows_of(answer[name])[:4] for answer in answers]
            if all(float(s.min()) >= -1e-3 and float(s.max()) <= 1 + 1e-3 for s in scores) and (
                    any(float(b.max()) > 1 for b in boxes) or not _are_shares([a[name] for a in answers])):
                return name
    return ""


def rows_of(output: Array) -> Array:
    """A head as [4 + classes, boxes]; there are more boxes than classes."""
    rows: Array = output[0] if output.shape[1] < output.shape[2] else output[0].T
    return rows


def _are_shares(values: Sequence[Array]) -> bool:
    """True when the values along the last axis sum up to 1, as those of a softmax do."""
    return all(float(v.min()) >= 0 and np.allclose(v.sum(axis=-1), 1, atol=0.01) for v in values)


def _smoothness(values: Sequence[Array]) -> float:
    """The correlation of neighbours along the last axis."""
    if values[0].shape[-1] < FEW:
        return 0.0
    rows = np.concatenate([v.reshape(-1, v.shape[-1]).astype(np.float64) for v in values[:FEW]])
    left, right = rows[:, :-1].reshape(-1), rows[:, 1:].reshape(-1)
    if left.std() < 1e-12 or right.std() < 1e-12:
        return 0.0
    return float(np.corrcoef(left, right)[0, 1])


def _outputs(answers: Answers) -> str:
    listed = [f"'{name}' is {value.dtype}{list(value.shape)}" for name, value in answers[0].items()]
    return ", ".join(listed[:SHOWN]) + (f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else "")
