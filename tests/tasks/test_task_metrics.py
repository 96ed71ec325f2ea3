"""Metrics: what is found exactly gets the most, what is half found about half, and known cases their known figure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vitrify.tasks.found import Classes, Curve, Found, LabelMap, Objects, Pixels, Plane, Text, Vector
from vitrify.tasks.metrics.base import measure_of
from vitrify.tasks.metrics.lines import edits
from vitrify.tasks.metrics.runs import run_lengths
from vitrify.tasks.registry import KINDS
from vitrify.tasks.spec import TaskSpec
from vitrify.tasks.turned import likeness, with_quads

RANDOM = np.random.default_rng(3)
BOXES = np.array([[10, 10, 50, 60], [70, 20, 110, 90], [20, 70, 60, 110]], np.float32)
LABELS, SCORES = np.array([0, 1, 0]), np.array([0.9, 0.8, 0.7], np.float32)


def masks() -> Any:
    made = np.zeros((3, 120, 120), bool)
    for mask, (x1, y1, x2, y2) in zip(made, BOXES.astype(int), strict=True):
        mask[y1:y2, x1:x2] = True
        mask[y1:y1 + 5, x1:x1 + 5] = False
    return made


def points() -> Any:
    made = RANDOM.uniform(0, 1, (3, 17, 3))
    made[..., :2] = BOXES[:, None, :2] + made[..., :2] * (BOXES[:, None, 2:] - BOXES[:, None, :2])
    made[..., 2] = 0.9
    return made


TURNED = np.array([[30, 30, 40, 20, 0.4], [80, 60, 50, 12, 1.2], [40, 90, 30, 30, 0.1]], np.float32)
FOUND: dict[str, tuple[Found, float]] = {
    "classification": (Classes(np.array([0.1, 0.7, 0.2])), 100),
    "keywords": (Classes(np.array([0.9, 0.1])), 100),
    "detection": (Objects(BOXES, LABELS, SCORES), 100),
    "text": (Objects(BOXES, LABELS * 0, SCORES), 100),
    "instances": (Objects(BOXES, LABELS, SCORES, masks=masks()), 100),
    "pose": (Objects(BOXES, LABELS * 0, SCORES, points=points()), 100),
    "oriented": (with_quads(TURNED, LABELS, SCORES), 100),
    "segmentation": (LabelMap(RANDOM.integers(0, 4, (20, 30))), 100),
    "depth": (Plane(RANDOM.uniform(1, 9, (20, 30))), 100),
    "saliency": (Plane(RANDOM.uniform(0, 1, (20, 30))), 100),
    "enlarging": (Pixels(RANDOM.integers(0, 256, (20, 30, 3), np.uint8)), 100),
    "reading": (Text("exactly this", 0.9), 100),
    "speech": (Curve(RANDOM.uniform(0, 1, 50)), 100),
    "embedding": (Vector(RANDOM.normal(0, 1, 64)), 100),
    "landmarks": (Objects(BOXES[:1], LABELS[:1], SCORES[:1], points=points()[:1]), 100)}


def scored(kind: str, found: Found, truth: dict[str, Any]) -> dict[str, float]:
    one, spec = measure_of(kind), TaskSpec(kind=kind, decoder="any")
    full = {"size": [120, 120], **truth}
    return one.total([one.record(found, full, spec)], [full], spec)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_found_exactly_gets_the_most(kind: str) -> None:
    found, most = FOUND[kind]
    one = measure_of(kind)
    figures = scored(kind, found, one.truth(found, TaskSpec(kind=kind, decoder="any")))
    assert figures[one.main] == pytest.approx(most, abs=0.01)


def test_an_object_in_a_wrong_place_is_missed() -> None:
    truth = {"boxes": [[10, 10, 50, 60], [200, 200, 240, 240]], "labels": [0, 0]}
    figures = scored("detection", Objects(BOXES[[0, 2]], LABELS[[0, 2]], SCORES[[0, 2]]), truth)
    assert figures["AP50"] == pytest.approx(100 * 51 / 101)             # recall reaches one half at full precision


def test_a_turned_box_of_the_other_class_is_missed() -> None:
    found = with_quads(TURNED, LABELS, SCORES)
    real, spec = with_quads(TURNED, np.array([0, 0, 0]), SCORES), TaskSpec(kind="oriented", decoder="any")
    truth = measure_of("oriented").truth(real, spec)
    assert scored("oriented", found, truth)["AP50"] == pytest.approx(100 * 67 / 101)


def test_mean_overlap_is_that_of_the_classes() -> None:
    wanted, given = np.zeros((10, 10), int), np.zeros((10, 10), int)
    wanted[:, 5:], given[:, 6:] = 1, 1
    figures = scored("segmentation", LabelMap(given), {"values": wanted})
    assert figures["mIoU"] == pytest.approx(100 * (50 / 60 + 40 / 50) / 2)
    assert figures["pixels right"] == pytest.approx(90)


@pytest.mark.parametrize(("one", "other", "count"), [("", "", 0), ("abc", "", 3), ("kitten", "sitting", 3),
                                                     ("flaw", "lawn", 2), ("same", "same", 0)])
def test_edits(one: str, other: str, count: int) -> None:
    assert edits(one, other) == edits(other, one) == count


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_run_lengths_are_those_of_the_library(share: float) -> None:
    mask_tools = pytest.importorskip("faster_coco_eval.core.mask", reason="the library of the metrics is not installed")
    mask = np.random.default_rng(4).random((37, 53)) < share
    np.testing.assert_array_equal(mask_tools.decode(run_lengths(mask)).astype(bool), mask)


def test_likeness_of_gaussians() -> None:
    alike = likeness(TURNED[0], np.stack([TURNED[0], TURNED[0] + [0, 0, 0, 0, np.pi], TURNED[0] + [500, 0, 0, 0, 0]]))
    np.testing.assert_allclose(alike, [1, 1, 0], atol=1e-3)
