"""Small models whose authors publish an int8 file beside the float one: ours against theirs on the same data."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from int8_tasks import Array, Find, Measured, sides, task
from PIL import Image

from vitrify.runtimes import open as open_model
from vitrify.runtimes.base import Runtime

ROOT = Path(__file__).parents[2]
TENSORFLOW = ROOT / ".cache" / "tf" / "venv" / "bin" / "python"
"""Keras files need TensorFlow, which has an environment of its own (`make test-tf`)."""

NOISE, FOR_CALIBRATION = 200, 40
TO_FLOAT = "import sys, vitrify; vitrify.convert(sys.argv[1], sys.argv[2])"
PEOPLE = ("ultralytics_photos/bus.jpg", "ultralytics_photos/zidane.jpg", "skimage_photos/astronaut.png")
THINGS = ("skimage_photos/coffee.png", "skimage_photos/rocket.jpg", "skimage_photos/chelsea.png",
          "skimage_photos/page.png")


def classes(runtime: Runtime, inputs: Sequence[Array]) -> list[int]:
    """The class of each input, given in real numbers."""
    (taken,) = runtime.interface.inputs
    named = []
    for one in inputs:
        (output,) = runtime.run({taken.name: one.reshape(taken.shape)}).values()
        named.append(int(output.argmax()))
    return named


def right(named: Sequence[int], labels: Sequence[int]) -> int:
    """How many are as they should be."""
    return sum(int(one == label) for one, label in zip(named, labels, strict=True))


def keras_float(find: Find, name: str, folder: Path) -> Path:
    """The Keras file as float TFLite."""
    target = folder / f"{name}.tflite"
    if not TENSORFLOW.exists():
        import pytest

        pytest.skip("Keras files need TensorFlow's environment: make test-tf sets it up")
    subprocess.run([str(TENSORFLOW), "-c", TO_FLOAT, str(find(f"mltk_keras/{name}/{name}.h5")), str(target)],
                   check=True, capture_output=True, timeout=280)
    return target


def against(find: Find, name: str, folder: Path, given: Sequence[Array], tested: Sequence[Array],
            labels: Sequence[int]) -> Measured:
    """Quantize the float twin; ours and the authors' int8 file name the classes of the same data."""
    source = keras_float(find, name, folder)
    with open_model(source) as opened:
        (taken,) = opened.interface.inputs
    both = sides(source, [{taken.name: one.reshape(taken.shape)} for one in given], folder)
    with open_model(find(f"mltk_int8/{name}/{name}.tflite")) as authors:
        counts = [right(classes(both.source, tested), labels), right(classes(both.ours, tested), labels),
                  right(classes(authors, tested), labels)]
    before, after, other = (f"{count} of {len(labels)}" for count in counts)
    return Measured(before, after, other, counts[1] >= counts[2])


def pictures(find: Find, kind: str) -> list[tuple[Array, int]]:
    """Twenty small pictures in 0..255 and their labels."""
    paths = sorted(find("foolbox_samples/cifar10_00_3.png").parent.glob(f"{kind}_*.png"))
    return [(np.asarray(Image.open(p).convert("RGB"), np.float32), int(p.stem.split("_")[-1])) for p in paths]


@task("mltk_cifar", "ResNet for CIFAR-10", "mltk_keras/image_classification/image_classification.h5",
      "20 labelled pictures right. Calibrated on 20 of CIFAR-100", "not below the authors' int8 file", met=False)
def cifar(find: Find, folder: Path) -> Measured:
    """Centred pixels, as the authors' file takes them."""
    tested = pictures(find, "cifar10")
    given = [(picture - 128) / 128 for picture, _ in pictures(find, "cifar100")]
    return against(find, "image_classification", folder, given, [(picture - 128) / 128 for picture, _ in tested],
                   [label for _, label in tested])


@task("mltk_person", "MobileNetV1 0.25, person or not", "mltk_keras/visual_wake_words/visual_wake_words.h5",
      "23 photos right, 3 of them with people. Calibrated on 20 quarters and wholes of others",
      "not below the authors' int8 file")
def person(find: Find, folder: Path) -> Measured:
    """Pixels of 0..255; both say person first."""
    def photo(path: Path) -> Image.Image:
        return Image.open(path).convert("RGB")

    def sized(picture: Image.Image) -> Array:
        return np.asarray(picture.resize((96, 96)), np.float32)

    folder_of = find("foolbox_samples/imagenet_00_243.jpg").parent
    tested = [sized(photo(p)) for p in [*map(find, PEOPLE), *sorted(folder_of.glob("imagenet_*.jpg"))]]
    given = []
    for name in THINGS:
        picture = photo(find(name))
        half = picture.width // 2, picture.height // 2
        given += [sized(picture)] + [sized(picture.crop((x, y, x + half[0], y + half[1])))
                                     for x in (0, half[0]) for y in (0, half[1])]
    return against(find, "visual_wake_words", folder, given, tested, [0] * 3 + [1] * 20)


KEYWORDS = {"keyword_spotting_on_off_v3": "On and off", "keyword_spotting_alexa": "Alexa",
            "keyword_spotting_pacman_v3": "Words for Pac-Man"}


def on_noise(find: Find, name: str, folder: Path) -> Measured:
    """Ours and the authors' file name the classes of noise; what counts are those of the float model."""
    source = find(f"mltk_int8/{name}/{name}.float32.tflite")
    random = np.random.default_rng(7)
    with open_model(find(f"mltk_int8/{name}/{name}.tflite")) as authors:
        (taken,) = authors.interface.inputs
        made = [random.integers(-128, 128, taken.shape).astype(np.float32) for _ in range(NOISE + FOR_CALIBRATION)]
        both = sides(source, [{"input_1": one} for one in made[NOISE:]], folder)
        wanted, ours, theirs = (classes(one, made[:NOISE]) for one in (both.source, both.ours, authors))
    share = [right(named, wanted) / NOISE for named in (ours, theirs)]
    return Measured("", f"{share[0]:.1%}", f"{share[1]:.1%}", share[0] >= share[1] - 0.005)


def enter(name: str, title: str) -> None:
    """One row for one network."""
    task(name, title, f"mltk_int8/{name}/{name}.float32.tflite",
         f"classes as in float for {NOISE} inputs of noise. Calibrated on {FOR_CALIBRATION} others",
         "within 0.5 points of the authors' int8 file")(lambda find, folder: on_noise(find, name, folder))


for stem, words in KEYWORDS.items():
    enter(stem, words)
