"""Detectors that give a set of boxes: DETR, RT-DETR, RF-DETR. Boxes are centre and size as shares of the picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vitrify.tasks.found import Objects
from vitrify.tasks.registry import Answer, Signs, decoder
from vitrify.tasks.spec import TaskSpec
from vitrify.tasks.suppression import corners, objects, sigmoid, softmax

Array = np.ndarray[Any, np.dtype[Any]]

MOST_QUERIES = 1000
NO_OBJECT = (92,)
"""Classes of DETR with its last, which stands for nothing. Source: DETR, arXiv 2005.12872; COCO has ids up to 90."""
IMAGENET: Mapping[str, Any] = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}


def _pair(signs: Signs) -> int:
    """The classes of two outputs [1,n,classes] and [1,n,4] with few n, 0 for another form."""
    shapes = signs.shapes
    if len(shapes) != 2 or any(len(s) != 3 or s[1] > MOST_QUERIES for s in shapes) or shapes[0][1] != shapes[1][1]:
        return 0
    wide = [s[2] for s in shapes]
    return max(wide) if wide.count(4) == 1 and any(signs.size) else 0


def _softmax(signs: Signs) -> Mapping[str, Any] | None:
    classes = _pair(signs)
    return {"classes": classes - 1} if classes in NO_OBJECT else None


def _focal(signs: Signs) -> Mapping[str, Any] | None:
    classes = _pair(signs)
    return {"classes": classes} if classes and classes not in NO_OBJECT else None


def _parted(answer: Answer, size: tuple[int, int]) -> tuple[Array, Array]:
    """Logits and corners in pixels."""
    first, second = (v[0].astype(np.float32) for v in answer.values())
    logits, boxes = (second, first) if first.shape[1] == 4 else (first, second)
    return logits, corners(boxes) * np.array([size[1], size[0]] * 2, np.float32)


@decoder("detr", "detection", "[1, queries, classes + 1] and [1, queries, 4], with a class for nothing", fits=_softmax,
         weight=30, score=0.5, **IMAGENET)
def detr(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """The best class of each query but the last, which is nothing."""
    logits, boxes = _parted(answer, size)
    found, _ = objects(boxes, softmax(logits)[:, :-1], spec, overlap=1.0)
    return found


@decoder("rt-detr", "detection", "[1, queries, classes] and [1, queries, 4], RT-DETR", fits=_focal, weight=30,
         score=0.5)
def rt_detr(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """The best pairs of query and class: as many as there are queries. Source: Deformable DETR, arXiv 2010.04159."""
    logits, boxes = _parted(answer, size)
    scores = sigmoid(logits).reshape(-1)
    order = np.argsort(-scores, kind="stable")[:min(len(boxes), spec.most)]
    order = order[scores[order] > spec.score]
    query, label = np.divmod(order, logits.shape[1])
    return Objects(boxes[query], label, scores[order])


def _rf(signs: Signs) -> Mapping[str, Any] | None:
    """RF-DETR gives boxes first, and COCO's own numbers up to 90."""
    classes = _pair(signs)
    return {"classes": classes} if classes and signs.shapes[0][2] == 4 and classes != 4 else None


@decoder("rf-detr", "detection", "[1, queries, 4] and [1, queries, classes], RF-DETR", fits=_rf, weight=35, score=0.5,
         **IMAGENET)
def rf_detr(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """As RT-DETR; pictures are prepared as ImageNet's."""
    return rt_detr(answer, spec, size)
