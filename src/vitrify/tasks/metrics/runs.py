"""Masks as run lengths, column by column, zeros first. Source: COCO's mask format (uncompressed run lengths)."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def run_lengths(mask: Array) -> dict[str, Any]:
    """A mask [h,w] as ``{"size": [h, w], "counts": text}``, as the libraries take it."""
    flat = np.concatenate([[0], mask.T.reshape(-1).astype(np.int8), [0]])
    edges = np.flatnonzero(np.diff(flat))
    counts = np.diff(np.concatenate([[0], edges, [mask.size]])).tolist()
    if len(counts) > 1 and counts[-1] == 0:
        counts.pop()
    return {"size": [int(mask.shape[0]), int(mask.shape[1])], "counts": _text(counts)}


def _text(counts: list[int]) -> str:
    """Run lengths as text: differences to the one before the last, five bits in a letter from '0' on.

    Source: COCO API, maskApi.c, rleToString.
    """
    letters = []
    for number, count in enumerate(counts):
        value = count - counts[number - 2] if number > 2 else count
        more = True
        while more:
            part, value = value & 0x1F, value >> 5
            more = value != -1 if part & 0x10 else value != 0
            letters.append(chr(48 + (part | 0x20 if more else part)))
    return "".join(letters)


def filled(shape: Any) -> Any:
    """What the libraries take for the shape of one object; an empty one is a point."""
    return shape if shape else [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]


def area_of(shape: Any, box: list[float]) -> float:
    """The area of polygons by their corners; of other shapes that of the box."""
    if not isinstance(shape, list):
        return box[2] * box[3]
    found = 0.0
    for polygon in shape:
        x, y = np.asarray(polygon[::2], np.float64), np.asarray(polygon[1::2], np.float64)
        found += abs(float(x @ np.roll(y, 1) - y @ np.roll(x, 1))) / 2
    return found
