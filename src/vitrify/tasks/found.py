"""What is found in a model's outputs, whatever form they had: what is drawn, printed and scored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Classes:
    """Scores of classes, as the model gives them or as shares that sum up to 1."""

    scores: Array

    def best(self, count: int = 5) -> list[tuple[int, float]]:
        """The best classes with their scores."""
        order = np.argsort(-self.scores, kind="stable")[:count]
        return [(int(i), float(self.scores[i])) for i in order]


@dataclass(frozen=True)
class Objects:
    """Objects: boxes [n,4] as corners in pixels, labels [n], scores [n], the best first.

    ``masks`` [n,h,w] of bool, ``points`` [n,k,3] as x, y and how sure, ``quads`` [n,4,2] the corners of turned boxes,
    of which ``boxes`` are the upright hulls; ``turned`` [n,5] as centre, size and angle.
    """

    boxes: Array
    labels: Array
    scores: Array
    masks: Array | None = None
    points: Array | None = None
    quads: Array | None = None
    turned: Array | None = None

    def __len__(self) -> int:
        return len(self.scores)

    def chosen(self, index: Array) -> Objects:
        """Some of them."""
        def some(values: Array | None) -> Array | None:
            return None if values is None else values[index]

        return replace(self, boxes=self.boxes[index], labels=self.labels[index], scores=self.scores[index],
                       masks=some(self.masks), points=some(self.points), quads=some(self.quads),
                       turned=some(self.turned))


@dataclass(frozen=True)
class LabelMap:
    """A class for each place, [h,w]."""

    labels: Array


@dataclass(frozen=True)
class Plane:
    """A real number for each place, [h,w]: a depth, or how much stands out."""

    values: Array


@dataclass(frozen=True)
class Pixels:
    """A picture, uint8[h,w,3] or [h,w,1]."""

    values: Array


@dataclass(frozen=True)
class Text:
    """What is read, and how sure."""

    text: str
    score: float


@dataclass(frozen=True)
class Curve:
    """A real number for each moment: how sure it is that someone speaks."""

    values: Array


@dataclass(frozen=True)
class Vector:
    """A vector to be compared with others."""

    values: Array


Found = Classes | Objects | LabelMap | Plane | Pixels | Text | Curve | Vector


def nothing() -> Objects:
    """No objects."""
    return Objects(np.zeros((0, 4), np.float32), np.zeros(0, np.int64), np.zeros(0, np.float32))
