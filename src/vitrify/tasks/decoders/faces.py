"""MediaPipe's faces: BlazeFace's boxes with six points, and the mesh of 468 points. Source: MediaPipe's graphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from vitrify.tasks.found import Objects
from vitrify.tasks.registry import Answer, Signs, decoder
from vitrify.tasks.spec import TaskSpec
from vitrify.tasks.suppression import corners, objects, sigmoid

Array = np.ndarray[Any, np.dtype[Any]]

LEVELS = {(128, 128): ((8, 2), (16, 6)), (192, 192): ((4, 1),)}
"""Stride and anchors in a cell of each level by the input's size: near and far faces.

Source: MediaPipe, face_detection_short_range.pbtxt and face_detection_full_range.pbtxt.
"""
POINTS = 6
MESH = 468 * 3


def _anchors(size: tuple[int, int]) -> Array:
    """The middles of all anchors as x, y in pixels."""
    made = []
    for stride, many in LEVELS[size]:
        cells = size[0] // stride
        y, x = np.divmod(np.arange(cells * cells), cells)
        made.append(np.repeat(np.stack([x + 0.5, y + 0.5], -1) * stride, many, 0))
    return np.concatenate(made).astype(np.float32)


def _faces(signs: Signs) -> Mapping[str, Any] | None:
    if signs.size not in LEVELS or len(signs.shapes) != 2:
        return None
    count = len(_anchors(signs.size))
    return {} if sorted(signs.shapes) == [(1, count, 1), (1, count, 4 + 2 * POINTS)] else None


@decoder("blazeface", "detection", "[1, anchors, 16] and [1, anchors, 1], MediaPipe's faces", fits=_faces, weight=40,
         score=0.5, overlap=0.3, fit="letterbox", mean=(0.5,), std=(0.5,), pad=0.0)
def blazeface(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """Faces with eyes, nose, mouth and ears; all offsets are pixels from the anchors' middles."""
    rows = next(v for v in answer.values() if v.shape[-1] > 1)[0].astype(np.float32)
    scores = sigmoid(np.clip(next(v for v in answer.values() if v.shape[-1] == 1)[0].astype(np.float32), -100, 100))
    middles = _anchors(size)
    boxes = corners(np.concatenate([rows[:, :2] + middles, rows[:, 2:4]], 1))
    found, kept = objects(boxes, scores, spec)
    points = rows[kept, 4:].reshape(-1, POINTS, 2) + middles[kept, None]
    return replace(found, points=np.concatenate([points, np.ones((*points.shape[:2], 1), np.float32)], -1))


def _mesh(signs: Signs) -> Mapping[str, Any] | None:
    sizes = [int(np.prod(s)) for s in signs.shapes]
    return {} if sizes.count(MESH) == 1 and all(n in (1, MESH) for n in sizes) and any(signs.size) else None


@decoder("face-mesh", "landmarks", "468 points as x, y, depth", fits=_mesh, weight=40, fit="letterbox")
def face_mesh(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """One face that fills the picture; how sure is the second output."""
    points = next(v for v in answer.values() if v.size == MESH).reshape(-1, 3).astype(np.float32)
    sure = next((v for v in answer.values() if v.size == 1), np.zeros(1, np.float32)).reshape(-1).astype(np.float32)
    places = np.concatenate([points[:, :2], np.ones((len(points), 1), np.float32)], 1)
    hull = np.concatenate([points[:, :2].min(0), points[:, :2].max(0)])[None]
    return Objects(hull, np.zeros(1, np.int64), sigmoid(sure[:1]), points=places[None])
