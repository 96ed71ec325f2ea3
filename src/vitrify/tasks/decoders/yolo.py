"""Ultralytics' heads without objectness, decoded in the graph: YOLOv5u, v6, v8, v9, v10, 11, 12 and 26.

One tensor [1, 4 + classes + more, places] with centre and size in pixels; ``more`` is mask coefficients, key points
or an angle. Scores and boxes may come as two outputs. Source: Ultralytics' export format, README of its ONNX examples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from vitrify.tasks.found import Objects
from vitrify.tasks.naming import class_names
from vitrify.tasks.registry import Answer, Signs, cells, decoder
from vitrify.tasks.spec import TaskSpec
from vitrify.tasks.suppression import corners, objects, sigmoid

Array = np.ndarray[Any, np.dtype[Any]]

STRIDES = (8, 16, 32)
GRIDS = ((8, 16, 32), (16, 32), (8, 16, 32, 64), (4, 8, 16, 32))
PEOPLE = 17
"""Key points of a person in COCO."""
LEAST_IN_PIXELS = 2.0
"""Boxes that nowhere reach so far are shares of the input's size, as TFLite exports have them."""


def _rows(signs: Signs) -> tuple[int, int, tuple[int, ...]] | None:
    """Rows, places and strides of the first output that is such a head."""
    if not any(signs.size):
        return None
    for shape in signs.shapes:
        if len(shape) != 3 or shape[0] != 1:
            continue
        for strides in GRIDS:
            count = cells(signs.size, strides)
            if count in shape[1:]:
                rows = shape[1] if shape[2] == count else shape[2]
                return rows, count, strides
    return None


def _protos(signs: Signs) -> int:
    """How many prototypes of masks there are, 0 without."""
    fitting = [s for s in signs.shapes if len(s) == 4 and s[0] == 1 and s[1:3] != signs.size]
    return min(fitting[0][1], fitting[0][3]) if len(fitting) == 1 and len(signs.shapes) == 2 else 0


def _detects(signs: Signs) -> Mapping[str, Any] | None:
    found = _rows(signs)
    names = len(class_names(signs.metadata.get("names", "")))
    if found is None or found[0] < 5 or signs.told not in ("", "detect"):
        return None
    if len(signs.shapes) != 1 or (names and found[0] != 4 + names):
        return None
    return {"classes": found[0] - 4}


def _two(signs: Signs) -> Mapping[str, Any] | None:
    """Boxes and scores as two outputs."""
    found = _rows(signs)
    if found is None or len(signs.shapes) != 2 or signs.told not in ("", "detect"):
        return None
    rows = [shape[1] if shape[2] == found[1] else shape[2] for shape in signs.shapes
            if len(shape) == 3 and found[1] in shape[1:]]
    return {} if len(rows) == 2 and rows.count(4) == 1 else None


def _segments(signs: Signs) -> Mapping[str, Any] | None:
    found, protos = _rows(signs), _protos(signs)
    if found is None or not protos or found[0] <= 4 + protos:
        return None
    return {"classes": found[0] - 4 - protos}


def _poses(signs: Signs) -> Mapping[str, Any] | None:
    found = _rows(signs)
    if found is None or len(signs.shapes) != 1:
        return None
    if signs.told == "pose":
        names = max(1, len(class_names(signs.metadata.get("names", ""))))
        wide = 2 if signs.metadata.get("kpt_shape", "").rstrip(" ]").endswith("2") else 3
        return {"classes": names, "wide": wide}
    return {"classes": 1, "wide": 3} if not signs.told and found[0] == 5 + PEOPLE * 3 else None


def _turned(signs: Signs) -> Mapping[str, Any] | None:
    found = _rows(signs)
    return {"classes": found[0] - 5} if found is not None and signs.told == "obb" else None


def head(answer: Answer, least: int = 5) -> Array:
    """The head as [rows, places]."""
    for value in answer.values():
        if value.ndim == 3 and min(value.shape[1:]) >= least:
            rows: Array = value[0] if value.shape[1] < value.shape[2] else value[0].T
            return rows.astype(np.float32)
    raise ValueError("no output is a head")


def in_pixels(boxes: Array, size: tuple[int, int]) -> Array:
    """Boxes [n,4] in pixels, which may be shares of the size."""
    if boxes.size and float(np.abs(boxes).max()) <= LEAST_IN_PIXELS:
        return boxes * np.array([size[1], size[0]] * 2, np.float32)
    return boxes


@decoder("yolov8", "detection", "[1, 4 + classes, places], YOLOv5u to 12 and 26", fits=_detects, weight=10,
         fit="letterbox", overlap=0.45)
