"""Boxes, masks and key points: COCO's average precision, by faster-coco-eval."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from vitrify.core.errors import UsageError
from vitrify.tasks.found import Objects
from vitrify.tasks.metrics.base import Record, Truth, measure
from vitrify.tasks.metrics.runs import area_of, filled, run_lengths
from vitrify.tasks.spec import TaskSpec

MOST = 100
"""Detections of a picture that count. Source: COCO's detection evaluation."""


def _record(found: Objects, truth: Truth, spec: TaskSpec) -> Record:
    best = found.chosen(np.argsort(-found.scores, kind="stable")[:MOST])
    record: dict[str, Any] = {"boxes": _rounded(best.boxes), "labels": best.labels.tolist(),
                              "scores": [float(s) for s in best.scores]}
    if best.masks is not None:
        record["runs"] = [run_lengths(mask) for mask in best.masks]
    if best.points is not None:
        record["points"] = _rounded(best.points)
    return record


def _rounded(values: Any) -> Any:
    return np.round(np.asarray(values, np.float64), 3).tolist()


def _truth(found: Objects, spec: TaskSpec) -> Truth:
    record = _record(found, {}, spec)
    truth: Truth = {"boxes": record["boxes"], "labels": record["labels"]}
    if "runs" in record:
        truth["polygons"] = record["runs"]
    if "points" in record:
        truth["points"] = [[[x, y, 2.0 if sure > 0.5 else 0.0] for x, y, sure in one] for one in record["points"]]
    return truth


@measure("detection", "text", needs=("boxes",), main="mAP", record=_record, truth=_truth)
def boxes(records: Sequence[Record], truths: Sequence[Truth], spec: TaskSpec) -> dict[str, float]:
    """Average precision of boxes over overlaps of 0.5 to 0.95, and at 0.5."""
    return _coco(records, truths, spec, "bbox")


@measure("instances", needs=("boxes", "polygons"), main="mask mAP", record=_record, truth=_truth)
def masks(records: Sequence[Record], truths: Sequence[Truth], spec: TaskSpec) -> dict[str, float]:
    """The same of masks, and of their boxes."""
    own = {f"mask {name}": value for name, value in _coco(records, truths, spec, "segm").items()}
    return own | _coco(records, truths, spec, "bbox")


@measure("pose", needs=("boxes", "points"), main="pose mAP", record=_record, truth=_truth)
def points(records: Sequence[Record], truths: Sequence[Truth], spec: TaskSpec) -> dict[str, float]:
    """The same of key points, by their likeness (OKS), and of boxes."""
    own = {f"pose {name}": value for name, value in _coco(records, truths, spec, "keypoints").items()}
    return own | _coco(records, truths, spec, "bbox")


def _coco(records: Sequence[Record], truths: Sequence[Truth], spec: TaskSpec, kind: str) -> dict[str, float]:
    labels = sorted({int(v) for one in (*records, *truths) for v in one["labels"]})
    annotations: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for image, (record, truth) in enumerate(zip(records, truths, strict=True), 1):
        for index in range(len(truth["labels"])):
            annotations.append({"id": len(annotations) + 1, "image_id": image, **_annotation(truth, index, kind)})
        for index, (box, label, score) in enumerate(zip(record["boxes"], record["labels"], record["scores"],
                                                        strict=True)):
            results.append({"image_id": image, "category_id": label + 1, "bbox": _wide(box), "score": score,
                            **_more(record, index, kind)})
    if not annotations:
        return {}
    images = [{"id": n, "height": truths[n - 1].get("size", (1, 1))[0], "width": truths[n - 1].get("size", (1, 1))[1]}
              for n in range(1, len(records) + 1)]
    content = {"info": {}, "images": images, "annotations": annotations,
               "categories": [{"id": label + 1, "name": spec.name(label)} for label in labels]}
    stats = _evaluated(content, results, kind)
    return {"mAP": 100 * max(stats[0], 0.0), "AP50": 100 * max(stats[1], 0.0)}


def _wide(box: Sequence[float]) -> list[float]:
    return [box[0], box[1], box[2] - box[0], box[3] - box[1]]


def _annotation(truth: Truth, index: int, kind: str) -> dict[str, Any]:
    box = _wide(truth["boxes"][index])
    areas, crowd = truth.get("areas") or (), truth.get("crowd") or ()
    one: dict[str, Any] = {"category_id": int(truth["labels"][index]) + 1, "bbox": box,
                           "iscrowd": crowd[index] if index < len(crowd) else 0,
                           "area": areas[index] if index < len(areas) else box[2] * box[3]}
    if kind == "segm":
        one["segmentation"] = filled(truth["polygons"][index])
        one["area"] = areas[index] if index < len(areas) else area_of(one["segmentation"], box)
    if kind == "keypoints":
        points = truth["points"][index]
        one["keypoints"] = [v for point in points for v in point]
        one["num_keypoints"] = sum(point[2] > 0 for point in points)
    return one


def _more(record: Record, index: int, kind: str) -> dict[str, Any]:
    if kind == "segm":
        return {"segmentation": record["runs"][index]}
    if kind == "keypoints":
        return {"keypoints": [v for point in record["points"][index] for v in point]}
    return {}


def _evaluated(content: dict[str, Any], results: list[dict[str, Any]], kind: str) -> list[float]:
    """The library's own figures; it prints while it works."""
    truth_of, evaluation_of = _library()
    if not results:
        return [0.0, 0.0]
    with contextlib.redirect_stdout(io.StringIO()):
        truth = truth_of()
        truth.dataset = content
        truth.createIndex()
        evaluation = evaluation_of(truth, truth.loadRes(results), kind)
        if kind == "keypoints":
            wide = len(content["annotations"][0]["keypoints"]) // 3
            if wide != len(evaluation.params.kpt_oks_sigmas):
                evaluation.params.kpt_oks_sigmas = np.full(wide, 1 / wide)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return [float(v) for v in evaluation.stats]


def _library() -> tuple[Any, Any]:
    try:
        from faster_coco_eval import COCO, COCOeval_faster
    except ImportError as error:
        raise UsageError.of("eval.coco", "average precision needs the package 'faster-coco-eval'",
                            help="pip install 'vitrify[eval]'") from error
    return COCO, COCOeval_faster
