"""What LiteRT refuses or dies of is told in the user's names, and this process lives on."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import schema_models as made
from vitrify.core.errors import ModelError, UsageError
from vitrify.core.findings import Severity
from vitrify.runtimes.prepare import Limits, prepare

LEAST_SCALE = 2 * 0.1 / 2**20      # of an ADD's output beside inputs of 0.1. Source: kernels/add.cc, left shift 20.

GOOD: dict[str, made.Make] = {
    "add_just_legal": partial(made.add, output_scale=LEAST_SCALE * 1.01),
    "resize_plain": partial(made.resize, align_corners=False, half_pixel=False),
    "resize_corners": partial(made.resize, align_corners=True, half_pixel=False),
    "resize_half": partial(made.resize, align_corners=False, half_pixel=True),
    "logistic": partial(made.logistic, scale=1 / 256),
    "division_int8": partial(made.division, dtype="int8"),
    "division_int32": partial(made.division, dtype="int32"),
    "division_by_nothing": partial(made.division, dtype="int32", by_nothing=True),
    "rounding": partial(made.rounding, shape=(1, 4), scale=0.1),
}

BAD: dict[str, tuple[made.Make, str, str]] = {
    "add_abort": (partial(made.add, output_scale=1e-7), "process.died", "died of SIGABRT at ADD 'sum'"),
    "add_abort_deep": (partial(made.add, output_scale=1e-7, before=37), "process.died", "died of SIGABRT at ADD 'sum'"),
    "custom_segfault": (made.post_process, "process.died", "died of SIGSEGV at TFLite_Detection_PostProcess 'found0'"),
    "custom_unknown": (made.custom, "litert.custom-operator", "custom operator 'MadeUp' of node 'y'"),
    "resize_both": (partial(made.resize, align_corners=True, half_pixel=True), "litert.prepare",
                    "RESIZE_BILINEAR 'y': If half_pixel_centers is True, align_corners must be False"),
    "concat_scales": (made.concatenation, "litert.prepare", "cannot prepare CONCATENATION 'joined'"),
    "logistic_scale": (partial(made.logistic, scale=0.1), "litert.prepare", "cannot prepare LOGISTIC 'y'"),
    "no_kernel": (made.squared_difference, "litert.invoke", "cannot run SQUARED_DIFFERENCE 'y'"),
}


@pytest.mark.parametrize("case", GOOD)
def test_good_file_has_no_errors(case: str, tmp_path: Path) -> None:
    assert not [f for f in prepare(GOOD[case](tmp_path / "m.tflite")) if f.severity is Severity.ERROR]


@pytest.mark.parametrize("case", BAD)
def test_bad_file_is_refused_and_names_the_node(case: str, tmp_path: Path) -> None:
    make, code, text = BAD[case]
    findings = prepare(make(tmp_path / "m.tflite"))
    said = {finding.code: finding for finding in findings if finding.severity is Severity.ERROR}
    assert said
    if code in said:
        assert text in said[code].headline
        assert "m.tflite" in said[code].where
    else:      # an operator's own rule spoke of the same node, which says more than LiteRT's message
        kind, name, *_ = text.split("'")
        assert any(kind.split()[-1] in f.headline + f.where and f"'{name}'" in f.headline for f in findings)


def test_abort_of_add_names_tensor_and_least_scale(tmp_path: Path) -> None:
    findings = prepare(made.add(tmp_path / "m.tflite", 1e-7))
    text = "\n".join(map(str, findings))
    assert "'sum'" in text
    assert f"{LEAST_SCALE:.7e}"[:5] in text


@pytest.mark.parametrize("case", BAD)
def test_a_node_is_blamed_once_and_in_plain_numbers(case: str, tmp_path: Path) -> None:
    findings = [f for f in prepare(BAD[case][0](tmp_path / "m.tflite")) if f.severity is Severity.ERROR]
    assert len(findings) == 1, findings
    assert findings[0].help
    assert not re.search(r"scale \(-?\d+ != ", str(findings[0]))


def test_time_limit_is_a_finding(tmp_path: Path) -> None:
    findings = prepare(made.add(tmp_path / "m.tflite", 0.1), limits=Limits(seconds=0.001))
    assert [f.code for f in findings] == ["process.timeout"]


def test_file_that_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(np.random.default_rng(0).bytes(2000))
    with pytest.raises(ModelError):
        prepare(path)
    with pytest.raises(UsageError):
        prepare(tmp_path / "none.tflite")


@pytest.mark.models
@pytest.mark.parametrize("name", ["mltk_int8/keyword_spotting/keyword_spotting.tflite",
                                  "mltk_int8/visual_wake_words/visual_wake_words.tflite",
                                  "micro_wakeword_int8/alexa.tflite", "basic_pitch/nmp.tflite"])
def test_real_models_are_good(name: str, model_file) -> None:
    assert not [f for f in prepare(model_file(name)) if f.severity is Severity.ERROR]


@pytest.mark.parametrize("seed", range(6))
def test_damaged_bytes_end_in_a_finding_or_an_error_of_ours(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    path = made.add(tmp_path / "m.tflite", 0.1, before=3)
    damaged = bytearray(path.read_bytes())
    for place in rng.integers(8, len(damaged), 6):
        damaged[place] = rng.integers(0, 256)
    path.write_bytes(damaged)
    try:
        codes = {finding.code for finding in prepare(path, limits=Limits(seconds=30))}
    except ModelError as error:
        codes = {finding.code for finding in error.findings}
    assert "process.raised" not in codes