def yolov8(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """Boxes of a head without objectness."""
    rows = head(answer)
    found, _ = objects(corners(in_pixels(rows[:4].T, size)), rows[4:].T, spec)
    return found


@decoder("yolov8-two", "detection", "boxes [1,4,places] and scores [1,classes,places]", fits=_two, weight=20,
         fit="letterbox")
def yolov8_two(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """The same where boxes and scores are two outputs."""
    first, second = (value[0] if value.shape[1] < value.shape[2] else value[0].T for value in answer.values())
    boxes, scores = (first, second) if len(first) == 4 and len(second) != 4 else (second, first)
    found, _ = objects(corners(in_pixels(boxes.T, size)), scores.T, spec)
    return found


@decoder("yolov8-seg", "instances", "[1, 4 + classes + prototypes, places] and prototypes", fits=_segments, weight=30,
         fit="letterbox")
def yolov8_seg(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """Boxes with masks, each a sum of the prototypes, cut at its box."""
    protos = prototypes(answer)
    rows = head({n: v for n, v in answer.items() if v.ndim == 3})
    classes = int(spec.options.get("classes", len(rows) - 4 - len(protos)))
    found, kept = objects(corners(in_pixels(rows[:4].T, size)), rows[4:4 + classes].T, spec)
    return replace(found, masks=masks(rows[4 + classes:, kept].T, protos, found.boxes, size))


def prototypes(answer: Answer) -> Array:
    """Prototypes of masks, channels first."""
    value = next(v for v in answer.values() if v.ndim == 4)[0]
    last = value.shape[2] < value.shape[0]
    found: Array = value.transpose(2, 0, 1) if last else value
    return found


def masks(weights: Array, protos: Array, boxes: Array, size: tuple[int, int]) -> Array:
    """Masks [n, size] of bool: the sums of prototypes above 0, at the input's size, within their boxes.

    The sums are enlarged first and cut at their boxes then. Source: Ultralytics 8.4, ops.process_mask.
    """
    from vitrify.tasks.decoders.maps import enlarged

    high, wide = protos.shape[1:]
    made = np.zeros((len(weights), *size), bool)
    flat = protos.reshape(len(protos), -1).astype(np.float32)
    for number, (row, box) in enumerate(zip(weights.astype(np.float32), np.ceil(boxes).astype(int), strict=True)):
        x1, y1, x2, y2 = np.maximum(box, 0)
        whole = enlarged((row @ flat).reshape(1, high, wide), size)[0] > 0
        made[number, y1:y2, x1:x2] = whole[y1:y2, x1:x2]
    return made


@decoder("yolov8-pose", "pose", "[1, 4 + classes + points, places]", fits=_poses, weight=30, fit="letterbox")
def yolov8_pose(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """People with key points."""
    rows = head(answer)
    classes, wide = int(spec.options.get("classes", 1)), int(spec.options.get("wide", 3))
    found, kept = objects(corners(in_pixels(rows[:4].T, size)), rows[4:4 + classes].T, spec)
    return replace(found, points=points(rows[4 + classes:, kept].T, wide, size))


def points(values: Array, wide: int, size: tuple[int, int]) -> Array:
    """Key points [n, k, 3] of rows; without how sure they are, they are sure."""
    found = values.reshape(len(values), -1, wide)
    places = found[..., :2]
    if places.size and float(np.abs(places).max()) <= LEAST_IN_PIXELS:
        places = places * np.array([size[1], size[0]], np.float32)
    sure = found[..., 2:] if wide == 3 else np.ones((*found.shape[:2], 1), np.float32)
    return np.concatenate([places, sure], -1)


@decoder("yolov8-obb", "oriented", "[1, 4 + classes + angle, places]", fits=_turned, weight=30, fit="letterbox")
def yolov8_obb(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """Turned boxes; which of several stays is told by their Gaussians' likeness."""
    from vitrify.tasks.turned import kept_turned, with_quads

    rows = head(answer)
    boxes, scores = in_pixels(rows[:4].T, size), rows[4:-1].T
    labels, best = scores.argmax(1), scores.max(1)
    passed = np.flatnonzero(best > spec.score)
    turned = np.concatenate([boxes[passed], rows[-1:, passed].T], 1)
    kept = kept_turned(turned, labels[passed], best[passed], spec.overlap, spec.most)
    return with_quads(turned[kept], labels[passed][kept], best[passed][kept])


def from_logits(scores: Array) -> Array:
    """Scores of 0..1, of logits if they are those."""
    return scores if scores.size and scores.min() >= 0 and scores.max() <= 1 else sigmoid(scores)
