"""Decoders against other implementations, whose answers on the same outputs are stored with their origin.

The outputs are made from seeds (reference_cases), the answers by benchmarks/tasks/references.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference_cases import CASES, SIZE

from vitrify.tasks.found import LabelMap, Objects
from vitrify.tasks.registry import DECODERS, load
from vitrify.tasks.spec import TaskSpec

STORED = Path(__file__).parent / "references"
BOXES = {"yolov8": "yolov8", "yolov8-one-class": "yolov8", "yolov8-pose": "yolov8-pose",
         "yolov8-heads": "yolov8-heads", "end2end": "yolo-end2end", "detr": "detr", "rt-detr": "rt-detr",
         "rf-detr": "rf-detr"}
"""The decoder of each case whose answer is upright boxes."""
CLOSE = 1e-4
MASKS = 12


def stored(case: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((STORED / f"{case}.json").read_text())
    assert content["origin"]
    found: dict[str, Any] = content["found"]
    return found


def spec(decoder: str, **more: Any) -> TaskSpec:
    load()
    return TaskSpec(kind=DECODERS[decoder].kind, decoder=decoder, **more)


def decoded(case: str, decoder: str, size: tuple[int, int] = SIZE, **more: Any) -> Any:
    told = spec(decoder, **more)
    return DECODERS[decoder].decode(CASES[case](), told, size)


def agree(found: Objects, wanted: dict[str, Any]) -> None:
    assert found.labels.tolist() == wanted["labels"]
    np.testing.assert_allclose(found.scores, wanted["scores"], atol=CLOSE, rtol=0)
    np.testing.assert_allclose(found.boxes, wanted["boxes"], atol=2e-3, rtol=1e-5)      # pixels of 640 as float32


@pytest.mark.parametrize(("case", "decoder"), BOXES.items())
def test_the_same_boxes_as_the_reference(case: str, decoder: str) -> None:
    wanted = stored(case)
    agree(decoded(case, decoder), wanted)
    assert len(wanted["scores"]) > 20, "a case that finds little says little"


def test_masks_cover_the_same_pixels() -> None:
    found = decoded("yolov8-seg", "yolov8-seg", most=MASKS)
    wanted = {name: values[:MASKS] for name, values in stored("yolov8-seg").items()}
    agree(found, wanted)
    assert found.masks is not None
    areas = found.masks.sum((1, 2))
    np.testing.assert_allclose(areas, wanted["areas"], atol=3)                  # sums of 0 but for the last bit
    assert [np.flatnonzero(m.any(0))[[0, -1]].tolist() for m in found.masks] == wanted["columns"]


def test_key_points_are_the_same() -> None:
    found = decoded("yolov8-pose", "yolov8-pose")
    np.testing.assert_allclose(found.points, stored("yolov8-pose")["points"], rtol=1e-5)


def test_turned_boxes_are_the_same() -> None:
    found, wanted = decoded("yolov8-obb", "yolov8-obb"), stored("yolov8-obb")
    assert found.labels.tolist() == wanted["labels"]
    np.testing.assert_allclose(found.turned, wanted["turned"], rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(found.quads, wanted["quads"], rtol=1e-4, atol=1e-2)


def test_ssd_finds_the_same() -> None:
    found = decoded("ssd", "ssd", (320, 320))
    agree(found, stored("ssd"))


def test_classes_of_pixels_are_the_same() -> None:
    found, wanted = decoded("segformer", "semantic", (128, 128)), stored("segformer")
    assert isinstance(found, LabelMap)
    assert np.bincount(found.labels.reshape(-1), minlength=19).tolist() == wanted["counts"]
    assert found.labels[::4, ::4].tolist() == wanted["labels"]
