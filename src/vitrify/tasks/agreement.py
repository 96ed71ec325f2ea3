"""How well a model's answers agree with others, as one number for a whole set of samples: the higher the better.

Each metric is registered once; ``METRICS`` is what the command line offers. Without labels, agreement is with the float
model; with labels it is with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitrify.tasks.detection import decode, matched
from vitrify.tasks.fitting import (
    head,
    integers,
    no_classes,
    no_detections,
    no_integers,
    no_reals,
    reals,
    rows_of,
)

Array = np.ndarray[Any, np.dtype[Any]]
Answers = Sequence[Mapping[str, Array]]
Function = Callable[[Answers, Answers], float]
Misfit = Callable[[Answers], str]

FAR = 200.0
"""What equal answers are said to keep, in dB: JSON and comparisons want a number."""

MOST_DB = 100.0
"""What 16-bit activations can keep at most, about."""


@dataclass(frozen=True)
class Metric:
    """A metric: its name, the unit of its values, and what it is in words.

    ``is_share``: percent of all samples or objects, for which many samples are needed; ``best`` is what equal answers
    get, ``most`` what can be asked for. ``misfit`` says of a model's answers why the metric tells nothing of them.
    """

    name: str
    unit: str
    text: str
    function: Function
    is_share: bool
    best: float
    most: float
    example: float
    misfit: Misfit

    @property
    def is_bounded(self) -> bool:
        """True when equal answers get the most that can be asked for."""
        return self.best == self.most

    def __call__(self, wanted: Answers, given: Answers) -> float:
        """Compare two sets of answers to the same samples."""
        return self.function(wanted, given)

    def show(self, value: float) -> str:
        """Return a value with its unit."""
        return f"{value:.4f}" if not self.unit else f"{value:.1f} {self.unit}"


METRICS: dict[str, Metric] = {}


def metric(name: str, unit: str, text: str, *, best: float, example: float, misfit: Misfit, is_share: bool = False,
           most: float | None = None) -> Callable[[Function], Function]:
    """Register a function of wanted and given answers."""
    def register(function: Function) -> Function:
        METRICS[name] = Metric(name, unit, text, function, is_share, best, best if most is None else most, example,
                               misfit)
        return function
    return register


def fitting(answers: Answers) -> list[str]:
    """The names of the metrics that say something of a model with these answers."""
    return [name for name, one in METRICS.items() if not one.misfit(answers)]


@metric("sqnr", "dB", "signal to error of the worst output", best=FAR, most=MOST_DB, example=35, misfit=no_reals)
def sqnr(wanted: Answers, given: Answers) -> float:
    """The power of an output over that of its error, over all samples together; of the output with the least."""
    worst = FAR
    for name in reals(wanted):
        signal = sum(float(np.square(w[name].astype(np.float64)).sum()) for w in wanted)
        noise = sum(float(np.square(w[name].astype(np.float64) - g[name]).sum())
                    for w, g in zip(wanted, given, strict=True))
        if noise:
            worst = min(worst, 10 * float(np.log10(max(signal, 1e-300) / noise)))
    return worst


@metric("cosine", "", "cosine of the worst output on the worst sample", best=1.0, example=0.999, misfit=no_reals)
def cosine(wanted: Answers, given: Answers) -> float:
    """The cosine of the angle between both, of the output and the sample where it is least."""
    found = [1.0]
    for name in reals(wanted):
        for one, other in zip(wanted, given, strict=True):
            a, b = one[name].astype(np.float64).reshape(-1), other[name].astype(np.float64).reshape(-1)
            length = float(np.linalg.norm(a) * np.linalg.norm(b))
            found.append(float(a @ b) / length if length else float(np.array_equal(a, b)))
    return min(found)


@metric("top1", "%", "samples whose highest score stands where the float model has it", is_share=True, best=100.0,
        example=99, misfit=no_classes)
def top1(wanted: Answers, given: Answers) -> float:
    """The share of equal arg-max along the last axis of the first output, in percent."""
    name = next(iter(reals(wanted) or wanted[0]))
    same = [w[name].argmax(-1) == g[name].argmax(-1) for w, g in zip(wanted, given, strict=True)]
    return 100.0 * float(np.mean([np.mean(s) for s in same]))


@metric("agreement", "%", "values of the worst output of whole numbers that equal the float model's", is_share=True,
        best=100.0, example=99, misfit=no_integers)
def agreement(wanted: Answers, given: Answers) -> float:
    """The share of equal values, of the output of class numbers, indices or flags that has the least; in percent."""
    return 100.0 * min((float(np.mean([np.mean(w[name] == g[name]) for w, g in zip(wanted, given, strict=True)]))
                        for name in integers(wanted)), default=1.0)


@metric("detections", "%", "boxes above 0.25 found again with their class, of both sides together", is_share=True,
        best=100.0, example=98, misfit=no_detections)
def detections(wanted: Answers, given: Answers) -> float:
    """Twice the boxes found on both sides over all boxes, for a head [1, 4 + classes, anchors]; in percent."""
    pairs = total = 0
    name = head(wanted)
    for one, other in zip(wanted, given, strict=True):
        left, right = (decode(rows_of(answer[name])) if name else [] for answer in (one, other))
        pairs += matched(left, right)[0]
        total += len(left) + len(right)
    return 100.0 if not total else 200.0 * pairs / total


def correct(answers: Answers, labels: Sequence[int]) -> float:
    """The share of samples whose highest score is that of their label, in percent."""
    name = next(iter(reals(answers) or answers[0]))
    return 100.0 * float(np.mean([int(a[name].reshape(-1).argmax()) == label
                                  for a, label in zip(answers, labels, strict=True)]))
