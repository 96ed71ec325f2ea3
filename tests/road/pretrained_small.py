"""TFLite files as a source: int8 models for microcontrollers, and float16 models of faces and people."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image
from pretrained_table import TABLE, TO_ROUNDING, Array, Find, Pair, Refused, close, row

from vitrify.core.errors import VitrifyError
from vitrify.runtimes import open as open_model
from vitrify.tasks import detection

PHOTOS = ("ultralytics_photos/bus.jpg", "ultralytics_photos/zidane.jpg", "skimage_photos/astronaut.png",
          "skimage_photos/coffee.png")
NOISE = 40


def photo(find: Find, name: str, size: int) -> Array:
    """A photo as float32[1,size,size,3] in 0..255."""
    return np.asarray(Image.open(find(name)).convert("RGB").resize((size, size)), np.float32)[None]


def equal(before: Array, after: Array) -> None:
    """Demand the same numbers."""
    assert before.dtype == after.dtype
    assert np.array_equal(before, after)


def noise(pair: Pair, low: float = -1, high: float = 1) -> list[Array]:
    """Random inputs of the source's own shape and type, always the same."""
    (taken,) = pair.source.interface.inputs
    random = np.random.default_rng(7)
    if taken.dtype == "float32":
        return [random.uniform(low, high, taken.shape).astype(np.float32) for _ in range(NOISE)]
    return [random.integers(-128, 128, taken.shape).astype(np.int8) for _ in range(NOISE)]


def single(pair: Pair, values: Array) -> tuple[Array, Array]:
    """Run both on their only input."""
    (taken,) = pair.source.interface.inputs
    return pair.first({taken.name: values})


@row("mltk_cifar", "ResNet for CIFAR-10, int8", "mltk_int8/image_classification/image_classification.tflite",
     "classes of 20 labelled pictures")
def cifar(find: Find, pair: Pair) -> str:
    """Every output number, in LiteRT's own kernels and in XNNPACK's: one picture in two classes lies between them."""
    paths = sorted(find("foolbox_samples/cifar10_00_3.png").parent.glob("cifar10_*.png"))
    labels = np.array([int(path.stem.split("_")[-1]) for path in paths])
    pictures = [(np.asarray(Image.open(path).convert("RGB"), np.int16) - 128).astype(np.int8)[None] for path in paths]

    def right(both: Pair) -> int:
        outputs = [single(both, picture) for picture in pictures]
        for before, after in outputs:
            equal(before, after)
        return int((np.array([after.argmax() for _, after in outputs]) == labels).sum())

    with (open_model(pair.source_file, kernels="xnnpack") as source,
          open_model(pair.our_file, kernels="xnnpack") as ours):
        counts = right(pair), right(Pair(source, ours, pair.source_file, pair.our_file))
    assert min(counts) >= 18, counts
    return (f"{counts[0]} of {len(paths)} right before and after in LiteRT's own kernels, {counts[1]} in XNNPACK's "
            "(at least 18), every number the same")


@row("mltk_person", "Visual wake words, int8", "mltk_int8/visual_wake_words/visual_wake_words.tflite",
     "person or not in 23 photos")
def person(find: Find, pair: Pair) -> str:
    """Every output number."""
    labelled = sorted(find("foolbox_samples/imagenet_00_243.jpg").parent.glob("imagenet_*.jpg"))
    names = [*PHOTOS[:3], *(f"foolbox_samples/{path.name}" for path in labelled)]
    told = []
    for name in names:
        outputs = single(pair, photo(find, name, 96))
        equal(*outputs)
        told.append(int(outputs[1].argmax()) == 0)
    assert all(told[:3]), told
    return f"a person in {sum(told)} of {len(names)} before and after, in all 3 with people"


@row("mltk_yes_no", "Micro speech, int8", "mltk_int8/tflite_micro_speech/tflite_micro_speech.tflite",
     'a recorded "yes" and "no"')
