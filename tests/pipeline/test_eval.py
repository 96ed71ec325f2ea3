"""`eval`: one scorer for all stages, the same figures whoever does the work, and sets with mistakes in them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import task_models
from PIL import Image

from vitrify import Preprocess, VitrifyError, quantize
from vitrify.pipeline.evaluating.batches import in_pixels
from vitrify.pipeline.evaluating.evaluate import EvalOptions, evaluate_files
from vitrify.pipeline.evaluating.sets.base import read_labelled
from vitrify.pipeline.running.model import TaskOptions
from vitrify.results import EvalResult

SETS: dict[str, Callable[[Path], Path]] = {
    "coco": task_models.coco, "yolo": task_models.yolo, "voc": task_models.voc, "csv": task_models.table}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier, its int8 form, a detector and labelled samples."""
    folder = tmp_path_factory.mktemp("eval")
    source = task_models.classifier(folder / "classes.onnx")
    data = task_models.digits(folder / "digits.npz")
    with np.load(data) as stored:
        small = quantize(source, data=[image[..., None] for image in stored["images"][:32]], preprocess=Preprocess())
    from vitrify import tflite

    tflite.write(small, folder / "int8.tflite")
    task_models.detector(folder / "boxes.onnx")
    return folder


def score(made: Path, *names: str, data: Path | None = None, **options: object) -> EvalResult:
    place = data or made / "digits.npz"
    given = EvalOptions(state=made / "state.jsonl", **{"batch": 50, **options})  # type: ignore[arg-type]
    return evaluate_files([made / name for name in names], place, given)


def figures(result: EvalResult) -> list[dict[str, float]]:
    return [stage.figures for stage in result.stages]


@pytest.fixture(scope="module")
def alone(made: Path) -> EvalResult:
    """Both forms of the classifier, by one process."""
    return score(made, "classes.onnx", "int8.tflite")


def test_stages_are_scored_alike(made: Path, alone: EvalResult) -> None:
    result = alone
    assert result.truth == "labels"
    assert result.samples == 200
    assert figures(result)[0]["top-1"] == 90.0
    assert figures(result)[1]["top-1"] == pytest.approx(90, abs=3)
    assert result.stages[1].drop == pytest.approx(90 - figures(result)[1]["top-1"])
    assert result.ok
    assert not (made / "state.jsonl").exists()


def test_the_number_of_workers_and_batches_changes_nothing(made: Path, alone: EvalResult) -> None:
    assert figures(score(made, "classes.onnx", "int8.tflite", workers=2, batch=33)) == figures(alone)


@pytest.mark.slow
def test_a_dask_scheduler_gives_the_same(made: Path, alone: EvalResult) -> None:
    code = ("import sys\nfrom distributed import LocalCluster\nif __name__ == '__main__':\n"
            "    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host='127.0.0.1') as c:\n"
            "        print(c.scheduler_address, flush=True)\n        sys.stdin.read()\n")
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as cluster:
        assert cluster.stdout is not None
        address = cluster.stdout.readline().strip()
        shared = score(made, "classes.onnx", "int8.tflite", scheduler=address)
        cluster.communicate()
    assert shared.workers == 2
    assert figures(shared) == figures(alone)


