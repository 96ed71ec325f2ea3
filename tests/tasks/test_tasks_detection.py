"""Detection heads: recognising, decoding, matching; and what becomes of one sample's outputs."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from vitrify.ir import InputBinding, Interface, OutputBinding, Part
from vitrify.tasks.detection import Box, anchors, decode, head_rows, matched
from vitrify.tasks.illustration import Preparation, illustrate, interest
from vitrify.tasks.naming import class_names

Array = np.ndarray[Any, np.dtype[Any]]


def head(boxes: list[tuple[float, float, float, float, int, float]], classes: int = 3, size: int = 64) -> Array:
    """A head [1, 4 + classes, anchors] with these boxes (centre, size, class, score)."""
    rows = np.zeros((4 + classes, anchors(size, size)), np.float32)
    for index, (x, y, w, h, label, score) in enumerate(boxes):
        rows[:4, index] = x, y, w, h
        rows[4 + label, index] = score
    return rows[None]


@pytest.mark.parametrize(("height", "width", "count"), [(640, 640, 8400), (320, 320, 2100), (320, 640, 4200)])
def test_anchors(height: int, width: int, count: int) -> None:
    assert anchors(height, width) == count


@pytest.mark.parametrize(("shape", "is_head"), [((1, 22, 2100), True), ((1, 2100, 22), True), ((1, 22, 2101), False),
                                                ((1, 3, 2100), False), ((22, 2100), False), ((2, 22, 2100), False)])
def test_recognising_a_head(shape: tuple[int, ...], is_head: bool) -> None:
    rows = head_rows(np.zeros(shape, np.float32), 320, 320)
    assert (rows is not None) == is_head
    assert rows is None or rows.shape == (22, 2100)


DECODED = {
    "one": ([(32, 32, 16, 8, 1, 0.9)], [Box(24, 28, 40, 36, 1, 0.9)]),
    "weak_ones_go": ([(32, 32, 16, 8, 1, 0.2)], []),
    "doubles_go": ([(32, 32, 16, 16, 1, 0.6), (33, 32, 16, 16, 1, 0.9)], [Box(25, 24, 41, 40, 1, 0.9)]),
    "another_class_stays": ([(32, 32, 16, 16, 0, 0.6), (32, 32, 16, 16, 2, 0.9)],
                            [Box(24, 24, 40, 40, 2, 0.9), Box(24, 24, 40, 40, 0, 0.6)]),
}


@pytest.mark.parametrize("name", DECODED)
def test_decoding(name: str) -> None:
    boxes, wanted = DECODED[name]
    found = decode(head(boxes)[0])
    assert [box.label for box in found] == [box.label for box in wanted]
    assert np.allclose(np.array(found).reshape(-1, 6), np.array(wanted).reshape(-1, 6), atol=1e-5)


def test_matching() -> None:
    one, two = Box(0, 0, 10, 10, 0, 0.9), Box(50, 50, 60, 60, 1, 0.8)
    assert matched([one, two], [two, one]) == (2, 1.0)
    assert matched([one], [one._replace(label=1)]) == (0, 0.0)
    count, overlap = matched([one], [Box(0, 0, 10, 8, 0, 0.5)])
    assert (count, overlap) == (1, pytest.approx(0.8))
    assert matched([], [one]) == (0, 0.0)


def _interface(shape: tuple[int, ...], output: tuple[int, ...]) -> Interface:
    return Interface(inputs=(InputBinding(name="x", shape=shape, dtype="float32", position=0),),
                     outputs=(OutputBinding(name="y", shape=output, dtype="float32", parts=(Part(position=0),)),))


SHOWN: dict[str, tuple[tuple[int, ...], Array, str, str]] = {
    "detection": ((1, 3, 64, 64), head([(32, 32, 16, 8, 1, 0.9)]), "detection", "1 of 1 boxes found again"),
    "map": ((1, 3, 64, 64), np.linspace(0, 1, 64 * 64, dtype=np.float32).reshape(1, 1, 64, 64), "map", "difference"),
    "map_channels_last": ((1, 64, 64, 3), np.ones((1, 32, 32, 1), np.float32), "map", "difference"),
    "classes": ((1, 1, 28, 28), np.eye(10, dtype=np.float32)[3:4], "classification", "the same class"),
    "something_else": ((1, 3, 64, 64), np.ones((1, 7, 5, 3, 2), np.float32), "picture", ""),
    "sound": ((1, 16000), np.ones((1, 12), np.float32), "classification", "the same class"),
}


@pytest.mark.parametrize("name", SHOWN)
def test_illustrating(name: str) -> None:
    from PIL import Image

    shape, output, task, words = SHOWN[name]
    sample = {"x": np.random.default_rng(0).random(shape, np.float32)}
    shown = illustrate(_interface(shape, output.shape), sample, {"y": output}, {"y": output.copy()}, Preparation())
    assert shown is not None
    assert shown.task == task
    assert words in shown.text
    for content in filter(None, (shown.input, shown.float_picture, shown.int8_picture)):
        assert Image.open(io.BytesIO(content)).size[0] >= 64
    if task == "classification":
        assert shown.float_scores[0][1] == 1.0


def test_what_is_worth_showing() -> None:
    full, empty = head([(32, 32, 16, 8, 1, 0.9), (10, 10, 8, 8, 0, 0.5)]), head([])
    interface, sample = _interface((1, 3, 64, 64), full.shape), {"x": np.zeros((1, 3, 64, 64), np.float32)}
    assert interest(interface, sample, {"y": full}) == pytest.approx(1.4)
    assert interest(interface, sample, {"y": empty}) == 0
    low, high = np.zeros((1, 1, 32, 32), np.float32), np.ones((1, 1, 32, 32), np.float32)
    assert interest(interface, sample, {"y": high}) > interest(interface, sample, {"y": low})
    assert interest(interface, sample, {"y": np.ones((1, 10), np.float32)}) == 0


def test_preparation_is_undone() -> None:
    from PIL import Image

    pixels = np.arange(64 * 64 * 3, dtype=np.uint8).reshape(64, 64, 3)
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    values = ((pixels / 255 - mean) / std).astype(np.float32)[..., ::-1].transpose(2, 0, 1)[None]
    prepared = Preparation(mean[::-1], std[::-1], bgr=True)
    shown = illustrate(_interface((1, 3, 64, 64), (1, 2, 2, 2)), {"x": values}, {"y": np.zeros((1, 2, 2, 2))},
                       {"y": np.zeros((1, 2, 2, 2))}, prepared)
    assert shown is not None
    grown = np.asarray(Image.open(io.BytesIO(shown.input)))
    factor = grown.shape[0] // 64
    assert np.array_equal(grown[::factor, ::factor], pixels)


NAMES: dict[str, tuple[str, tuple[str, ...]]] = {
    "mapping": ("{0: 'person', 1: 'bicycle'}", ("person", "bicycle")),
    "gap": ("{0: 'a', 2: 'c'}", ("a", "class 1", "c")),
    "list": ("['a', 'b']", ("a", "b")),
    "nothing": ("", ()),
    "code": ("__import__('os')", ()),
    "words": ("person, bicycle", ()),
    "huge": ("{999999999: 'a'}", ()),
    "keys_that_are_words": ("{'a': 0}", ()),
    "deep": ("[" * 5000, ()),
}


@pytest.mark.parametrize("case", NAMES)
def test_class_names_are_read_as_literals(case: str) -> None:
    text, wanted = NAMES[case]
    assert class_names(text) == wanted


def test_scores_carry_the_names_of_their_classes() -> None:
    scores = np.array([[0.1, 0.7, 0.2]], np.float32)
    interface = Interface(inputs=(InputBinding(name="x", shape=(1, 3, 16, 16), dtype="float32", position=0),),
                          outputs=(OutputBinding(name="y", shape=(1, 3), dtype="float32", parts=(Part(position=0),)),))
    shown = illustrate(interface, {"x": np.zeros((1, 3, 16, 16), np.float32)}, {"y": scores}, {"y": scores},
                       Preparation(), ("cat", "dog"))
    assert shown is not None
    assert [label for label, _ in shown.float_scores] == ["dog", "class 2", "cat"]
