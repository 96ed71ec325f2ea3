"""Objects that a test writes into outputs of every form, as the form has them, and a decoder finds again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from vitrify.ir.interface import InputBinding, Interface, OutputBinding, Part
from vitrify.tasks.decoders.yolo_anchors import V5, V7
from vitrify.tasks.found import Curve, Objects, Pixels, Text
from vitrify.tasks.recognising import recognise
from vitrify.tasks.registry import DECODERS, load
from vitrify.tasks.spec import TaskSpec

SIZE = (320, 320)
BOX = (101.5, 66.25, 187.0, 143.75)
LABEL, SCORE = 3, 0.875
X, Y = (BOX[0] + BOX[2]) / 2, (BOX[1] + BOX[3]) / 2
W, H = BOX[2] - BOX[0], BOX[3] - BOX[1]
Array = np.ndarray[Any, np.dtype[Any]]
Outputs = dict[str, Array]
load()


def logit(share: float) -> float:
    return float(np.log(share / (1 - share)))


def cell(stride: int) -> tuple[int, int]:
    return int(X // stride), int(Y // stride)


def place(stride: int, strides: tuple[int, ...] = (8, 16, 32)) -> int:
    before = sum((SIZE[0] // s) * (SIZE[1] // s) for s in strides if s < stride)
    x, y = cell(stride)
    return before + y * (SIZE[1] // stride) + x


def objectness(boxes: tuple[float, ...], rows: int, index: int) -> Outputs:
    out = np.zeros((1, rows, 85), np.float32)
    out[0, :, :4] = (300, 300, 10, 10)
    out[0, index] = [*boxes, 1.0, *np.eye(80)[LABEL] * SCORE]
    return {"out": out}


def yolov5() -> Outputs:
    return objectness((X, Y, W, H), 6300, 17)


def yolox_decoded() -> Outputs:
    return objectness((X, Y, W, H), 2100, place(16))


def yolox_raw() -> Outputs:
    found = objectness((X / 16 - cell(16)[0], Y / 16 - cell(16)[1], np.log(W / 16), np.log(H / 16)), 2100, place(16))
    found["out"][0, :, :4] = np.where(found["out"][0, :, 4:5] > 0, found["out"][0, :, :4], 0)
    return found


def anchored(anchors: Any, new: bool) -> Outputs:
    found: Outputs = {}
    for stride, level in zip((8, 16, 32), anchors, strict=True):
        side = SIZE[0] // stride
        out = np.full((1, 3, 85, side, side), -8.0, np.float32)
        if stride == 16:
            x, y = cell(stride)
            anchor = np.reshape(level, (3, 2))[1]
            offset = X / stride - x, Y / stride - y
            row = out[0, 1, :, y, x]
            row[:2] = [logit((o + 0.5) / 2 if new else o) for o in offset]
            row[2:4] = ([logit(np.sqrt(s / a) / 2) for s, a in zip((W, H), anchor, strict=True)] if new
                        else np.log(np.array([W, H]) / anchor))
            row[4], row[5 + LABEL] = 30.0, logit(SCORE)
        found[f"level{stride}"] = out.reshape(1, 255, side, side)
    return found


def five_axes() -> Outputs:
    return {n: v.reshape(1, 3, 85, *v.shape[2:]).transpose(0, 1, 3, 4, 2) for n, v in anchored(V5, True).items()}


def distances(stride: int, centre: float, reach: int) -> Array:
    """Distributions whose means are the distances to the sides, in cells: two neighbours share each."""
    x, y = cell(stride)
    middle = (x + centre) * stride, (y + centre) * stride
    sides = [middle[0] - BOX[0], middle[1] - BOX[1], BOX[2] - middle[0], BOX[3] - middle[1]]
    out = np.full((4, reach), -40.0)
    for row, value in zip(out, np.array(sides) / stride, strict=True):
        low = int(value)
        row[low], row[low + 1] = np.log(max(1 - value + low, 1e-9)), np.log(max(value - low, 1e-9))
    return out.reshape(-1)


def nanodet() -> Outputs:
    strides = (8, 16, 32, 64)
    out = np.zeros((1, 2125, 112), np.float32)
    index = place(16, strides)
    out[0, index, LABEL], out[0, index, 80:] = SCORE, distances(16, 0.0, 8)
    return {"out": out}


def heads(last: bool = False, parted: bool = False) -> Outputs:
    found: Outputs = {}
    for stride in (8, 16, 32):
        side = SIZE[0] // stride
        box, cls = np.zeros((64, side, side), np.float32), np.full((80, side, side), -9.0, np.float32)
        if stride == 16:
            x, y = cell(stride)
            box[:, y, x], cls[LABEL, y, x] = distances(16, 0.5, 16), logit(SCORE)
        parts = {f"box{stride}": box, f"cls{stride}": cls} if parted else {f"level{stride}": np.concatenate([box, cls])}
        found |= {n: (v.transpose(1, 2, 0) if last else v)[None] for n, v in parts.items()}
    return found


def two() -> Outputs:
    boxes, scores = np.zeros((1, 4, 2100), np.float32), np.zeros((1, 80, 2100), np.float32)
    boxes[0, :, 44], scores[0, LABEL, 44] = (X, Y, W, H), SCORE
    return {"boxes": boxes, "scores": scores}


def whole(shares: bool = False, turned: bool = False) -> Outputs:
    out = np.concatenate([two()["boxes"] / (320 if shares else 1), two()["scores"]], 1)
    return {"out": out.transpose(0, 2, 1) if turned else out}


def corners() -> Outputs:
    boxes, scores = np.zeros((1, 2125, 4), np.float32), np.zeros((1, 2125, 80), np.float32)
    boxes[0, 44], scores[0, 44, LABEL] = BOX, SCORE
    return {"scores": scores, "boxes": boxes}


def post() -> Outputs:
    boxes = np.zeros((1, 10, 4), np.float32)
    boxes[0, 0] = np.array([BOX[1], BOX[0], BOX[3], BOX[2]]) / 320
    return {"boxes": boxes, "classes": np.full((1, 10), LABEL, np.float32),
            "scores": np.array([[SCORE] + [0.0] * 9], np.float32), "count": np.array([10], np.float32)}


def centernet() -> Outputs:
    heat = np.full((1, 80, 80, 80), -6.0, np.float32)
    sizes, offsets = (np.zeros((1, 2, 80, 80), np.float32) for _ in range(2))
    x, y = int(X // 4), int(Y // 4)
    heat[0, LABEL, y, x], heat[0, LABEL, y, x + 1] = logit(SCORE), logit(SCORE - 0.1)      # its slope is no object
    sizes[0, :, y, x], offsets[0, :, y, x] = (W / 4, H / 4), (X / 4 - x, Y / 4 - y)
    return {"heat": heat, "sizes": sizes, "offsets": offsets}


FORMS: dict[str, tuple[str, Callable[[], Outputs]]] = {
    "yolov8": ("yolov8", whole),
    "yolov8 in shares": ("yolov8", lambda: whole(shares=True)),
    "yolov8 turned": ("yolov8", lambda: whole(turned=True)),
    "yolov8 as two outputs": ("yolov8-two", two),
    "yolov8 levels": ("yolov8-heads", heads),
    "yolov8 levels, channels last": ("yolov8-heads", lambda: heads(last=True)),
    "yolov8 levels in parts": ("yolov8-heads", lambda: heads(parted=True)),
    "yolov5": ("yolov5", yolov5),
    "yolov5 levels": ("yolov5-heads", lambda: anchored(V5, True)),
    "yolov5 levels of five axes": ("yolov5-heads", five_axes),
    "yolox": ("yolox", yolox_decoded),
    "yolox before decoding": ("yolox", yolox_raw),
    "nanodet": ("nanodet", nanodet),
    "nanodet decoded": ("corners", corners),
    "ssd with its operator": ("ssd-post", post),
    "centernet": ("centernet", centernet)}
NAMED = {"yolov7 levels": ("yolov7-heads", lambda: anchored(V7, True)),
         "yolov3 levels": ("yolov3-heads", lambda: anchored(V5, False))}


def face(outputs: Outputs, size: tuple[int, int] = SIZE, channels: int = 3) -> Interface:
    return Interface(inputs=(InputBinding(name="x", shape=(1, channels, *size), dtype="float32", position=0),),
                     outputs=tuple(OutputBinding(name=n, shape=v.shape, dtype="float32", parts=(Part(position=p),))
                                   for p, (n, v) in enumerate(outputs.items())))


def is_planted(found: Any) -> None:
    assert isinstance(found, Objects)
    assert found.labels.tolist() == [LABEL]
    assert found.scores[0] == pytest.approx(SCORE, abs=1e-4)
    np.testing.assert_allclose(found.boxes[0], BOX, atol=2e-3)


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_recognised_and_its_object_found(form: str) -> None:
    name, make = FORMS[form]
    outputs = make()
    spec = recognise(face(outputs), {})
    assert spec is not None
    assert spec.decoder == name
    is_planted(DECODERS[name].decode(outputs, spec, SIZE))


@pytest.mark.parametrize("form", NAMED)
def test_a_form_that_has_to_be_named_is_decoded(form: str) -> None:
    name, make = NAMED[form]
    is_planted(DECODERS[name].decode(make(), TaskSpec(kind="detection", decoder=name), SIZE))


def test_an_exporters_word_decides_between_equal_shapes() -> None:
    out = {"out": np.zeros((1, 20, 2100), np.float32)}
    kinds = {task: recognise(face(out), {"task": task}) for task in ("", "detect", "obb")}
    assert {task: spec and spec.kind for task, spec in kinds.items()} == {
        "": "detection", "detect": "detection", "obb": "oriented"}


def test_text_is_read_by_the_best_path() -> None:
    steps = [1, 1, 0, 1, 2, 2, 3, 0]                   # a repeated character counts once, unless a blank parts it
    out = {"out": np.eye(4, dtype=np.float32)[steps][None] * 0.96 + 0.01}
    spec = recognise(face(out, (48, 320)), {"character": "a\nb"})
    assert spec is not None
    found = DECODERS["ctc"].decode(out, spec, (48, 320))
    assert isinstance(found, Text)
    assert found.text == "aab "
    assert found.score == pytest.approx(0.97, abs=1e-5)


def test_regions_of_text_grow_back_and_touch_at_corners() -> None:
    out = np.zeros((1, 1, 320, 320), np.float32)
    out[0, 0, 100:110, 50:150] = 0.9
    out[0, 0, 110:120, 150:200] = 0.9                  # a step: one region by its corner
    out[0, 0, 10:12, 10:12] = 0.9                      # noise
    found = DECODERS["db"].decode({"map": out}, TaskSpec(kind="text", decoder="db", score=0.5), SIZE)
    assert isinstance(found, Objects)
    grown = 150 * 20 * 1.6 / (2 * (150 + 20))
    np.testing.assert_allclose(found.boxes, [[50 - grown, 100 - grown, 200 + grown, 120 + grown]], rtol=1e-5)


def test_a_voice_and_a_larger_picture_are_recognised() -> None:
    voice = Interface(
        inputs=(InputBinding(name="x", shape=(1, 576), dtype="float32", position=0),
                InputBinding(name="state", shape=(2, 1, 128), dtype="float32", position=1)),
        outputs=(OutputBinding(name="p", shape=(1, 1), dtype="float32", parts=(Part(position=0),)),
                 OutputBinding(name="next", shape=(2, 1, 128), dtype="float32", parts=(Part(position=1),))))
    spec = recognise(voice, {})
    assert spec is not None
    answer = {"p": np.zeros((1, 1)), "next": np.zeros((2, 1, 128))}
    assert isinstance(DECODERS[spec.decoder].decode(answer, spec, (0, 0)), Curve)
    out = {"out": np.full((1, 3, 640, 640), 0.5, np.float32)}
    spec = recognise(face(out), {})
    assert spec is not None
    found = DECODERS[spec.decoder].decode(out, spec, SIZE)
    assert isinstance(found, Pixels)
    assert found.values.shape == (640, 640, 3)
    assert np.all(found.values == 128)