def yes_no(find: Find, pair: Pair) -> str:
    """Every output number, and that the two words are told apart with certainty."""
    told = []
    for word in ("yes", "no"):
        text = find(f"mltk_sounds/{word}_data.py").read_text()
        listed = re.search(r"_OUTPUT_FEATURES_INT8\s*=\s*\\?\s*\[(.*?)\]", text, re.DOTALL)
        assert listed is not None
        features = np.array([int(value) for value in re.findall(r"-?\d+", listed[1])], np.int8)
        outputs = single(pair, features.reshape(1, 49, 40, 1))
        equal(*outputs)
        told.append(int(outputs[1].argmax()))
        assert outputs[1].max() > 0.9
    assert told[0] != told[1]
    return "both words told apart as before, each with more than 0.9; every number the same"


SMALL = {
    "keyword_spotting": "Keyword spotting, 12 words, int8", "anomaly_detection": "Anomaly detection, int8",
    "keyword_spotting_on_off_v3": "On and off, int8", "keyword_spotting_alexa": "Alexa, int8",
    "keyword_spotting_pacman_v3": "Words for Pac-Man, int8", "keyword_spotting_mobilenetv2": "MobileNetV2 words, int8",
    "rock_paper_scissors": "Rock, paper, scissors, int8", "tflite_micro_magic_wand": "Magic wand, int8",
    "fingerprint_signature_generator": "Fingerprints, int8",
    "keyword_spotting_on_off_v3.float32": "On and off, float", "keyword_spotting_alexa.float32": "Alexa, float",
    "keyword_spotting_pacman_v3.float32": "Words for Pac-Man, float",
    "rock_paper_scissors.float32": "Rock, paper, scissors, float",
}


def on_noise(find: Find, pair: Pair) -> str:
    """Every output number of an int8 model on random inputs."""
    for values in noise(pair):
        equal(*single(pair, values))
    return f"every number the same for {NOISE} inputs"


def on_float_noise(find: Find, pair: Pair) -> str:
    """The outputs of a float model on random inputs, and the class named."""
    for values in noise(pair):
        before, after = single(pair, values)
        close(before, after)
        assert before.argmax() == after.argmax()
    return f"the same class for {NOISE} inputs; {TO_ROUNDING}"


for stem, words in SMALL.items():
    row(f"mltk_{stem}", words, f"mltk_int8/{stem.split('.')[0]}/{stem}.tflite", f"{NOISE} random inputs")(
        on_float_noise if stem.endswith("float32") else on_noise)


def streaming(find: Find, pair: Pair) -> str:
    """A stream: three frames a call, each side with its own state."""
    random = np.random.default_rng(3)
    level = np.clip(np.cumsum(random.normal(0, 9, (NOISE, 3, 40)), axis=0), -128, 127)
    for values in level.astype(np.int8):
        equal(*single(pair, values[None]))
    return f"every number the same over {NOISE} calls"


for stem in ("alexa", "hey_jarvis", "hey_mycroft", "okay_nabu"):
    row(f"wakeword_{stem}", f"microWakeWord, {stem.replace('_', ' ')}", f"micro_wakeword_int8/{stem}.tflite",
        f"{NOISE} calls of a stream")(streaming)


class Grid(NamedTuple):
    """Anchors at every cell of a picture's grid, some of them several times."""

    stride: int
    times: int


FACES = {
    "face_detection_short_range": ("Face detection, short range", 128, (Grid(8, 2), Grid(16, 6))),
    "face_detection_full_range": ("Face detection, full range", 192, (Grid(4, 1),)),
    "face_detection_full_range_sparse": ("Face detection, full range, sparse weights", 192, (Grid(4, 1),)),
    "face_detection_front": ("Face detection, front camera", 128, (Grid(8, 2), Grid(16, 6))),
    "face_detection_back": ("Face detection, back camera", 256, (Grid(16, 2), Grid(32, 6))),
}


