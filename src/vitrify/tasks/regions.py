"""Connected regions of a map, by rows of runs that touch."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.tasks.found import Objects, nothing

Array = np.ndarray[Any, np.dtype[Any]]

LEAST_SIDE = 3
"""Regions of fewer pixels across are noise. Source: PaddleOCR's DBPostProcess, min_size."""
MOST_RUNS = 200_000
"""More runs than this is noise all over: the map is no text map."""


def labelled(mask: Array) -> tuple[Array, int]:
    """Number the regions of a mask whose pixels touch, corners too: [h,w] from 1 on, and how many there are."""
    height, width = mask.shape
    edges = np.diff(np.pad(mask.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    rows, starts = np.nonzero(edges == 1)
    ends = np.nonzero(edges == -1)[1]
    if len(rows) > MOST_RUNS:
        raise ValueError(f"{len(rows)} separate runs, at most {MOST_RUNS}")
    parent = list(range(len(rows)))

    def root(one: int) -> int:
        while parent[one] != one:
            parent[one] = parent[parent[one]]
            one = parent[one]
        return one

    edge = np.searchsorted(rows, np.arange(height + 1)).tolist()
    for row in range(1, height):
        above, here = edge[row - 1], edge[row]
        while above < edge[row] and here < edge[row + 1]:
            if starts[above] <= ends[here] and starts[here] <= ends[above]:
                parent[root(here)] = root(above)
            if ends[above] < ends[here]:
                above += 1
            else:
                here += 1
    roots = [root(n) for n in range(len(rows))]
    numbers = {one: n for n, one in enumerate(dict.fromkeys(roots), 1)}
    found = np.zeros((height, width), np.int32)
    for place, start, end, one in zip(rows, starts, ends, roots, strict=True):
        found[place, start:end] = numbers[one]
    return found, len(numbers)


def regions(values: Array, size: tuple[int, int], *, limit: float, score: float, growth: float, most: int) -> Objects:
    """The upright boxes of regions above ``limit`` whose mean is at least ``score``, each grown on all sides."""
    labels, count = labelled(values > limit)
    if not count:
        return nothing()
    flat = labels.reshape(-1)
    sums = np.bincount(flat, values.reshape(-1), count + 1)[1:]
    areas = np.bincount(flat, minlength=count + 1)[1:]
    ys, xs = np.nonzero(labels)
    order = labels[ys, xs] - 1
    low, high = np.full((count, 2), np.inf), np.full((count, 2), -np.inf)
    for axis, places in enumerate((xs, ys)):
        np.minimum.at(low[:, axis], order, places)
        np.maximum.at(high[:, axis], order, places + 1)
    sides = high - low
    means = sums / areas
    kept = np.flatnonzero((sides.min(1) >= LEAST_SIDE) & (means >= score))
    grown = sides.prod(1) * growth / (2 * sides.sum(1))
    boxes = np.concatenate([low - grown[:, None], high + grown[:, None]], 1)
    scale = np.array([size[1] / values.shape[1], size[0] / values.shape[0]] * 2)
    kept = kept[np.argsort(-means[kept], kind="stable")[:most]]
    return Objects((boxes[kept] * scale).astype(np.float32), np.zeros(len(kept), np.int64),
                   means[kept].astype(np.float32))
