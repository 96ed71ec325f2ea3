"""Whole comparisons in real runtimes: small files whose damage is known, and real models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import schema_models as made
from vitrify.core.errors import UsageError
from vitrify.core.findings import Severity
from vitrify.data.samples import random_samples
from vitrify.verify import Gate, Stage, Verification, compare

Array = np.ndarray[Any, Any]
SHAPE = (1, 6, 300)


def _detections(count: int = 3, score: float = 0.9) -> list[dict[str, Array]]:
    rng = np.random.default_rng(5)
    samples = []
    for _ in range(count):
        rows = rng.uniform(0, 640, SHAPE)
        rows[:, 4:] = score * rng.uniform(0, 1, (1, 2, SHAPE[2]))
        samples.append({"x": rows.astype(np.float32)})
    return samples


def _pair(folder: Path, scale: float) -> list[Stage]:
    return [Stage("float", made.negation_twice(folder / "float.tflite", SHAPE)),
            Stage("int8", made.rounding(folder / "int8.tflite", SHAPE, scale, inner="rounded"))]


def test_dead_scores_fail_although_the_whole_tensor_reads_well(tmp_path: Path) -> None:
    found = compare(_pair(tmp_path, 640 / 255), _detections())
    (row,) = found.stages[0].outputs
    assert row.sqnr_db is not None
    assert row.sqnr_db > 40
    assert not row.ok
    assert not found.ok
    assert {f.code for f in found.findings} == {"verify.dead_channels", "verify.group"}
    assert all("--outputs split" in f.help for f in found.findings)
    assert [g.name for g in row.groups] == ["channels 4-5 (in 0..1)", "channels 0-3 (up to 640)"]
    assert [g.ok for g in row.groups] == [False, True]
    assert row.groups[0].sqnr_db == pytest.approx(0.0, abs=0.01)
    assert found.first_divergence is not None
    assert found.first_divergence.startswith("int8: output 'y'")


def test_scores_where_nothing_is_found_are_no_failure(tmp_path: Path) -> None:
    found = compare(_pair(tmp_path, 640 / 255), _detections(score=0.01))
    assert found.ok, found.findings


@pytest.mark.parametrize(("reach", "good"), [(1e-5, True), (1e-3, True), (1.0, False)])
def test_channels_that_hardly_reach_anything_fail_nothing(reach: float, good: bool, tmp_path: Path) -> None:
    samples = _detections()
    for sample in samples:
        sample["x"][:, 4:] = reach * (2 * sample["x"][:, 4:] - 0.9)      # both signs: no scores
    assert compare(_pair(tmp_path, 640 / 255), samples).ok is good


def test_the_worst_judged_part_is_named(tmp_path: Path) -> None:
    low = compare(_pair(tmp_path, 640 / 255), _detections()).stages[0].lowest()
    assert low is not None
    assert (low.name, round(low.sqnr_db, 1)) == ("channels 4-5 (in 0..1) of 'y'", 0.0)
    excused = compare(_pair(tmp_path, 640 / 255), _detections(score=0.01)).stages[0].lowest()
    assert excused is not None
    assert excused.name == "'y'"


def test_a_fine_scale_passes_and_is_counted_in_steps(tmp_path: Path) -> None:
    samples = [{"x": s["x"] / 640} for s in _detections()]
    found = compare(_pair(tmp_path, 1 / 255), samples)
    assert found.ok, found.findings
    assert found.samples == 3
    assert found.first_divergence is None


def test_saturation_is_a_damage(tmp_path: Path) -> None:
    found = compare(_pair(tmp_path, 100 / 255), _detections())
    assert not found.ok
    assert next(f.code for f in found.findings) == "verify.output"


def test_float_forms_are_held_to_roundings(tmp_path: Path) -> None:
    same = [Stage(n, made.negation_twice(tmp_path / f"{n}.tflite", SHAPE)) for n in ("a", "b", "c")]
    found = compare(same, _detections())
    assert found.ok
    assert [s.name for s in found.stages] == ["b", "c"]
    for stage in found.stages:
        assert stage.reference == "a"
        assert stage.outputs[0].equal
        assert stage.outputs[0].sqnr_db is None
        assert [t.tensor for t in stage.tensors] == ["q"]
    msgspec.json.encode(found.stages)


def test_gate_is_data(tmp_path: Path) -> None:
    strict = Gate(output_db=80.0, group_db=80.0, tensor_db=80.0)
    reference, candidate = _pair(tmp_path, 1 / 255)
    samples = [{"x": s["x"] / 640} for s in _detections()]
    found = compare([reference, Stage("int8", candidate.path, gate=strict)], samples)
    assert not found.ok
    assert "at least 80 dB is asked" in found.findings[0].headline


def test_not_finite_values_fail(tmp_path: Path) -> None:
    stages = _pair(tmp_path, 1 / 255)
    samples = [{"x": np.full(SHAPE, np.nan, np.float32)}]
    found = compare(stages, samples)
    assert "verify.not_finite" in {f.code for f in found.findings}


def test_nothing_but_not_a_number_is_not_good(tmp_path: Path) -> None:
    reference, _ = _pair(tmp_path, 1 / 255)
    good, nothing = _detections(1)[0], {"x": np.full(SHAPE, np.nan, np.float32)}
    found = compare([reference, replace(reference, name="again")], [nothing, nothing])
    assert not found.ok
    assert [f.code for f in found.findings] == ["data.not_finite", "verify.not_finite"]
    assert "2 samples with NaN" in found.findings[0].why
    partly = compare([reference, replace(reference, name="again")], [good, nothing])
    assert partly.ok
    assert [(f.code, f.severity) for f in partly.findings] == [("data.not_finite", Severity.WARNING)]


WRONG: dict[str, tuple[Callable[[Path], list[Stage]], list[dict[str, Array]], str]] = {
    "one_model": (lambda p: _pair(p, 0.1)[:1], _detections(), "1 model given, at least 2"),
    "no_samples": (lambda p: _pair(p, 0.1), [], "no samples"),
    "other_shape": (lambda p: [_pair(p, 0.1)[0], Stage("z", made.rounding(p / "z.tflite", (1, 5), 0.1))],
                    _detections(), "cannot be matched"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_calls(case: str, tmp_path: Path) -> None:
    make, samples, text = WRONG[case]
    with pytest.raises(UsageError, match=text):
        compare(make(tmp_path), samples)


def test_progress_counts_samples(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    compare(_pair(tmp_path, 0.1), _detections(2), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 2), (2, 2)]


def _real(paths: list[Path], count: int = 2) -> Verification:
    from vitrify import runtimes

    with runtimes.open(paths[0]) as runtime:
        samples = random_samples(runtime.interface, count)
    return compare([Stage(path.name, path) for path in paths], samples)


@pytest.mark.models
def test_onnx_and_tflite_of_basic_pitch_are_equal(model_file: Callable[[str], Path]) -> None:
    rng = np.random.default_rng(0)
    tone = np.sin(np.arange(43844) * 2 * np.pi * 440 / 22050) * 0.3
    sound = (tone + 0.05 * rng.standard_normal(43844)).astype(np.float32).reshape(1, -1, 1)
    paths = [model_file("basic_pitch/nmp.onnx"), model_file("basic_pitch/nmp.tflite")]
    found = compare([Stage(p.name, p) for p in paths], [{"serving_default_input_2:0": sound}])
    assert found.ok, found.findings
    assert len(found.stages[0].outputs) == 3
    assert all(row.largest_error is not None and row.largest_error < 1e-5 for row in found.stages[0].outputs)
    assert len(found.stages[0].tensors) > 100


@pytest.mark.models
@pytest.mark.parametrize("name", ["keyword_spotting_alexa", "keyword_spotting_pacman_v3", "rock_paper_scissors"])
def test_int8_models_against_their_float_twins(name: str, model_file: Callable[[str], Path]) -> None:
    base = f"mltk_int8/{name}/{name}"
    found = _real([model_file(f"{base}.float32.tflite"), model_file(f"{base}.tflite")])
    assert found.ok, found.findings
    assert all(row.sqnr_db is not None and row.sqnr_db > 25 for row in found.stages[0].outputs)


@pytest.mark.models
def test_a_stranger_is_not_taken_for_a_twin(model_file: Callable[[str], Path]) -> None:
    found = _real([model_file("micro_wakeword_int8/alexa.tflite"), model_file("micro_wakeword_int8/hey_jarvis.tflite")])
    assert not found.stages[0].outputs[0].equal


CONVERTED: dict[str, tuple[str, dict[str, tuple[int, ...]], int]] = {
    "digits": ("digits_cnn/digits_cnn.onnx", {}, 3),
    "yolov8n": ("nudenet_yolov8n/320n.onnx", {"images": (1, 3, 320, 320)}, 100),
}


@pytest.mark.models
@pytest.mark.parametrize("case", CONVERTED)
def test_our_float_file_equals_its_onnx_source(case: str, model_file: Callable[[str], Path], tmp_path: Path) -> None:
    from vitrify import importers, runtimes
    from vitrify.passes import optimize
    from vitrify.tflite import write

    name, shapes, inner = CONVERTED[case]
    model = importers.load(model_file(name), shapes=shapes)
    optimize(model)
    write(model, tmp_path / "float.tflite")
    with runtimes.open(model_file(name), shapes=shapes) as runtime:
        samples = random_samples(runtime.interface, 1)
    stages = [Stage("onnx", model_file(name)), Stage("float", tmp_path / "float.tflite")]
    found = compare(stages, samples, shapes=shapes)
    assert found.ok, found.findings
    (stage,) = found.stages
    assert all(row.sqnr_db is not None and row.sqnr_db > 90 for row in stage.outputs)
    good = [row for row in stage.tensors if row.ok and not row.note.startswith("another")]
    assert len(good) >= inner
    assert any("transposed by [0, 2, 3, 1]" in row.note for row in good)
