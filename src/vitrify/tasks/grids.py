"""Outputs that are grids over the picture: which level is which, and where its cells are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vitrify.tasks.registry import Answer, Shape, Signs

Array = np.ndarray[Any, np.dtype[Any]]

STRIDES = (4, 8, 16, 32, 64, 128)


@dataclass
class Level:
    """One level: its stride, height and width in cells, and its outputs as [cells, channels]."""

    stride: int
    height: int
    width: int
    values: list[Array] = field(default_factory=list)


def placed(shape: Shape, size: tuple[int, int]) -> tuple[int, int, int, bool] | None:
    """Stride, height, width of a grid [1,C,h,w] or [1,h,w,C], and whether its channels come first."""
    if len(shape) != 4 or shape[0] != 1 or not any(size):
        return None
    for stride in STRIDES:
        grid = -(-size[0] // stride), -(-size[1] // stride)
        if shape[2:] == grid:
            return stride, *grid, True
        if shape[1:3] == grid:
            return stride, *grid, False
    return None


def levels_of(signs: Signs) -> dict[int, list[int]] | None:
    """The channels of the outputs of each stride, None where an output is no grid."""
    found: dict[int, list[int]] = {}
    for shape in signs.shapes:
        place = placed(shape, signs.size)
        if place is None:
            return None
        found.setdefault(place[0], []).append(shape[1] if place[3] else shape[3])
    return found or None


def levels(answer: Answer, size: tuple[int, int]) -> list[Level]:
    """The levels of an answer, the finest first."""
    found: dict[int, Level] = {}
    for value in answer.values():
        place = placed(value.shape, size)
        if place is None:
            raise ValueError(f"{list(value.shape)} is no grid over {size}")
        stride, height, width, first = place
        rows = value[0].transpose(1, 2, 0) if first else value[0]
        found.setdefault(stride, Level(stride, height, width)).values.append(
            rows.reshape(height * width, -1).astype(np.float32))
    return [found[stride] for stride in sorted(found)]


def cells_of(level: Level) -> Array:
    """The x and y of every cell, row by row."""
    y, x = np.divmod(np.arange(level.height * level.width), level.width)
    return np.stack([x, y], -1).astype(np.float32)


def grid(size: tuple[int, int], strides: tuple[int, ...]) -> tuple[Array, Array]:
    """The x and y of all cells of several levels, and the stride of each."""
    made = [Level(s, -(-size[0] // s), -(-size[1] // s)) for s in strides]
    return (np.concatenate([cells_of(one) for one in made]),
            np.concatenate([np.full((one.height * one.width, 1), one.stride, np.float32) for one in made]))


def corners_of(points: Array, distances: Array, stride: float | Array) -> Array:
    """Corners from distances (left, top, right, bottom) to points, both in cells."""
    found: Array = np.concatenate([points - distances[:, :2], points + distances[:, 2:]], 1) * stride
    return found
