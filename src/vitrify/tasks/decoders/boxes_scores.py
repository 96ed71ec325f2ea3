"""Corners and scores as two outputs: SSD, EfficientDet, NanoDet and PicoDet with their boxes decoded in the graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vitrify.tasks.decoders.yolo import GRIDS, from_logits, in_pixels
from vitrify.tasks.found import Objects, nothing
from vitrify.tasks.grids import corners_of, grid
from vitrify.tasks.registry import Answer, Signs, cells, decoder
from vitrify.tasks.spec import TaskSpec
from vitrify.tasks.suppression import are_shares, objects, softmax, suppressed

Array = np.ndarray[Any, np.dtype[Any]]

MOST_QUERIES = 1000
MOST_OF_CLASS = 300
"""Candidates of a class that are compared. Source: torchvision's SSDLite, topk_candidates."""
NANODET = (8, 16, 32, 64)
IMAGENET_BGR: Mapping[str, Any] = {"color": "bgr", "scale": 1.0, "mean": (103.53, 116.28, 123.675),
                                   "std": (57.375, 57.12, 58.395)}


def _pair(signs: Signs) -> tuple[int, int]:
    """Places and classes of two outputs [1,n,4] and [1,n,classes]."""
    shapes = signs.shapes
    if len(shapes) != 2 or any(len(s) != 3 for s in shapes) or shapes[0][1] != shapes[1][1] or not any(signs.size):
        return 0, 0
    wide = sorted(s[2] for s in shapes)
    return (shapes[0][1], wide[1]) if wide[0] == 4 and wide[1] != 4 else (0, 0)


def _grid(signs: Signs) -> Mapping[str, Any] | None:
    places, classes = _pair(signs)
    return {"classes": classes} if places and any(places == cells(signs.size, g) for g in GRIDS) else None


def _priors(signs: Signs) -> Mapping[str, Any] | None:
    places, classes = _pair(signs)
    fits = places > MOST_QUERIES and not any(places == cells(signs.size, g) for g in GRIDS)
    return {"classes": classes} if fits else None


def _parted(answer: Answer, size: tuple[int, int]) -> tuple[Array, Array]:
    """Corners in pixels and scores."""
    first, second = (v[0].astype(np.float32) for v in answer.values())
    boxes, scores = (first, second) if first.shape[1] == 4 else (second, first)
    return in_pixels(boxes, size), scores


@decoder("ssd", "detection", "[1, anchors, classes] and corners [1, anchors, 4]; SSD, EfficientDet", fits=_priors,
         weight=25, mean=(0.5,), std=(0.5,), overlap=0.55)
def ssd(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """Each class by itself, so that a box may have several; of shares that sum up to 1, the first is nothing.

    Boxes are cut at the edges before they are compared. Source: torchvision, detection models' reference.
    """
    boxes, scores = _parted(answer, size)
    shares = are_shares(scores)
    summing = shares and abs(float(np.median(scores.sum(1))) - 1) < 0.25
    background = spec.options.get("background", summing or scores.shape[1] in (21, 91))
    scores = scores if shares else softmax(scores) if background else from_logits(scores)
    if background:
        scores = scores.copy()
        scores[:, 0] = 0
    boxes = np.clip(boxes, 0, np.array([size[1], size[0]] * 2, np.float32))
    return by_class(boxes, scores, spec)


def by_class(boxes: Array, scores: Array, spec: TaskSpec) -> Objects:
    """The objects where each candidate stands for every class whose score counts."""
    chosen: list[tuple[Array, int]] = []
    for label in np.flatnonzero(scores.max(0, initial=0) > spec.score):
        passed = np.flatnonzero(scores[:, label] > spec.score)
        passed = passed[np.argsort(-scores[passed, label], kind="stable")[:MOST_OF_CLASS]]
        one = np.zeros(len(passed), np.int64)
        kept = suppressed(boxes[passed], one, scores[passed, label], spec.overlap, len(passed))
        chosen.append((passed[kept], int(label)))
    if not chosen:
        return nothing()
    index = np.concatenate([rows for rows, _ in chosen])
    labels = np.concatenate([np.full(len(rows), label) for rows, label in chosen])
    best = scores[index, labels]
    order = np.argsort(-best, kind="stable")[:spec.most]
    return Objects(boxes[index[order]], labels[order].astype(np.int64), best[order])


@decoder("corners", "detection", "corners [1, places, 4] and scores [1, places, classes]; NanoDet, PicoDet decoded",
         fits=_grid, weight=28, score=0.35, overlap=0.6, **IMAGENET_BGR)
def corners_scores(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """Boxes of places on grids, which have their best class only."""
    boxes, scores = _parted(answer, size)
    found, _ = objects(boxes, from_logits(scores), spec)
    return found


def _distributed(signs: Signs) -> Mapping[str, Any] | None:
    """One output of classes and four distributions, as NanoDet-Plus is exported."""
    if len(signs.shapes) != 1 or len(signs.shapes[0]) != 3 or not any(signs.size):
        return None
    _, places, rows = signs.shapes[0]
    return {"classes": 80, "reach": 8} if places == cells(signs.size, NANODET) and rows == 80 + 4 * 8 else None


@decoder("nanodet", "detection", "[1, places, classes + 4 * 8], NanoDet-Plus before decoding", fits=_distributed,
         weight=40, score=0.35, overlap=0.6, **IMAGENET_BGR)
def nanodet(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """Boxes from distributions of distances to the cells' corners. Source: NanoDet-Plus head, get_bboxes."""
    rows = next(iter(answer.values()))[0].astype(np.float32)
    reach = int(spec.options.get("reach", 8))
    places, stride = grid(size, NANODET)
    shares = softmax(rows[:, -4 * reach:].reshape(len(rows), 4, reach))
    centre = float(spec.options.get("centre", 0.0))           # PicoDet has its points in the middle of cells: 0.5
    boxes = corners_of(places + centre, shares @ np.arange(reach, dtype=np.float32), stride)
    found, _ = objects(boxes, from_logits(rows[:, :-4 * reach]), spec)
    return found
