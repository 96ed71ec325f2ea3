"""What a model is for: said by the call, kept in every file, and what quantization leaves of its answers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
import task_models

import vitrify as vt
from vitrify import VitrifyError, tflite
from vitrify.core.findings import Finding, Severity
from vitrify.pipeline.evaluating.evaluate import EvalOptions, evaluate_files
from vitrify.pipeline.options import DataOptions
from vitrify.pipeline.quantizing.answers import answers_agree
from vitrify.tasks.spec import remembered


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("told")
    task_models.classifier(folder / "classes.onnx")
    task_models.segmenter(folder / "pixels.onnx")
    task_models.detector(folder / "boxes.onnx")
    random = np.random.default_rng(4)
    np.save(folder / "grey.npy", random.random((8, 1, 1, task_models.SIDE, task_models.SIDE), np.float32))
    task_models.photo(folder / "photo.png")
    return folder


def command(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "vitrify", *map(str, words)], capture_output=True, text=True)


def kind_in(path: Path) -> str:
    spec = remembered(tflite.read(path))
    return "" if spec is None else spec.kind


def test_a_file_remembers_the_task_that_the_call_names(made: Path) -> None:
    vt.convert(made / "classes.onnx", made / "plain.tflite")
    vt.convert(made / "classes.onnx", made / "told.tflite", task="keywords")
    assert (kind_in(made / "plain.tflite"), kind_in(made / "told.tflite")) == ("", "keywords")
    found = vt.run(made / "told.tflite", made / "photo.png")
    assert (found.facts.task, found.command) == ("keywords", "run")


def test_the_task_reaches_the_integer_file(made: Path) -> None:
    ran = command("quantize", made / "classes.onnx", "--data", made / "grey.npy", "--task", "embedding",
                  "--effort", "fast", "-o", made / "int8.tflite", "--json")
    assert ran.returncode == 0, ran.stdout
    assert kind_in(made / "int8.tflite") == "embedding"


def test_a_build_keeps_the_task_and_scores_by_it(made: Path) -> None:
    result = vt.build(made / "pixels.onnx", "imx95", data=made / "grey.npy", output=made / "run", task="segmentation",
                      effort="fast")
    assert kind_in(made / "run" / "pixels_int8.tflite") == "segmentation"
    told = [f for stage in result.stages for f in stage.findings if f.code == "quantize.answers"]
    assert [f.severity for f in told] == [Severity.INFO]


@pytest.mark.parametrize(("task", "code"), [("gardening", "task.unknown"), ("detection", "task.form")])
def test_a_task_that_does_not_fit_is_refused(made: Path, task: str, code: str) -> None:
    with pytest.raises(VitrifyError) as refused:
        vt.convert(made / "classes.onnx", made / "not.tflite", task=task)
    assert [f.code for f in refused.value.findings] == [code]
    assert not (made / "not.tflite").exists()


def answers(made: Path, name: str, change: Callable[[np.ndarray], np.ndarray] | None = None) -> list[Finding]:
    """What is said of a model and of a form of it whose weights were changed."""
    source = vt.load(made / f"{name}.onnx")
    other = made / f"{name}_changed.tflite"
    tflite.write(source, made / f"{name}.tflite")
    model = tflite.read(made / f"{name}.tflite")
    for node in model.main:
        for tensor in node.inputs if change is not None else ():
            if tensor is not None and tensor.data is not None and node.op.kind == "CONV_2D":
                tensor.data = change(np.asarray(tensor.data))
    tflite.write(model, other)
    return answers_agree(source, made / f"{name}.tflite", other, DataOptions(path=made / "grey.npy"), 4,
                         other.name)


def test_equal_answers_are_said_to_be_equal(made: Path) -> None:
    [told] = answers(made, "pixels")
    assert (told.severity, told.headline) == (
        Severity.INFO, "as segmentation, 100.0 % mIoU with the float model's answers")


def test_answers_that_changed_are_a_warning(made: Path) -> None:
    [told] = answers(made, "pixels", lambda weights: -weights)
    assert told.severity is Severity.WARNING
    assert "below 90 %" in told.headline


def test_classes_are_not_judged_by_a_few_samples(made: Path) -> None:
    assert answers(made, "classes") == []


def test_python_evaluates_forms_in_memory_too(made: Path, tmp_path: Path) -> None:
    data = task_models.digits(tmp_path / "digits.npz", 40)
    found = vt.evaluate(made / "classes.onnx", vt.load(made / "classes.onnx"), data=data)
    alone = evaluate_files([made / "classes.onnx"], data, EvalOptions(state=tmp_path / "state.jsonl"))
    assert (found.command, found.truth, found.samples) == ("eval", "labels", 40)
    assert [stage.figures for stage in found.stages] == 2 * [alone.stages[0].figures]
    assert msgspec.json.encode(found)


def test_python_finds_what_the_command_finds(made: Path, tmp_path: Path) -> None:
    found = vt.run(made / "boxes.onnx", made / "photo.png", output=tmp_path / "drawn.png", score=0.85)
    assert [one["name"] for one in found.rows[0].found["objects"]] == ["cup"]
    assert (tmp_path / "drawn.png").is_file()
    with pytest.raises(VitrifyError, match="names is one text"):
        vt.run(made / "boxes.onnx", made / "photo.png", names="cup")
