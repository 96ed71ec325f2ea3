"""Real models on real input go the whole way: float equals the source, INT8 keeps the answer, Vela takes it."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from road_models import ROAD, Find, normalized_digits, speech_frames

import vitrify as vt
from vitrify.core.findings import Severity
from vitrify.data.preprocess import PictureShape, read_picture
from vitrify.results import RunRecord
from vitrify.runtimes import open as open_model
from vitrify.tasks import detection
from vitrify.verify.metrics import sqnr_db

Array = np.ndarray[Any, np.dtype[Any]]
pytestmark = [pytest.mark.models, pytest.mark.timeout(300)]
FLOAT_DB = 90.0


@dataclass(frozen=True)
class Road:
    """A finished run, and where its calibration data lies."""

    name: str
    source: Path
    folder: Path
    data: Path
    record: RunRecord

    def file(self, kind: str) -> Path:
        """The path of an artifact."""
        return self.folder / self.record.artifacts[kind].file


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Let one process at a time into the block."""
    lock.parent.mkdir(exist_ok=True)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="module")
def road(model_file: Find, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Road]:
    """Return a function that builds one of the models, once for all processes of a test run."""
    done: dict[str, Road] = {}
    own = tmp_path_factory.getbasetemp()
    shared = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "road"

    def build(name: str) -> Road:
        if name not in done:
            model = ROAD[name]
            source, data, folder = model_file(model.file), shared / f"{name}_data", shared / name
            with alone(shared / f"{name}.lock"):
                if not data.exists():
                    data.mkdir()
                    model.data(model_file, data)
                    vt.build(source, "imx93", data=data, output=folder, preprocess=model.preprocess,
                             shapes=model.shapes, values=model.values, least_db=model.least_db)
            record = msgspec.json.decode((folder / "run.json").read_bytes(), type=RunRecord)
            done[name] = Road(name, source, folder, data, record)
        return done[name]

    return build


def picture(path: Path, name: str) -> Array:
    """Read a picture as the model ``name`` takes it."""
    model = ROAD[name]
    shape = next(iter(model.shapes.values()), (1, 3, 224, 224))
    taken = PictureShape.of(shape)
    assert taken is not None
    return read_picture(path, model.preprocess, taken).reshape(shape)


@pytest.mark.parametrize("name", ROAD)
def test_float_equals_the_source_and_int8_is_whole_and_compiled(road: Callable[[str], Road], name: str) -> None:
    record = road(name).record
    assert record.verify_float is not None
    for output in record.verify_float.outputs:
        assert output.equal or (output.sqnr_db is not None and output.sqnr_db >= FLOAT_DB), output
        assert output.relative_error is None or output.relative_error <= 1e-4, output
    assert record.int8_model is not None
    assert record.int8_model.float_operators == 0
    assert record.int8_model.kind == ROAD[name].kind
    assert record.coverage.macs is not None
    assert record.coverage.macs > 0.99
    assert record.estimate.latency_ms is not None
    assert record.estimate.latency_ms > 0
    assert road(name).file("report").stat().st_size > 10_000


@pytest.mark.parametrize("name", ROAD)
def test_no_transpose_is_left(road: Callable[[str], Road], name: str) -> None:
    record = road(name).record
    assert record.float_model is not None
    assert record.float_model.transposes == 0


def test_text_map_keeps_25_db(road: Callable[[str], Road], model_file: Find) -> None:
    run = road("ppocr_det")
    inputs = {"x": picture(model_file("skimage_photos/page.png"), "ppocr_det")}
    reference = vt.run(run.source, inputs, shapes=ROAD["ppocr_det"].shapes)
    (name, expected), = reference.items()
    assert sqnr_db(expected, vt.run(run.file("int8"), inputs)[name]) >= 25


def test_upside_down_lines_are_told_as_before(road: Callable[[str], Road]) -> None:
    run = road("ppocr_cls")
    names, told = sorted(run.data.glob("*.png")), 0
    with (open_model(run.source, shapes=ROAD["ppocr_cls"].shapes) as source,
          open_model(run.file("int8"), kernels="reference") as int8):
        for path in names:
            inputs = {"x": picture(path, "ppocr_cls")}
            expected, = source.run(inputs).values()
            given, = int8.run(inputs).values()
            if abs(float(expected[0, 0] - expected[0, 1])) > 0.1:       # the others are a coin's toss in float too
                told += 1
                assert expected.argmax() == given.argmax(), path.name
    assert told >= len(names) // 2


@pytest.mark.parametrize("name", ["yolov8n_320", "yolov8n_640"])
def test_the_same_faces_are_found(road: Callable[[str], Road], model_file: Find, name: str) -> None:
    run = road(name)
    faces = 0
    for photo in ("bus.jpg", "zidane.jpg"):
        inputs = {"images": picture(model_file(f"ultralytics_photos/{photo}"), name)}
        size = inputs["images"].shape[-1]
        expected = found_faces(vt.run(run.source, inputs, shapes=ROAD[name].shapes)["output0"], size, 0.2)
        given = found_faces(vt.run(run.file("int8"), inputs)["output0"], size, 0.15)
        for box in expected:
            shares = detection.overlaps(np.array(box[:4]), np.array([other[:4] for other in given]).reshape(-1, 4))
            assert shares.max(initial=0) >= 0.9, (photo, box, given)
        faces += len(expected)
    assert faces >= 2