@pytest.mark.slow
def test_one_that_was_killed_goes_on(made: Path, tmp_path: Path, alone: EvalResult) -> None:
    state = tmp_path / "state.jsonl"
    command = [sys.executable, "-m", "vitrify", "eval", str(made / "classes.onnx"), "--data", str(made / "digits.npz"),
               "--state", str(state), "--batch", "1", "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 60
    while not (state.exists() and state.read_bytes().count(b"\n") >= 5) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = state.read_bytes().count(b"\n")
    assert 5 <= kept < 200, "killed too late to say anything"
    options = EvalOptions(state=state, batch=1, workers=2)
    result = evaluate_files([made / "classes.onnx"], made / "digits.npz", options)
    assert result.reused >= 5
    assert figures(result) == figures(alone)[:1]


@pytest.mark.parametrize("form", SETS)
def test_all_forms_of_labels_say_the_same(tmp_path: Path, form: str) -> None:
    found = read_labelled(SETS[form](tmp_path), "detection")
    assert found.form == form
    names = sorted(found.classes.items())
    truths = {Path(e.file).name: in_pixels(e.truth or {}, (64, 64)) for e in found.entries}
    for file, boxes in {"1.png": [("cup", [8, 8, 24, 32]), ("cat", [34, 30, 54, 50])],
                        "2.png": [("cat", [0, 0, 10, 10])]}.items():
        given = [(found.classes[label], box) for label, box in zip(truths[file]["labels"], truths[file]["boxes"],
                                                                   strict=True)]
        assert given == [(name, pytest.approx(box)) for name, box in boxes]
    assert {name for _, name in names} == {"cup", "cat"}


def test_boxes_are_scored_in_the_pixels_of_their_pictures(made: Path, tmp_path: Path) -> None:
    result = score(made, "boxes.onnx", data=task_models.coco(tmp_path))
    # Both cups and one of two cats are found; the cup of the second picture is none, and as sure as the other.
    assert result.facts.task == "detection"
    assert figures(result)[0]["AP50"] == pytest.approx(75, abs=1)


def test_without_labels_the_first_stage_stands_for_them(made: Path, tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    for number in range(3):
        task_models.photo(photos / f"{number}.png")
    result = score(made, "boxes.onnx", "boxes.onnx", data=photos)
    assert result.truth == "first stage"
    assert figures(result)[0] == {}
    assert figures(result)[1]["mAP"] == pytest.approx(100)
    with pytest.raises(VitrifyError, match=r"nothing at .* says what is right"):
        score(made, "boxes.onnx", data=photos)


def test_a_loss_beyond_the_gate_is_an_error(made: Path, tmp_path: Path) -> None:
    task_models.classifier(made / "worse.onnx", task_models.WEIGHTS[::-1].copy())
    result = score(made, "classes.onnx", "worse.onnx", max_drop=5.0)
    assert not result.ok
    (finding,) = (f for f in result.findings if f.code == "eval.drop")
    assert "loses" in finding.headline
    assert "at most 5" in finding.headline


def test_files_that_cannot_be_read_are_counted_and_named(made: Path, tmp_path: Path) -> None:
    folder = task_models.coco(tmp_path)
    (folder / "images" / "2.png").write_bytes(b"no picture")
    result = score(made, "boxes.onnx", data=folder)
    assert (result.samples, result.skipped) == (1, 1)
    assert any("2.png" in f.headline and f.code == "data.unreadable" for f in result.findings)


def test_maps_of_classes_are_held_against_masks(made: Path, tmp_path: Path) -> None:
    task_models.segmenter(tmp_path / "pixels.onnx")
    half = np.zeros((16, 16), np.uint8)
    half[:, 8:] = 1
    for folder, values in (("images", half * 255), ("masks", half)):
        (tmp_path / "set" / folder).mkdir(parents=True)
        for number in range(3):
            Image.fromarray(values).save(tmp_path / "set" / folder / f"{number}.png")
    (tmp_path / "set" / "masks" / "2.png").write_bytes(b"no picture")
    options = EvalOptions(state=tmp_path / "state", told=Preprocess(mean=(0.5,)))
    result = evaluate_files([tmp_path / "pixels.onnx"], tmp_path / "set", options)
    assert (result.facts.task, result.format, result.samples, result.skipped) == ("segmentation", "masks", 2, 1)
    assert figures(result)[0]["mIoU"] == 100


def _beyond(made: Path, folder: Path) -> object:
    np.savez(folder / "beyond.npz", images=np.zeros((4, 16, 16), np.uint8), labels=np.array([0, 1, 2, 44]))
    return score(made, "classes.onnx", data=folder / "beyond.npz")


def _strangers(made: Path, folder: Path) -> object:
    for name in ("apple", "pear", "plum"):
        task_models.photo(folder / "set" / name / "1.png", (16, 16))
    task_models.classifier(folder / "named.onnx", names=True)
    return evaluate_files([folder / "named.onnx"], folder / "set", EvalOptions(state=folder / "s"))


def _unknown(made: Path, folder: Path) -> object:
    return score(made, "classes.onnx", task=TaskOptions(task="clasification"))


def _wrong_kind(made: Path, folder: Path) -> object:
    return score(made, "boxes.onnx", data=made / "digits.npz")


def _other_ends(made: Path, folder: Path) -> object:
    return score(made, "classes.onnx", "boxes.onnx")


def _no_json(made: Path, folder: Path) -> object:
    (folder / "labels.json").write_text('{"images": 3}')
    return score(made, "boxes.onnx", data=folder)


def _no_scheduler(made: Path, folder: Path) -> object:
    return score(made, "classes.onnx", labels="votes")


WRONG: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "labels beyond the classes": (_beyond, "labels beyond the model's 10 classes: 44"),
    "names that the model does not know": (_strangers, "none of the set's 3 classes is one of the model's 10"),
    "an unknown task": (_unknown, "no task 'clasification'(.|\n)*classification"),
    "labels of another kind": (_wrong_kind, "detection is scored by boxes"),
    "stages with other inputs": (_other_ends, "boxes.onnx has inputs"),
    "labels in no known form": (_no_json, "labels.json is not in COCO's form"),
    "an unknown form": (_no_scheduler, "no form of labels 'votes'")}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_told(made: Path, tmp_path: Path, case: str) -> None:
    call, message = WRONG[case]
    with pytest.raises(VitrifyError, match=message):
        call(made, tmp_path)
