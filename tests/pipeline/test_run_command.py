"""`run`: what is found, in pictures' own pixels, drawn beside other forms; and inputs that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import task_models
from PIL import Image

from vitrify import VitrifyError, load, tflite
from vitrify.pipeline.running.model import TaskOptions
from vitrify.pipeline.running.run import RunOptions, run_files
from vitrify.results import RunResult

CUP, CAT = [8, 8, 24, 32], [34, 30, 54, 50]
"""Where the detector sees both in a picture of 64, twice its input."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    task_models.detector(folder / "boxes.onnx")
    task_models.classifier(folder / "classes.onnx")
    tflite.write(load(folder / "boxes.onnx"), folder / "boxes.tflite")
    for number in range(3):
        task_models.photo(folder / "photos" / f"{number}.png")
    return folder


def run(made: Path, names: list[str], place: str | Path, output: Path | None = None, **task: object) -> RunResult:
    options = RunOptions(output=output, task=TaskOptions(**task))  # type: ignore[arg-type]
    return run_files([made / name for name in names], made / place, options)


def found(result: RunResult, row: int = 0) -> list[tuple[str, list[int]]]:
    return [(one["name"], [round(v) for v in one["box"]]) for one in result.rows[row].found["objects"]]


def test_boxes_are_in_the_pixels_of_the_picture(made: Path) -> None:
    result = run(made, ["boxes.onnx"], "photos/0.png")
    assert result.facts.decoder == "yolov8"
    assert found(result) == [("cup", CUP), ("cat", CAT)]


def test_a_letterbox_is_undone(made: Path) -> None:
    task_models.photo(made / "wide.png", (128, 64))
    boxes = found(run(made, ["boxes.onnx"], "wide.png"))
    assert boxes == [("cup", [16, 0, 48, 32]), ("cat", [68, 28, 108, 64])]          # twice as large, 32 higher, cut


def test_forms_are_drawn_side_by_side(made: Path, tmp_path: Path) -> None:
    result = run(made, ["boxes.onnx", "boxes.tflite"], "photos/0.png", tmp_path / "both.png")
    assert [row.stage for row in result.rows] == ["boxes.onnx", "boxes.tflite"]
    assert found(result, 0) == found(result, 1)
    with Image.open(tmp_path / "both.png") as drawn:
        assert drawn.size == (64 * 2 + 8, 64 + 26)


def test_a_folder_gives_a_folder_and_a_file_says_what_it_is_for(made: Path, tmp_path: Path) -> None:
    result = run(made, ["boxes.tflite"], "photos", tmp_path / "drawn")
    assert [Path(file).name for file in result.files] == ["0.png", "1.png", "2.png"]
    assert found(result, 2) == [("cup", CUP), ("cat", CAT)], "names are the exporter's, which the file remembers"


def test_a_video_is_read_and_written(made: Path, tmp_path: Path) -> None:
    pytest.importorskip("av", reason="the optional reader of videos is not installed")
    run(made, ["boxes.onnx"], "photos", tmp_path / "drawn.mp4")
    result = run(made, ["boxes.onnx"], tmp_path / "drawn.mp4")
    assert len(result.rows) == 3


def test_arrays_are_run_as_they_are(made: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "ones.npy", np.ones((2, 1, 1, 16, 16), np.float32))
    result = run(made, ["classes.onnx"], tmp_path / "ones.npy")
    best = int(task_models.WEIGHTS.sum(1).argmax())
    assert [row.found["classes"][0]["label"] for row in result.rows] == [best, best]


def test_one_bad_picture_among_others_is_told(made: Path, tmp_path: Path) -> None:
    task_models.photo(tmp_path / "good.png")
    (tmp_path / "bad.png").write_bytes(b"nothing")
    result = run(made, ["boxes.onnx"], tmp_path)
    assert result.skipped == 1
    assert "bad.png" in result.findings[0].headline
    assert result.ok


WRONG: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "an unknown task": (lambda m, t: run(m, ["boxes.onnx"], "photos", task="detect"), "no task 'detect'"),
    "an unknown decoder": (lambda m, t: run(m, ["boxes.onnx"], "photos", decoder="yolov99"), "no decoder 'yolov99'"),
    "outputs of another form": (lambda m, t: run(m, ["classes.onnx"], "photos", decoder="yolov8"),
                                "not what decoder 'yolov8' takes"),
    "a task whose forms do not fit": (lambda m, t: run(m, ["classes.onnx"], "photos", task="detection"),
                                      "no known form of detection"),
    "two models of different inputs": (lambda m, t: run(m, ["classes.onnx", "boxes.onnx"], "photos"),
                                       "boxes.onnx has inputs"),
    "several inputs for one file": (lambda m, t: run(m, ["boxes.onnx"], "photos", t / "one.png"),
                                    "holds several inputs"),
    "no input at all": (lambda m, t: run(m, ["boxes.onnx"], t), "no picture, recording or array"),
    "a file of no known kind": (lambda m, t: run(m, ["boxes.onnx"], "boxes.onnx"), "no picture, video, recording")}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_told(made: Path, tmp_path: Path, case: str) -> None:
    call, message = WRONG[case]
    with pytest.raises(VitrifyError, match=message):
        call(made, tmp_path)
