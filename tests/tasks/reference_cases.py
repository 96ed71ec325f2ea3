"""Outputs that decoders are held against other implementations with: made from a seed, so that only answers are stored.

Needs nothing but numpy, as the reference implementations' own environment reads it too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

SIZE = (640, 640)
PLACES = 8400


def boxes(random: np.random.Generator, places: int, objects: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Boxes of centre and size that lie in heaps around objects, and the object of each (-1: none)."""
    middles = random.uniform(60, 580, (objects, 2))
    sizes = random.uniform(20, 220, (objects, 2))
    owner = np.where(random.random(places) < 0.06, random.integers(0, objects, places), -1)
    own = owner[:, None] >= 0
    xy = np.where(own, middles[owner] + random.normal(0, 6, (places, 2)), random.uniform(0, 640, (places, 2)))
    wh = np.where(own, sizes[owner] * random.uniform(0.8, 1.25, (places, 2)), random.uniform(5, 300, (places, 2)))
    return np.concatenate([xy, wh], 1).astype(np.float32), owner


def scores(random: np.random.Generator, owner: np.ndarray, classes: int) -> np.ndarray:
    """Scores of 0..1 that are high for one class of each object, now and then for another."""
    found = random.uniform(0, 0.1, (len(owner), classes)).astype(np.float32)
    rows = np.flatnonzero(owner >= 0)
    label = np.where(random.random(len(rows)) < 0.85, owner[rows] % classes, random.integers(0, classes, len(rows)))
    found[rows, label] = random.uniform(0.1, 0.98, len(rows))
    return found


def yolov8(seed: int = 1, classes: int = 80, more: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    box, owner = boxes(random, PLACES)
    rows = [box.T, scores(random, owner, classes).T]
    if more:
        rows.append(random.normal(0, 1, (more, PLACES)).astype(np.float32))
    return {"output0": np.concatenate(rows)[None].astype(np.float32)}


def yolov8_one() -> dict[str, np.ndarray]:
    return yolov8(2, 1)


def yolov8_seg() -> dict[str, np.ndarray]:
    found = yolov8(3, 80, 32)
    coarse = np.random.default_rng(4).normal(0, 1, (1, 32, 20, 20)).astype(np.float32)
    return {**found, "output1": coarse.repeat(8, 2).repeat(8, 3)}


def yolov8_pose() -> dict[str, np.ndarray]:
    found = yolov8(5, 1, 51)
    found["output0"][:, 5:] = np.abs(found["output0"][:, 5:]) * 100
    return found


def yolov8_obb() -> dict[str, np.ndarray]:
    found = yolov8(6, 15, 1)
    found["output0"][:, -1] = np.clip(found["output0"][:, -1], -0.7, 2.3)
    return found


def yolov8_heads() -> dict[str, np.ndarray]:
    random = np.random.default_rng(7)
    return {f"level{n}": random.normal(-2, 1.2, (1, 144, 640 // s, 640 // s)).astype(np.float32)
            for n, s in enumerate((8, 16, 32))}


def end2end() -> dict[str, np.ndarray]:
    random = np.random.default_rng(8)
    low = random.uniform(0, 500, (300, 2))
    rows = np.concatenate([low, low + random.uniform(5, 139, (300, 2)), -np.sort(-random.random((300, 1)), 0),
                           random.integers(0, 80, (300, 1))], 1)
    return {"output0": rows[None].astype(np.float32)}


def detr(classes: int = 92, seed: int = 9) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    queries = 100 if classes == 92 else 300
    box = np.concatenate([random.uniform(0.2, 0.8, (1, queries, 2)), random.uniform(0.02, 0.4, (1, queries, 2))], 2)
    return {"logits": random.normal(-2, 1.5, (1, queries, classes)).astype(np.float32), "boxes": box.astype(np.float32)}


def rt_detr() -> dict[str, np.ndarray]:
    return detr(80, 10)


def rf_detr() -> dict[str, np.ndarray]:
    found = detr(91, 11)
    return {"boxes": found["boxes"], "logits": found["logits"]}


def ssd() -> dict[str, np.ndarray]:
    """Corners and shares, as a file gives them that decodes its anchors itself."""
    random = np.random.default_rng(12)
    box, owner = boxes(random, 3234)
    logits = np.log(scores(random, owner, 91) + 1e-3) * 3
    logits[:, 0] = 1
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    corners = np.concatenate([box[:, :2] - box[:, 2:] / 2, box[:, :2] + box[:, 2:] / 2], 1) / 2
    return {"boxes": corners[None].astype(np.float32), "scores": shares[None].astype(np.float32)}


def segformer() -> dict[str, np.ndarray]:
    random = np.random.default_rng(13)
    coarse = random.normal(0, 1, (1, 19, 8, 8)).repeat(4, 2).repeat(4, 3)
    return {"logits": (coarse + random.normal(0, 0.3, (1, 19, 32, 32))).astype(np.float32)}


CASES: dict[str, Callable[[], dict[str, np.ndarray]]] = {
    "yolov8": yolov8, "yolov8-one-class": yolov8_one, "yolov8-seg": yolov8_seg, "yolov8-pose": yolov8_pose,
    "yolov8-obb": yolov8_obb, "yolov8-heads": yolov8_heads, "end2end": end2end, "detr": detr, "rt-detr": rt_detr,
    "rf-detr": rf_detr, "ssd": ssd, "segformer": segformer}
"""Outputs by the name of the case."""
