"""The real models that go the whole way, with real inputs for each."""

from __future__ import annotations

import wave
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from vitrify import Preprocess
from vitrify.runtimes import open as open_model

Array = np.ndarray[Any, np.dtype[Any]]
Find = Callable[[str], Path]
AS_IS = Preprocess()
IMAGENET: dict[str, tuple[float, ...]] = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}


@dataclass(frozen=True)
class RoadModel:
    """A model of ``scripts/models.toml``, its fixed shapes, and a function that lays its samples in a folder."""

    file: str
    data: Callable[[Find, Path], None]
    shapes: dict[str, tuple[int, ...]]
    preprocess: Preprocess = AS_IS
    values: dict[str, int | float | list[int | float]] = field(default_factory=dict)
    least_db: float | None = None
    kind: str = "int8"


def _copy(sources: list[Path], folder: Path) -> None:
    for source in sources:
        (folder / source.name).write_bytes(source.read_bytes())


def pictures(find: Find, folder: Path) -> None:
    """Six pictures, two of them pages of text."""
    names = ("page.png", "text.png", "coffee.png", "rocket.jpg", "astronaut.png", "chelsea.png")
    _copy([find(f"skimage_photos/{name}") for name in names], folder)


def photos_with_people(find: Find, folder: Path) -> None:
    """Two street photos, an astronaut and eight photos of things."""
    labelled = sorted(find("foolbox_samples/imagenet_00_243.jpg").parent.glob("imagenet_*.jpg"))[:8]
    _copy([find(f"ultralytics_photos/{name}") for name in ("bus.jpg", "zidane.jpg")]
          + [find("skimage_photos/astronaut.png")] + labelled, folder)


def imagenet(find: Find, folder: Path) -> None:
    """Twenty labelled photos; the label is the number at the end of the name."""
    _copy(sorted(find("foolbox_samples/imagenet_00_243.jpg").parent.glob("imagenet_*.jpg")), folder)


def text_lines(find: Find, folder: Path) -> None:
    """Lines of a printed page, upright and upside down."""
    page = Image.open(find("skimage_photos/page.png")).convert("RGB")
    for index, top in enumerate(range(5, 180, 22)):
        line = page.crop((0, top, 150, top + 22))
        line.save(folder / f"{index:02}_up.png")
        line.rotate(180).save(folder / f"{index:02}_down.png")


def digits(find: Find, folder: Path) -> None:
    """One hundred digits, ten of each kind, as the network was trained to see them."""
    data = np.load(find("mnist_10k/mnist_10k.npz"))
    picks = np.concatenate([np.flatnonzero(data["labels"] == digit)[:10] for digit in range(10)])
    np.save(folder / "digits.npy", normalized_digits(data["images"][picks]))


def normalized_digits(images: Array) -> Array:
    """Turn uint8[n,28,28] into float32[n,1,28,28] with MNIST's mean and standard deviation."""
    return ((images[:, None].astype(np.float32) / 255 - 0.1307) / 0.3081).astype(np.float32)


def speech(find: Find) -> Array:
    """Half a minute of talk: float32 at 16 kHz."""
    with wave.open(str(find("speech_sample/sample.wav"))) as recording:
        samples = np.frombuffer(recording.readframes(recording.getnframes()), np.int16)
    return samples.astype(np.float32) / 32768


def notes(find: Find, folder: Path) -> None:
    """Two seconds of talk and of chords, in 16 bits, at the rate that the network takes."""
    count, rate = 43844, 22050
    time = np.arange(count) / rate
    talk = np.interp(np.arange(count) / rate + 8, np.arange(len(speech(find))) / 16000, speech(find))
    chords = [sum(np.sin(2 * np.pi * f * time) * np.exp(-time) for f in tones) / len(tones)
              for tones in ((440.0,), (261.6, 329.6, 392.0), (110.0,), (220.0, 277.2, 329.6, 440.0))]
    sounds = np.rint(np.stack([talk, *chords]) * 32767) / 32768
    np.save(folder / "sounds.npy", sounds.astype(np.float32)[..., None])


def speech_frames(find: Find) -> Iterator[Array]:
    """The recording in float32[1,576]: 512 new samples with the 64 before in front."""
    samples = np.concatenate([np.zeros(64, np.float32), speech(find)])
    for start in range(0, len(samples) - 576 + 1, 512):
        yield samples[None, start:start + 576]


def speech_states(find: Find, folder: Path) -> None:
    """Every 15th frame of the recording, and the state in which the source model meets it."""
    state = np.zeros((2, 1, 128), np.float32)
    with open_model(find(SILERO_FIXED)) as source:
        for number, frame in enumerate(speech_frames(find)):
            if number % 15 == 0:
                np.savez(folder / f"{number:03}.npz", input=frame, state=state)
            state = source.run({"input": frame, "state": state})["stateN"]


SILERO_FIXED = "silero_vad/silero_vad_openvino_16k.onnx"

ROAD = {
    "ppocr_det": RoadModel("ppocr_v4/ch_PP-OCRv4_det_infer.onnx", pictures, {"x": (1, 3, 640, 640)},
                           Preprocess(color="bgr", **IMAGENET), least_db=25, kind="int8-int16"),
    "ppocr_cls": RoadModel("ppocr_v4/ch_ppocr_mobile_v2.0_cls_infer.onnx", text_lines, {"x": (1, 3, 48, 192)},
                           Preprocess(color="bgr", mean=(0.5,), std=(0.5,))),
    "yolov8n_320": RoadModel("nudenet_yolov8n/320n.onnx", photos_with_people, {"images": (1, 3, 320, 320)},
                             Preprocess(fit="letterbox"), kind="int8-int16"),
    "yolov8n_640": RoadModel("nudenet_yolov8n/320n.onnx", photos_with_people, {"images": (1, 3, 640, 640)},
                             Preprocess(fit="letterbox"), kind="int8-int16"),
    "efficientnet_lite0": RoadModel("efficientnet_lite0/efficientnet_lite0.onnx", imagenet, {},
                                    Preprocess(fit="crop", interpolation="bicubic", mean=(127 / 255,),
                                               std=(128 / 255,))),
    "mnist": RoadModel("digits_cnn/digits_cnn.onnx", digits, {}),
    "basic_pitch": RoadModel("basic_pitch/nmp.onnx", notes, {}),
    "silero_vad": RoadModel("silero_vad/silero_vad_op18_ifless.onnx", speech_states,
                            {"input": (1, 576), "state": (2, 1, 128)}, values={"sr": 16000}, kind="int8-int16"),
    "silero_vad_fixed": RoadModel(SILERO_FIXED, speech_states, {}, kind="int8-int16"),
}
