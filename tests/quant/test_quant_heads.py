"""Heads of detectors: whatever stands beside boxes, confident scores and places are kept without any option."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from quant_graphs import Net, noise, run, statistics_of

import vitrify.ops as ops
from vitrify.ir import Tensor
from vitrify.quant import Recipe, quantize

Array = np.ndarray[Any, np.dtype[Any]]

CELLS, FOUND = 64, 0.25
PIXELS = 640.0


@dataclass(frozen=True)
class Head:
    """Rows of an output [1, rows, cells]: four of a box, scores, and what else there is with its largest error."""

    scores: int
    others: int = 0
    make: Callable[[Net, Tensor], Tensor] | None = None
    allowed: float = 0.0


def flat(net: Net, x: Tensor, count: int, gain: float = 1.0) -> Tensor:
    made = net.conv(x, count, 1, gain=gain)
    return net.add(ops.Reshape(new_shape=(1, CELLS, count)), made, net.constant([1, CELLS, count]))


def times(net: Net, x: Tensor, by: float, plus: float = 0.0) -> Tensor:
    scaled = net.add(ops.Mul(), x, net.constant(np.float32(by)))
    return net.add(ops.Add(), scaled, net.constant(np.float32(plus))) if plus else scaled


def boxes(net: Net, x: Tensor) -> Tensor:
    """Centers and sizes, from distances to the sides around a grid of anchors."""
    distances = times(net, net.add(ops.Relu(), flat(net, x, 4)), 20.0)
    before, after = net.graph.add(ops.SplitV(num_splits=2), [distances, net.constant([2, 2]), net.constant(2)],
                                  name="sides").outputs
    grid = np.stack(np.meshgrid(*[np.arange(8)] * 2), axis=-1).reshape(1, CELLS, 2) * PIXELS / 8 + PIXELS / 16
    moved = net.add(ops.Mul(), net.add(ops.Sub(), after, before), net.constant(np.float32(0.5)))
    center = net.add(ops.Add(), moved, net.constant(grid.astype(np.float32)))
    return net.add(ops.Concatenation(axis=2), center, net.add(ops.Add(), before, after))


def scores(net: Net, x: Tensor, count: int) -> Tensor:
    return net.add(ops.Logistic(), times(net, flat(net, x, count, gain=3), 1.0, -2.0))


def points(net: Net, x: Tensor) -> Tensor:
    """Three key points' places, then whether they are seen."""
    places = times(net, flat(net, x, 6), 150.0, PIXELS / 2)
    return net.add(ops.Concatenation(axis=2), places, net.add(ops.Logistic(), flat(net, x, 3)))


def angle(net: Net, x: Tensor) -> Tensor:
    return times(net, net.add(ops.Logistic(), flat(net, x, 1)), np.pi, -np.pi / 4)


def masks(net: Net, x: Tensor) -> Tensor:
    return flat(net, x, 8)


HEADS = {
    "boxes": Head(4),
    "one class": Head(1),
    "pose": Head(1, 9, points, 8.0),
    "oriented": Head(3, 1, angle, 0.04),
    "segment": Head(4, 8, masks, 0.05),
}


@pytest.mark.parametrize("name", HEADS)
def test_scores_and_places_are_kept(name: str, tmp_path: Path) -> None:
    head, net = HEADS[name], Net(1, 8, 8, 3)
    trunk = net.add(ops.Relu(), net.conv(net.x, 16, gain=2))
    parts = [boxes(net, trunk), scores(net, trunk, head.scores), *([head.make(net, trunk)] if head.make else [])]
    joined = net.add(ops.Concatenation(axis=2), *parts)
    model = net.model(net.add(ops.Transpose(), joined, net.constant([0, 2, 1])))
    statistics = statistics_of(model, tmp_path, arrays=noise(model, 16))
    ours, plain = (quantize(model, statistics, Recipe(outputs=outputs)).model for outputs in ("split", "keep"))
    first, last = 4, 4 + head.scores
    lost: dict[str, float] = {"found": 0, "score": 0, "box": 0, "other": 0, "plain": 0}
    for sample in noise(model, 4, seed=9):
        wanted, found, flattened = (next(iter(run(m, sample).values()))[0] for m in (model, ours, plain))
        is_found = wanted[first:last].max(0) > FOUND
        error = np.abs(wanted - found)
        for key, value in (("found", float(is_found.sum())), ("plain", flattened[first:last].max()),
                           ("score", error[first:last][wanted[first:last] > FOUND].max(initial=0)),
                           ("box", error[:4, is_found].max(initial=0)),
                           ("other", error[last:][:, is_found].max(initial=0))):
            lost[key] = max(lost[key], float(value))
    assert lost["found"] > 2
    assert lost["plain"] == 0           # what one scale for all leaves of scores
    assert lost["score"] < 0.02
    assert lost["box"] < 1
    assert lost["other"] <= head.allowed
