"""Decoders on the real outputs of a pretrained detector: against Ultralytics, and from a file's split outputs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vitrify import Preprocess, load, quantize, runtimes, tflite
from vitrify.data.preprocess import PictureShape, picture_of, prepared
from vitrify.pipeline.running.run import RunOptions, run_files
from vitrify.tasks.decoders.yolo_heads import REACH
from vitrify.tasks.found import Objects
from vitrify.tasks.frames import Frame
from vitrify.tasks.grids import STRIDES, cells_of, corners_of
from vitrify.tasks.grids import Level as Grid
from vitrify.tasks.recognising import recognise
from vitrify.tasks.registry import DECODERS
from vitrify.tasks.suppression import objects, softmax

STORED = Path(__file__).parent / "references" / "photos.json"
SIZE = 640
HOW = Preprocess(fit="letterbox")
pytestmark = [pytest.mark.models, pytest.mark.slow]
Find = Callable[[str], Path]


def detect(answer: dict[str, Any], interface: Any, frame: Frame | None = None) -> Objects:
    spec = recognise(interface, {"task": "detect"})
    assert spec is not None
    found = DECODERS[spec.decoder].decode(answer, spec, (SIZE, SIZE))
    found = frame.result(found) if frame is not None else found
    assert isinstance(found, Objects)
    return found


def sample(path: Path) -> tuple[Any, Frame]:
    picture = picture_of(path)
    values = prepared(picture, HOW, PictureShape(SIZE, SIZE, 3, True, True))
    return values, Frame.of(HOW, (SIZE, SIZE), (picture.height, picture.width))


def test_a_photo_has_the_boxes_that_ultralytics_finds(model_file: Find) -> None:
    wanted = json.loads(STORED.read_text())["found"]
    model = model_file("nudenet_yolov8n/320n.onnx")
    interface = load(model, shapes={"images": (1, 3, SIZE, SIZE)}).interface
    with runtimes.open(model, shapes={"images": (1, 3, SIZE, SIZE)}) as runtime:
        for name, boxes in wanted.items():
            values, frame = sample(model_file(f"ultralytics_photos/{name}"))
            found = detect(runtime.run({"images": values}), interface, frame)
            assert len(found) >= 1
            assert found.labels.tolist() == boxes["labels"]
            np.testing.assert_allclose(found.scores, boxes["scores"], atol=1e-4)
            # Ultralytics leaves boxes uncut, and its letterbox has its border where ours has it
            high, wide = frame.picture
            np.testing.assert_allclose(found.boxes, np.clip(boxes["boxes"], 0, [wide, high, wide, high]), atol=0.05)


@pytest.mark.parametrize(("photo", "scores"), [
    ("ultralytics_photos/zidane.jpg", (0.85, 0.61)), ("skimage_photos/astronaut.png", (0.94,)),
    ("skimage_photos/coffee.png", ())])
def test_faces_are_those_that_other_decoders_find(model_file: Find, photo: str, scores: tuple[float, ...]) -> None:
    """Both men, the astronaut, and nobody in a cup, with the scores that are known of these photos."""
    model = model_file("mediapipe_face/face_detection_full_range.tflite")
    result = run_files([model], model_file(photo), RunOptions())
    found = [one["score"] for one in result.rows[0].found["objects"]]
    assert found == [pytest.approx(score, abs=0.02) for score in scores]


def test_split_outputs_decode_to_the_same(model_file: Find, tmp_path: Path) -> None:
    photos = [model_file(f"ultralytics_photos/{name}.jpg") for name in ("bus", "zidane")]
    values = [sample(photo)[0] for photo in photos]
    model = load(model_file("nudenet_yolov8n/320n.onnx"), shapes={"images": (1, 3, SIZE, SIZE)})
    small = quantize(model, data=values)
    path = tmp_path / "small.tflite"
    tflite.write(small, path)
    for one in values:
        with runtimes.open(path) as runtime:
            joined = detect(runtime.run({"images": one}), runtime.interface)
            parts = runtime.invoke_raw(runtime.file_inputs({"images": one}))
            details = runtime._details.outputs
        boxes, scores = [], None
        for part, detail in zip(parts, details, strict=True):
            scale, zero = detail["quantization"]
            real = (part.astype(np.float32) - zero) * np.float32(scale)
            if real.ndim == 4 and real.shape[3] == 4 * REACH:
                stride = SIZE // real.shape[1]
                assert stride in STRIDES
                level = Grid(stride, real.shape[1], real.shape[2])
                sides = softmax(real.reshape(-1, 4, REACH)) @ np.arange(REACH, dtype=np.float32)
                boxes.append((stride, corners_of(cells_of(level) + 0.5, sides, stride)))
            else:
                scores = real.reshape(real.shape[-2:])
        assert scores is not None
        assert len(boxes) == 3
        rows = scores.T if scores.shape[0] < scores.shape[1] else scores
        spec = recognise(small.interface, {"task": "detect"})
        assert spec is not None
        apart, _ = objects(np.concatenate([b for _, b in sorted(boxes, key=lambda pair: pair[0])]), rows, spec)
        assert apart.labels.tolist() == joined.labels.tolist()
        assert len(apart) >= 1
        np.testing.assert_allclose(apart.scores, joined.scores, atol=1e-4)
        np.testing.assert_allclose(apart.boxes, joined.boxes, atol=1e-2)