def found_faces(output: Array, size: int, score: float) -> list[detection.Box]:
    """The boxes of faces (classes 1 and 12, of women and of men) in a YOLO output."""
    rows = detection.head_rows(output, size, size)
    assert rows is not None
    return [box for box in detection.decode(rows, score) if box.label in (1, 12)]


def test_efficientnet_loses_at_most_one_photo(road: Callable[[str], Road]) -> None:
    run = road("efficientnet_lite0")
    right = {"float": 0, "int8": 0}
    with open_model(run.source) as source, open_model(run.file("int8"), kernels="reference") as int8:
        for path in sorted(run.data.glob("*.jpg")):
            label, inputs = int(path.stem.split("_")[-1]), {"input": picture(path, "efficientnet_lite0")}
            right["float"] += int(source.run(inputs)["output"].argmax()) == label
            right["int8"] += int(int8.run(inputs)["output"].argmax()) == label
    assert right["float"] >= 17
    assert right["int8"] >= right["float"] - 1


def test_digits_lose_at_most_a_tenth_of_a_point(road: Callable[[str], Road], model_file: Find) -> None:
    run = road("mnist")
    data = np.load(model_file("mnist_10k/mnist_10k.npz"))
    images, labels = normalized_digits(data["images"]), data["labels"]
    right = {}
    for kind, path in (("float", run.source), ("int8", run.file("int8"))):
        with open_model(path, **({"kernels": "optimized"} if kind == "int8" else {})) as model:
            found = [int(model.run({"input": image[None]})["output"].argmax()) for image in images]
        right[kind] = float(np.mean(np.array(found) == labels))
    assert right["float"] > 0.99
    assert right["int8"] >= right["float"] - 0.001


PRESENT = 0.3
TONES = {1: (69,), 2: (60, 64, 67), 3: (45,), 4: (57, 61, 64, 69)}
"""The chords of ``notes`` by sample: MIDI numbers. Sample 0 is talk."""


def test_int8_keeps_the_notes_of_chords(road: Callable[[str], Road]) -> None:
    """Every note that float hears in a frame int8 hears too, and few others; single tones are told in every frame."""
    run = road("basic_pitch")
    sounds = np.load(run.data / "sounds.npy")
    with open_model(run.source) as source, open_model(run.file("int8"), kernels="reference") as int8:
        for number, tones in TONES.items():
            inputs = {"serving_default_input_2:0": sounds[number][None]}
            expected, given = (m.run(inputs)["StatefulPartitionedCall:1"][0] for m in (source, int8))
            heard, kept = expected > PRESENT, given > PRESENT
            assert heard.any(axis=1).mean() > 0.8
            assert (heard & kept).sum() >= 0.99 * heard.sum(), tones
            assert (heard & kept).sum() >= 0.75 * kept.sum(), tones
            if len(tones) == 1:
                frames = heard.any(axis=1)
                assert (expected.argmax(axis=1) == given.argmax(axis=1))[frames].all(), tones
                assert set(given.argmax(axis=1)[frames] + 21) == set(tones)


def test_a_spectrum_of_130_db_is_said_to_be_too_much_for_int8(road: Callable[[str], Road]) -> None:
    """Quiet parts are lost: the build says why, and that its outputs are not good, onsets least of all."""
    record = road("basic_pitch").record
    findings = [f for stage in record.stages for f in stage.findings]
    (finding,) = [f for f in findings if f.code == "quant.decibels"]
    assert re.fullmatch(r"the logarithm spans 13\d dB, int8 amplitudes span 48 dB", finding.headline)
    assert record.status == "failed"
    assert {f.code for f in findings if f.severity is Severity.ERROR} == {"verify.output"}
    assert record.verify_int8 is not None
    found = [output.sqnr_db or 0.0 for output in record.verify_int8.outputs]
    assert all(8 <= value < 15 for value in found), found
    assert record.coverage.nodes == 1.0


@pytest.mark.parametrize("name", ["silero_vad", "silero_vad_fixed"])
def test_int8_tells_speech_from_silence(road: Callable[[str], Road], model_file: Find, name: str) -> None:
    """Frame by frame with the source's state, and over half a minute on the state that int8 itself carries."""
    run, model = road(name), ROAD[name]
    state, own = np.zeros((2, 1, 128), np.float32), np.zeros((2, 1, 128), np.float32)
    told = []
    with (open_model(run.source, shapes=model.shapes, values=model.values) as source,
          open_model(run.file("int8"), kernels="optimized") as int8):
        for frame in speech_frames(model_file):
            expected = source.run({"input": frame, "state": state})
            beside, carried = (int8.run({"input": frame, "state": s}) for s in (state, own))
            state, own = expected["stateN"], carried["stateN"]
            told.append([float(o["output"].reshape(-1)[0]) > 0.5 for o in (expected, beside, carried)])
    speech, beside_speech, carried_speech = np.array(told).T
    assert len(told) == 937
    assert 0.7 < speech.mean() < 0.8
    assert (speech == beside_speech).mean() >= 0.985
    assert (speech == carried_speech).mean() >= 0.97
    assert run.record.coverage.nodes == 1.0
    findings = [f for stage in run.record.stages for f in stage.findings]
    assert {f.code for f in findings if f.severity is not Severity.INFO} == {"range.input", "quant.input-range"}
