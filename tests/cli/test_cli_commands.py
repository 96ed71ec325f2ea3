"""Every command on small real models: exit status, the answer against its schema, the files that appear."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_runs import answer, run

from vitrify.results import (
    BuildResult,
    CheckResult,
    CompileResult,
    ConvertResult,
    InspectResult,
    QuantizeResult,
    VerifyResult,
)

pytestmark = pytest.mark.models
DIGITS = "digits_cnn/digits_cnn.onnx"
RANDOM = ("--random-calibration", "--samples", "4")

ModelFile = Callable[[str], Path]


@pytest.fixture(scope="module")
def digits(model_file: ModelFile) -> Path:
    return model_file(DIGITS)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("commands")


@pytest.fixture(scope="module")
def float_file(digits: Path, place: Path) -> tuple[Path, ConvertResult]:
    path = place / "digits.tflite"
    status, result = answer("convert", digits, "-o", path)
    assert status == 0
    assert isinstance(result, ConvertResult)
    return path, result


@pytest.fixture(scope="module")
def int8_file(digits: Path, place: Path) -> tuple[Path, QuantizeResult]:
    path = place / "digits_int8.tflite"
    status, result = answer("quantize", digits, *RANDOM, "-o", path, "--save-recipe", place / "recipe.toml")
    assert status == 0
    assert isinstance(result, QuantizeResult)
    return path, result


def test_convert(float_file: tuple[Path, ConvertResult], digits: Path) -> None:
    path, result = float_file
    assert result.output == str(path)
    assert path.stat().st_size == result.bytes
    assert result.transposes == 0
    assert result.float_operators == sum(result.operators.values()) > 5
    assert 0 < result.seconds < 60
    assert 10e6 < result.peak_bytes < 2e9
    assert result.ledger
    assert [row.shape for row in result.inputs] == [[1, 28, 28, 1]]


def test_convert_keeps_the_source_layout_when_asked(digits: Path, tmp_path: Path) -> None:
    status, result = answer("convert", digits, "--io-layout", "nchw", "-o", tmp_path / "nchw.tflite")
    assert status == 0
    assert isinstance(result, ConvertResult)
    assert [row.shape for row in result.inputs] == [[1, 1, 28, 28]]


def test_quantize(int8_file: tuple[Path, QuantizeResult], place: Path) -> None:
    path, result = int8_file
    assert result.output == str(path)
    assert result.float_operators == 0
    assert {row.dtype for row in (*result.inputs, *result.outputs)} == {"int8"}
    assert result.calibration is not None
    assert (result.calibration.samples, result.calibration.random) == (4, True)
    assert [f.code for f in result.findings] == ["quant.random"]
    assert 'input_type = "int8"' in (place / "recipe.toml").read_text()


def test_a_saved_recipe_gives_the_same_file(int8_file: tuple[Path, QuantizeResult], digits: Path, place: Path,
                                            tmp_path: Path) -> None:
    again = tmp_path / "again.tflite"
    status, _ = answer("quantize", digits, *RANDOM, "--recipe", place / "recipe.toml", "-o", again)
    assert status == 0
    assert again.read_bytes() == int8_file[0].read_bytes()


def test_quantize_to_uint8(digits: Path, tmp_path: Path) -> None:
    status, result = answer("quantize", digits, *RANDOM, "--io", "uint8", "--calibrator", "percentile",
                            "-o", tmp_path / "u.tflite")
    assert status == 0
    assert isinstance(result, QuantizeResult)
    assert {row.dtype for row in (*result.inputs, *result.outputs)} == {"uint8"}
    assert result.calibration is not None
    assert result.calibration.calibrator == "percentile"


KINDS: dict[str, tuple[str, str, int, int]] = {          # kind, format, has float operators, NPU graphs
    "digits": ("float32", "onnx", 1, 0),
    "float_file": ("float32", "tflite", 1, 0),
    "int8_file": ("int8", "tflite", 0, 0),
    "compiled_file": ("compiled", "tflite", 0, 1),
}


@pytest.fixture(scope="module")
def compiled_file(int8_file: tuple[Path, QuantizeResult], place: Path) -> tuple[Path, CompileResult]:
    path = place / "digits_vela.tflite"
    status, result = answer("compile", int8_file[0], "--target", "imx93", "-o", path)
    assert status == 0
    assert isinstance(result, CompileResult)
    return path, result


@pytest.mark.parametrize("name", KINDS)
def test_inspect(name: str, request: pytest.FixtureRequest) -> None:
    given: Any = request.getfixturevalue(name)
    path = given[0] if isinstance(given, tuple) else given
    kind, format, has_floats, graphs = KINDS[name]
    status, result = answer("inspect", path)
    assert status == 0
    assert isinstance(result, InspectResult)
    assert (result.kind, result.format, result.npu_graphs) == (kind, format, graphs)
    assert bool(result.float_operators) == bool(has_floats)
    assert result.inputs
    assert result.outputs
    if kind == "int8":
        assert all(row.scale is not None and row.zero_point is not None for row in (*result.inputs, *result.outputs))
        row = result.inputs[0]
        assert row.real_min == pytest.approx((row.scale or 0) * (-128 - (row.zero_point or 0)))


def test_inspect_a_folder(float_file: tuple[Path, ConvertResult], int8_file: tuple[Path, QuantizeResult],
                          tmp_path: Path) -> None:
    (tmp_path / "model_int8.tflite").write_bytes(float_file[0].read_bytes())       # names that lie
    (tmp_path / "model_float32.tflite").write_bytes(int8_file[0].read_bytes())
    (tmp_path / "broken.tflite").write_bytes(float_file[0].read_bytes()[:500])
    status, result = answer("inspect", tmp_path)
    assert status == 0
    assert isinstance(result, InspectResult)
    assert {row.file: (row.kind, row.suits_int8_npu) for row in result.files} == {
        "broken.tflite": ("unreadable", False), "model_float32.tflite": ("int8", True),
        "model_int8.tflite": ("float32", False)}
    assert "take model_float32.tflite" in result.summary


def test_check(int8_file: tuple[Path, QuantizeResult]) -> None:
    status, result = answer("check", int8_file[0], "--target", "imx93")
    assert status == 0
    assert isinstance(result, CheckResult)
    assert result.coverage.macs == 1.0
    assert {v.placement for v in result.verdicts} <= {"npu", "folded"}
    assert len(result.verdicts) == sum(int8_file[1].operators.values())
    assert result.estimate is not None
    assert (result.estimate.latency_ms or 0) > 0


def test_check_quantizes_a_float_model_with_data(digits: Path, tmp_path: Path) -> None:
    status, result = answer("check", digits, "--target", "imx93", *RANDOM, cwd=tmp_path)
    assert status == 0
    assert isinstance(result, CheckResult)
    assert "check.quantized" in {f.code for f in result.findings}
    assert result.ledger
    assert not list(tmp_path.iterdir())


def test_compile(compiled_file: tuple[Path, CompileResult]) -> None:
    path, result = compiled_file
    assert b"ethos-u" in path.read_bytes()
    assert result.placement.npu > 0
    assert result.estimate.source
    assert result.memory["arena_bytes"] > 0


def test_verify(digits: Path, float_file: tuple[Path, ConvertResult], int8_file: tuple[Path, QuantizeResult]) -> None:
    status, result = answer("verify", digits, float_file[0], int8_file[0], "--random-inputs", "--samples", "3")
    assert isinstance(result, VerifyResult)
    assert status == (0 if result.ok else 1)
    assert [stage.name for stage in result.stages] == [float_file[0].name, int8_file[0].name]
    assert result.stages[0].ok
    first = result.stages[0].outputs[0]
    assert first.equal or (first.sqnr_db or 0) > 90
    assert result.stages[1].tensors


def test_verify_finds_a_stranger(digits: Path, model_file: ModelFile) -> None:
    other = model_file("mltk_int8/image_classification/image_classification.tflite")
    status, result = answer("verify", digits, other, "--random-inputs")
    assert status == 2
    assert [f.code for f in result.findings] == ["verify.match"]


def test_build(digits: Path, tmp_path: Path) -> None:
    status, result = answer("build", digits, "--target", "imx93", *RANDOM, cwd=tmp_path)
    assert isinstance(result, BuildResult)
    assert result.run == "runs/digits_cnn-imx93"
    assert {"float", "int8", "compiled", "report", "statistics", "recipe"} <= set(result.artifacts)
    assert [s.name for s in result.stages] == [
        "import", "optimize", "write float", "prepare float", "verify float", "calibrate", "quantize", "write int8",
        "prepare int8", "verify int8", "compile", "verify compiled", "illustrate", "report"]
    assert all((tmp_path / file).is_file() for file in result.artifacts.values())
    assert result.coverage.macs == 1.0
    assert status == (0 if result.ok else 1)
    assert "answers mean nothing" in result.verdict or not result.ok


def test_build_of_an_integer_file_goes_on_from_there(model_file: ModelFile, tmp_path: Path) -> None:
    model = model_file("mltk_int8/image_classification/image_classification.tflite")
    status, result = answer("build", model, "--target", "imx93", "-o", tmp_path / "run")
    assert isinstance(result, BuildResult)
    assert status == 0
    assert [s.name for s in result.stages] == ["import", "prepare int8", "compile", "verify compiled", "report"]
    assert (tmp_path / "run" / "image_classification_int8.tflite").read_bytes() == model.read_bytes()
    assert result.coverage.macs == 1.0


def test_an_input_becomes_a_constant(model_file: ModelFile, tmp_path: Path) -> None:
    model = model_file("silero_vad/silero_vad_op18_ifless.onnx")
    status, result = answer("convert", model, "--shape", "input=1,576", "--shape", "state=2,1,128",
                            "--value", "sr=16000", "-o", tmp_path / "silero.tflite")
    assert isinstance(result, ConvertResult)
    assert status == 0
    assert {row.name for row in result.inputs} == {"input", "state"}
    assert "IF" not in result.operators


def test_text_for_a_person(int8_file: tuple[Path, QuantizeResult]) -> None:
    ran = run("check", int8_file[0], "--target", "imx93")
    assert ran.status == 0
    assert "no node is left to the CPU" in ran.out
    assert "not a measurement" in ran.out
    assert "prepare: LiteRT takes the file" in ran.err      # plain lines, as standard error is no terminal
    assert "\x1b" not in ran.out + ran.err


def test_quiet_says_nothing_on_standard_error(int8_file: tuple[Path, QuantizeResult]) -> None:
    assert run("inspect", int8_file[0], "--quiet").err == ""


@pytest.fixture(autouse=True, scope="module")
def source_stays(digits: Path) -> Iterator[None]:
    before = hashlib.sha256(digits.read_bytes()).hexdigest()
    yield
    assert hashlib.sha256(digits.read_bytes()).hexdigest() == before
