"""Real models on real pictures: how far int8 is from float."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from quant_graphs import Array, sqnr
from quant_runs import Pair, pair_of

from vitrify.data import Preprocess

pytestmark = pytest.mark.models
Find = Callable[[str], Path]

IMAGENET = Preprocess(fit="crop", interpolation="bicubic", mean=(127 / 255,), std=(128 / 255,))
LETTERBOX = Preprocess(fit="letterbox")
FACES = (4 + 1, 4 + 12)


def imagenet(find: Find) -> list[Path]:
    folder = find("foolbox_samples/imagenet_00_243.jpg").parent
    return sorted(folder.glob("imagenet_*.jpg"))


def test_efficientnet_keeps_its_answers(model_file: Find, tmp_path: Path) -> None:
    photos = imagenet(model_file)
    labels = [int(p.stem.rsplit("_", 1)[1]) for p in photos]
    pair = pair_of(model_file("efficientnet_lite0/efficientnet_lite0.onnx"), photos, IMAGENET, tmp_path)
    wanted, found = pair.outputs("output")
    right = [int(np.sum(out.reshape(-1, 1000).argmax(1) == labels)) for out in (wanted, found)]
    assert right[0] == 18
    assert right[1] >= right[0] - 1
    assert sqnr(wanted, found) > 20
    assert pair.float_operators == 0


def test_digits_lose_less_than_a_tenth_of_a_point(model_file: Find, tmp_path: Path) -> None:
    with np.load(model_file("mnist_10k/mnist_10k.npz")) as stored:
        images = (stored["images"][:, None].astype(np.float32) / 255 - 0.1307) / 0.3081
        labels = stored["labels"]
    np.save(tmp_path / "digits.npy", images[:64])
    pair = pair_of(model_file("digits_cnn/digits_cnn.onnx"), [tmp_path / "digits.npy"], Preprocess(), tmp_path)
    right = [np.mean([int(run({"input": image[None]})["output"].argmax()) for image in images] == labels)
             for run in (pair.float, pair.int8)]
    assert right[0] > 0.997
    assert right[1] >= right[0] - 0.001


def faces(output: Array, least: float) -> list[Array]:
    """Boxes (center, size) of the two face classes over a score, the best of each place."""
    scores = output[0, list(FACES)].max(axis=0)
    order = [i for i in np.argsort(-scores) if scores[i] > least]
    kept: list[Array] = []
    for index in order:
        box = output[0, :4, index]
        if all(overlap(box, other) < 0.5 for other in kept):
            kept.append(box)
    return kept


def overlap(one: Array, two: Array) -> float:
    low = np.maximum(one[:2] - one[2:] / 2, two[:2] - two[2:] / 2)
    high = np.minimum(one[:2] + one[2:] / 2, two[:2] + two[2:] / 2)
    inside = float(np.prod(np.clip(high - low, 0, None)))
    return inside / (float(np.prod(one[2:]) + np.prod(two[2:])) - inside)


@pytest.mark.parametrize(("size", "count"), [(320, 1), (640, 3)])
def test_yolo_finds_the_same_faces(size: int, count: int, model_file: Find, tmp_path: Path) -> None:
    photos = [model_file("ultralytics_photos/zidane.jpg"), model_file("ultralytics_photos/bus.jpg")]
    pair: Pair = pair_of(model_file("nudenet_yolov8n/320n.onnx"), [*photos, *imagenet(model_file)[:14]], LETTERBOX,
                         tmp_path, {"images": (1, 3, size, size)})
    assert pair.float_operators == 0
    assert pair.joints == 0
    assert [f.code for f in pair.findings] == ["range.collision"]
    matched = 0
    for sample in list(pair.samples)[:2]:
        wanted, found = pair.float(sample)["output0"], pair.int8(sample)["output0"]
        assert found.shape == wanted.shape
        assert len(np.unique(found[0, 4:])) > 20                     # scores are alive
        for box in faces(wanted, 0.25):
            assert max(overlap(box, other) for other in faces(found, 0.15)) >= 0.9
            matched += 1
    assert matched == count


def test_text_detector_finds_the_same_text(model_file: Find, tmp_path: Path) -> None:
    """The map is nearly binary and answers noise of half a gray level by 9 to 17 dB: text found is compared."""
    page = model_file("skimage_photos/page.png")
    pair = pair_of(model_file("ppocr_v4/ch_PP-OCRv4_det_infer.onnx"), sorted(page.parent.glob("*.png")),
                   Preprocess(color="bgr", mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)), tmp_path,
                   {"x": (1, 3, 320, 640)})
    assert pair.float_operators == 0
    number = next(i for i in range(len(pair.samples)) if "page" in pair.samples.name(i))
    sample = list(pair.samples)[number]
    (wanted,), (found,) = pair.float(sample).values(), pair.int8(sample).values()
    text = wanted > 0.3, found > 0.3
    assert (text[0] & text[1]).sum() / (text[0] | text[1]).sum() > 0.8
