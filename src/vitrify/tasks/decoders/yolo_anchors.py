"""Heads with objectness: YOLOv3, v5, v7 with anchor boxes, and YOLOX and v6, which have none.

Rows are centre, size, objectness and classes; a score is objectness times class.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vitrify.tasks.decoders.yolo import GRIDS, in_pixels
from vitrify.tasks.found import Objects
from vitrify.tasks.grids import cells_of, grid, levels, levels_of
from vitrify.tasks.naming import class_names
from vitrify.tasks.registry import Answer, Signs, cells, decoder, never
from vitrify.tasks.spec import TaskSpec
from vitrify.tasks.suppression import corners, objects, sigmoid

Array = np.ndarray[Any, np.dtype[Any]]

V5 = ((10, 13, 16, 30, 33, 23), (30, 61, 62, 45, 59, 119), (116, 90, 156, 198, 373, 326))
"""Widths and heights of the anchor boxes of each level. Source: YOLOv3 on COCO, arXiv 1804.02767; YOLOv5 keeps them."""
V7 = ((12, 16, 19, 36, 40, 28), (36, 75, 76, 55, 72, 146), (142, 110, 192, 243, 459, 401))
"""Source: YOLOv7, cfg/deploy/yolov7.yaml."""
TINY = ((10, 14, 23, 27, 37, 58), (81, 82, 135, 169, 344, 319))
"""Of two levels. Source: YOLOv3-tiny on COCO."""
COCO = 80
RAW_CELLS = 8.0
"""Centres that nowhere lie farther out are offsets in cells: pixels of a picture reach its far side."""


def _rows(signs: Signs, anchors: int) -> int:
    """How many rows one output [1, places, rows] has, 0 for another form."""
    if len(signs.shapes) != 1 or len(signs.shapes[0]) != 3 or not any(signs.size):
        return 0
    _, places, rows = signs.shapes[0]
    fitting = any(places == anchors * cells(signs.size, strides) for strides in GRIDS)
    names = len(class_names(signs.metadata.get("names", "")))
    return rows if fitting and rows > 5 and (rows == 5 + names if names else anchors > 1 or rows == 5 + COCO) else 0


def _anchored(signs: Signs) -> Mapping[str, Any] | None:
    rows = _rows(signs, 3)
    return {"classes": rows - 5} if rows else None


def _free(signs: Signs) -> Mapping[str, Any] | None:
    rows = _rows(signs, 1)
    return {"classes": rows - 5} if rows else None


def _found(rows: Array, boxes: Array, spec: TaskSpec) -> Objects:
    found, _ = objects(corners(boxes), rows[:, 5:] * rows[:, 4:5], spec)
    return found


@decoder("yolov5", "detection", "[1, 3 * places, 5 + classes], YOLOv3, v5 and v7", fits=_anchored, weight=20,
         fit="letterbox")
def yolov5(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """Boxes of a decoded head with objectness."""
    rows = next(iter(answer.values()))[0].astype(np.float32)
    return _found(rows, in_pixels(rows[:, :4], size), spec)


@decoder("yolox", "detection", "[1, places, 5 + classes], YOLOX and v6, decoded or not", fits=_free, weight=20,
         fit="letterbox", color="bgr", scale=1.0)
def yolox(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """Boxes of a head with objectness and without anchors; what is not decoded is, by the cells' places.

    Source: YOLOX, arXiv 2107.08430, section 2.1.
    """
    rows = next(iter(answer.values()))[0].astype(np.float32)
    boxes = rows[:, :4]
    raw = spec.options.get("raw")
    if raw is None:
        raw = bool(np.abs(boxes[:, :2]).max(initial=0) < RAW_CELLS)
    if raw:
        strides = next(s for s in GRIDS if cells(size, s) == len(rows))
        places, stride = grid(size, strides)
        boxes = np.concatenate([(boxes[:, :2] + places) * stride, np.exp(np.minimum(boxes[:, 2:], 20)) * stride], 1)
    return _found(rows, boxes, spec)


def _heads(signs: Signs) -> Mapping[str, Any] | None:
    """Levels [1, 3 * (5 + classes), h, w], or [1, 3, h, w, 5 + classes]."""
    if len(signs.shapes) in (2, 3) and all(len(s) == 5 and s[1] == 3 for s in signs.shapes):
        return {"classes": signs.shapes[0][4] - 5}
    found = levels_of(signs)
    if found is None or len(found) not in (2, 3) or any(len(c) != 1 or c[0] % 3 for c in found.values()):
        return None
    rows = {c[0] // 3 for c in found.values()}
    names = len(class_names(signs.metadata.get("names", "")))
    wanted = 5 + (names or COCO)
    return {"classes": wanted - 5} if rows == {wanted} else None


def _level_rows(answer: Answer, size: tuple[int, int]) -> list[tuple[Array, Array, int]]:
    """Rows [cells, 3, 5 + classes], the cells and the stride of each level, the finest first."""
    plain = {}
    for name, value in answer.items():
        if value.ndim == 5:                       # anchors, h, w, rows
            value = value[0].transpose(0, 3, 1, 2).reshape(1, -1, *value.shape[2:4])
        plain[name] = value
    return [(one.values[0].reshape(len(one.values[0]), 3, -1), cells_of(one), one.stride)
            for one in levels(plain, size)]


def _anchors(spec: TaskSpec, count: int) -> list[Array]:
    usual = spec.options.get("anchors") or (TINY if count == 2 else V5)
    return [np.asarray(level, np.float32).reshape(3, 2) for level in usual]


@decoder("yolov5-heads", "detection", "for each level [1, 3 * (5 + classes), h, w], YOLOv5 before decoding",
         fits=_heads, weight=20, fit="letterbox")
def yolov5_heads(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """Boxes from raw levels: twice the logistic function for places, its square for sizes.

    Source: YOLOv5 documentation, architecture, "Eliminate grid sensitivity".
    """
    return _of_levels(answer, spec, size, new=True)


@decoder("yolov7-heads", "detection", "the same of YOLOv7, whose anchor boxes are others", fits=never, fit="letterbox")
def yolov7_heads(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """Boxes from raw levels with YOLOv7's anchors."""
    from msgspec.structs import replace

    return _of_levels(answer, replace(spec, options={"anchors": V7, **spec.options}), size, new=True)


@decoder("yolov3-heads", "detection", "the same of Darknet's YOLOv3, sizes as exponents", fits=never, fit="letterbox")
def yolov3_heads(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """Boxes from raw levels as Darknet has them. Source: YOLOv3, arXiv 1804.02767, section 2.1."""
    return _of_levels(answer, spec, size, new=False)


def _of_levels(answer: Answer, spec: TaskSpec, size: tuple[int, int], *, new: bool) -> Objects:
    found = _level_rows(answer, size)
    parts, boxes = [], []
    for (rows, places, stride), anchors in zip(found, _anchors(spec, len(found)), strict=True):
        sure = sigmoid(rows)
        if new:
            xy = (sure[..., :2] * 2 - 0.5 + places[:, None]) * stride
            wh = (sure[..., 2:4] * 2) ** 2 * anchors
        else:
            xy = (sure[..., :2] + places[:, None]) * stride
            wh = np.exp(np.minimum(rows[..., 2:4], 20)) * anchors
        boxes.append(np.concatenate([xy, wh], -1).reshape(-1, 4))
        parts.append(sure.reshape(-1, sure.shape[-1]))
    return _found(np.concatenate(parts), np.concatenate(boxes).astype(np.float32), spec)


