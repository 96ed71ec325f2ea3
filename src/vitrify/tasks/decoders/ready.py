"""Outputs that are detections already: Ultralytics' end-to-end heads, and TFLite's own post-processing operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from vitrify.tasks.decoders.yolo import PEOPLE, in_pixels, masks, points, prototypes
from vitrify.tasks.found import Objects
from vitrify.tasks.registry import Answer, Signs, decoder
from vitrify.tasks.spec import TaskSpec
from vitrify.tasks.turned import with_quads

Array = np.ndarray[Any, np.dtype[Any]]

MOST = 1000
"""Detections that such a head gives at most; grids have more places."""


def _rows(signs: Signs) -> int:
    flat = [s for s in signs.shapes if len(s) == 3]
    return flat[0][2] if len(flat) == 1 and flat[0][1] <= MOST and any(signs.size) else 0


def _boxes(signs: Signs) -> Mapping[str, Any] | None:
    return {} if _rows(signs) == 6 and len(signs.shapes) == 1 else None


def _masks(signs: Signs) -> Mapping[str, Any] | None:
    protos = [s for s in signs.shapes if len(s) == 4]
    return {} if len(protos) == 1 and _rows(signs) == 6 + min(protos[0][1], protos[0][3]) else None


def _points(signs: Signs) -> Mapping[str, Any] | None:
    rows = _rows(signs)
    if len(signs.shapes) != 1 or not (signs.told == "pose" or rows == 6 + PEOPLE * 3):
        return None
    return {"wide": 2 if signs.metadata.get("kpt_shape", "").rstrip(" ]").endswith("2") else 3}


def _turned(signs: Signs) -> Mapping[str, Any] | None:
    return {} if _rows(signs) == 7 and len(signs.shapes) == 1 and signs.told in ("", "obb") else None


def _kept(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> tuple[Objects, Array]:
    """Detections above the least score as they come, and what stands behind score and class in their rows."""
    rows = next(v for v in answer.values() if v.ndim == 3)[0].astype(np.float32)
    rows = rows[rows[:, 4] > spec.score][:spec.most]
    return Objects(in_pixels(rows[:, :4], size), rows[:, 5].astype(np.int64), rows[:, 4]), rows[:, 6:]


@decoder("yolo-end2end", "detection", "[1, detections, 6]: corners, score, class; YOLOv10, v26", fits=_boxes, weight=30,
         fit="letterbox")
def end2end(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """Detections as they come."""
    return _kept(answer, spec, size)[0]


@decoder("yolo-end2end-seg", "instances", "[1, detections, 6 + prototypes] and prototypes", fits=_masks, weight=40,
         fit="letterbox")
def end2end_seg(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """The same with masks."""
    found, more = _kept(answer, spec, size)
    return replace(found, masks=masks(more, prototypes(answer), found.boxes, size))


@decoder("yolo-end2end-pose", "pose", "[1, detections, 6 + points]", fits=_points, weight=40, fit="letterbox")
def end2end_pose(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """The same with key points."""
    found, more = _kept(answer, spec, size)
    return replace(found, points=points(more, int(spec.options.get("wide", 3)), size))


@decoder("yolo-end2end-obb", "oriented", "[1, detections, 7]: centre, size, score, class, angle", fits=_turned,
         weight=40, fit="letterbox")
def end2end_obb(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """The same of turned boxes."""
    found, more = _kept(answer, spec, size)
    return with_quads(np.concatenate([found.boxes, more[:, :1]], 1), found.labels, found.scores)


def _tflite(signs: Signs) -> Mapping[str, Any] | None:
    """Boxes [1,n,4], classes and scores [1,n], how many [1]."""
    shapes = signs.shapes
    if len(shapes) != 4:
        return None
    boxes = [s for s in shapes if len(s) == 3 and s[2] == 4]
    rows = [s for s in shapes if len(s) == 2]
    return {} if len(boxes) == 1 and len(rows) == 2 and all(s == boxes[0][:2] for s in rows) else None


@decoder("ssd-post", "detection", "what TFLite_Detection_PostProcess gives: boxes, classes, scores, how many",
         fits=_tflite, weight=40, fit="stretch", mean=(0.5,), std=(0.5,))
def ssd_post(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """Detections as they come: top, left, bottom, right as shares. Source: TensorFlow Lite, detection_postprocess.cc.

    Which of the two rows are the scores is told by their order in the operator: boxes, classes, scores, count.
    """
    boxes = next(v for v in answer.values() if v.ndim == 3)[0].astype(np.float32)
    labels, scores = (v[0] for v in answer.values() if v.ndim == 2)
    many = int(next(v for v in answer.values() if v.size == 1).reshape(-1)[0])
    chosen = np.flatnonzero(scores[:many] > spec.score)[:spec.most]
    corners = boxes[:, [1, 0, 3, 2]] * np.array([size[1], size[0]] * 2, np.float32)
    return Objects(corners[chosen], labels[chosen].astype(np.int64), scores[chosen].astype(np.float32))
