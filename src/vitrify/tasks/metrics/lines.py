"""Text, curves, vectors and points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vitrify.core.errors import DataError
from vitrify.tasks.found import Curve, Objects, Text, Vector
from vitrify.tasks.metrics.base import Record, Truth, measure, percent
from vitrify.tasks.spec import TaskSpec

SURE = 0.5


def edits(one: str, other: str) -> int:
    """The least number of characters put in, left out or exchanged that makes one text the other (Levenshtein)."""
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, 1):
        before, row[0] = row[0], number
        for index, second in enumerate(other, 1):
            before, row[index] = row[index], min(row[index] + 1, row[index - 1] + 1, before + (letter != second))
    return row[-1]


def _read(found: Text, truth: Truth, spec: TaskSpec) -> Record:
    wanted = str(truth["text"])
    return [edits(wanted, found.text), len(wanted), int(wanted == found.text)]


def _as_text(found: Text, spec: TaskSpec) -> Truth:
    return {"text": found.text}


@measure("reading", needs=("text",), main="characters right", record=_read, truth=_as_text)
def read(records: Sequence[Record], truths: Sequence[Truth], spec: TaskSpec) -> dict[str, float]:
    """100 less the character error rate, the rate itself, and lines without any error; in percent."""
    rate = percent(sum(r[0] for r in records), sum(r[1] for r in records))
    return {"characters right": max(0.0, 100 - rate), "CER": rate,
            "lines right": percent(sum(r[2] for r in records), len(records))}


def _speaks(found: Curve, truth: Truth, spec: TaskSpec) -> Record:
    wanted = np.asarray(truth["values"]).reshape(-1) > SURE
    if wanted.size != found.values.size:
        raise DataError.of("labels.size", f"{wanted.size} labels for {found.values.size} frames")
    given = found.values > SURE
    return [int((wanted == given).sum()), int(wanted.size)]


def _as_curve(found: Curve, spec: TaskSpec) -> Truth:
    return {"values": found.values.tolist()}


@measure("speech", needs=("values",), main="frames right", record=_speaks, truth=_as_curve)
def speaks(records: Sequence[Record], truths: Sequence[Truth], spec: TaskSpec) -> dict[str, float]:
    """Percent of frames."""
    return {"frames right": percent(sum(r[0] for r in records), sum(r[1] for r in records))}


def _alike(found: Vector, truth: Truth, spec: TaskSpec) -> Record:
    one, other = found.values.astype(np.float64).reshape(-1), np.asarray(truth["values"], np.float64).reshape(-1)
    if one.size != other.size:
        raise DataError.of("labels.size", f"a vector has {one.size} values, its label {other.size}")
    return float(one @ other / max(float(np.linalg.norm(one) * np.linalg.norm(other)), 1e-12))


def _as_vector(found: Vector, spec: TaskSpec) -> Truth:
    return {"values": found.values.tolist()}


@measure("embedding", needs=("values",), main="cosine", record=_alike, truth=_as_vector)
def alike(records: Sequence[Record], truths: Sequence[Truth], spec: TaskSpec) -> dict[str, float]:
    """The mean cosine and the least, times 100."""
    return {"cosine": 100 * float(np.mean(records)), "least cosine": 100 * float(np.min(records))}


def _points(found: Objects, truth: Truth, spec: TaskSpec) -> Record:
    """The mean distance of the points over the diagonal of the truth's hull."""
    wanted = np.asarray(truth["values"] if "values" in truth else truth["points"][0], np.float64)
    wanted = wanted.reshape(-1, wanted.shape[-1])[:, :2]
    if found.points is None or not len(found) or found.points.shape[1] != len(wanted):
        return 1.0
    size = float(np.linalg.norm(wanted.max(0) - wanted.min(0)))
    return float(np.linalg.norm(found.points[0, :, :2] - wanted, axis=1).mean() / max(size, 1e-9))


def _as_points(found: Objects, spec: TaskSpec) -> Truth:
    return {"values": found.points[0, :, :2].tolist() if found.points is not None and len(found) else []}


@measure("landmarks", needs=("values",), main="points right", record=_points, truth=_as_points)
def landmarks(records: Sequence[Record], truths: Sequence[Truth], spec: TaskSpec) -> dict[str, float]:
    """100 less the mean distance in percent of the face's size."""
    return {"points right": 100 * (1 - float(np.mean(records)))}