def found_faces(boxes: Array, logits: Array, size: int, grids: tuple[Grid, ...]) -> list[detection.Box]:
    """The faces above a score of 0.5, without doubles."""
    centres = np.concatenate([
        np.stack(np.meshgrid(*[(np.arange(size // g.stride) + 0.5) * g.stride] * 2), axis=-1).reshape(-1, 2)
        .repeat(g.times, axis=0) for g in grids])
    rows = boxes[0, :, :4].T.copy()
    rows[:2] += centres.T
    return detection.decode(np.concatenate([rows, 1 / (1 + np.exp(-logits[0].T.astype(np.float64)))]), 0.5, 0.3)


def faces(size: int, grids: tuple[Grid, ...]) -> Callable[[Find, Pair], str]:
    """Compare the faces in four photos."""
    def compare(find: Find, pair: Pair) -> str:
        (taken,) = pair.source.interface.inputs
        total = 0
        for name in PHOTOS:
            sides = pair.run({taken.name: photo(find, name, size) / np.float32(127.5) - 1})
            for key in sides[0]:
                close(sides[0][key], sides[1][key], 80)
            before, after = (found_faces(*sorted(side.values(), key=lambda a: -a.shape[-1]), size, grids)
                             for side in sides)
            assert len(before) == len(after), name
            assert np.allclose(np.array(before), np.array(after), atol=0.01), name
            total += len(before)
        assert total
        return f"{total} faces, each within 0.01 pixels; outputs to 80 dB or more"

    return compare


for stem, (words, side, grid) in FACES.items():
    row(stem, words, f"mediapipe_face/{stem}.tflite", f"faces in {len(PHOTOS)} photos")(faces(side, grid))


def same_numbers(find: Find, pair: Pair) -> str:
    """All outputs on four photos, to rounding."""
    (taken,) = pair.source.interface.inputs
    for name in PHOTOS:
        sides = pair.run({taken.name: photo(find, name, taken.shape[1]) / np.float32(127.5) - 1})
        for key in sides[0]:
            close(sides[0][key], sides[1][key], 80)
    return f"{len(sides[0])} output{'s' * (len(sides[0]) > 1)} of 80 dB or more for each photo"


for name, words, file in (
    ("face_landmark", "Face landmarks", "mediapipe_face/face_landmark.tflite"),
    ("iris_landmark", "Iris landmarks", "mediapipe_face/iris_landmark.tflite"),
    ("pose_detection", "Pose detection", "mediapipe_modules/pose_detection.tflite"),
    ("palm_detection", "Palm detection", "mediapipe_modules/palm_detection_full.tflite"),
    ("hand_landmark", "Hand landmarks", "mediapipe_modules/hand_landmark_lite.tflite"),
):
    row(name, words, file, f"all outputs for {len(PHOTOS)} photos")(same_numbers)


@row("selfie", "Selfie segmentation", "mediapipe_selfie/selfie_segmentation.tflite",
     f"who stands out in {len(PHOTOS)} photos", source_kernels="xnnpack")
def selfie(find: Find, pair: Pair) -> str:
    """The map of each photo. The source holds a custom operator that XNNPACK alone computes."""
    (taken,) = pair.source.interface.inputs
    shares = []
    for name in PHOTOS:
        before, after = pair.first({taken.name: photo(find, name, taken.shape[1]) / np.float32(255)})
        close(before, after, 80)
        assert ((before > 0.5) != (after > 0.5)).sum() <= 2, name
        shares.append((after > 0.5).mean())
    assert max(shares) > 0.2, shares
    with pytest.raises(VitrifyError):
        open_model(pair.source_file, kernels="optimized")
    return (f"{len(PHOTOS)} maps of 80 dB or more, with the same people to 2 pixels. LiteRT's own kernels cannot run "
            "the source (custom operator 'Convolution2DTransposeBias', which XNNPACK takes); they run the conversion")


TABLE["face_attention"] = Refused("Face landmarks with attention",
                                  "mediapipe_modules/face_landmark_with_attention.tflite",
                                  "custom operator 'Landmarks2TransformMatrix'")
