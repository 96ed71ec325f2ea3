"""Faults planted into each form of a model are found in that form, at that tensor; clean forms raise no alarm."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from vitrify import tflite
from vitrify.pipeline.compiling.compile import compile_file
from vitrify.pipeline.convert import convert_file
from vitrify.pipeline.options import ConvertOptions, DataOptions, QuantizeOptions
from vitrify.pipeline.quantizing.quantize import quantize_file
from vitrify.pipeline.verifying.verify import verify_files
from vitrify.results import VerifyResult

sys.path.append(str(Path(__file__).parent))
import planted


class Forms(NamedTuple):
    """The clean files, and the data."""

    onnx: Path
    float: Path
    int8: Path
    data: DataOptions


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Forms:
    folder = tmp_path_factory.mktemp("planted")
    source = planted.network(folder / "model.onnx")
    data = DataOptions(path=planted.pictures(folder / "pictures"))
    convert_file(source, folder / "float.tflite", ConvertOptions())
    quantize_file(folder / "float.tflite", folder / "int8.tflite", data, QuantizeOptions(), ConvertOptions())
    return Forms(source, folder / "float.tflite", folder / "int8.tflite", data)


def _plant(source: Path, target: Path, name: str) -> str:
    model = tflite.read(source)
    tensor = planted.FAULTS[name][0](model.main)
    tflite.write(model, target)
    return tensor


def _first(found: VerifyResult) -> tuple[str, str]:
    row = next((row for row in found.tensors if row.verdict == "fault"),
               next((row for row in found.tensors if row.verdict == "excess"), None))
    return (row.stage, row.tensor) if row is not None else ("", "")


CASES = [(name, form) for name, (_, forms) in planted.FAULTS.items() for form in sorted(forms)]
QUICK = {("wrong_weight", "int8"), ("transposed_output", "float"), ("rounded_down", "int8")}


@pytest.mark.parametrize(("name", "form"), [
    pytest.param(name, form, id=f"{form}-{name}", marks=() if (name, form) in QUICK else pytest.mark.slow)
    for name, form in CASES])
def test_a_planted_fault_is_located(name: str, form: str, forms: Forms, tmp_path: Path) -> None:
    broken = tmp_path / f"{form}.tflite"
    tensor = _plant(getattr(forms, form), broken, name)
    models = [forms.onnx, broken] if form == "float" else [forms.float, broken]
    found = verify_files(models, forms.data, ConvertOptions())
    assert _first(found) == (broken.name, tensor), [
        (row.tensor, row.verdict, row.why, row.own, row.expected_db) for row in found.tensors]
    assert found.first_divergence is not None
    assert f"'{tensor}'" in found.first_divergence


def test_clean_forms_raise_no_alarm(forms: Forms) -> None:
    found = verify_files([forms.onnx, forms.float, forms.int8], forms.data, ConvertOptions())
    assert found.ok
    assert found.first_divergence is None
    assert {row.verdict for row in found.tensors} <= {"equal", "rounding"}
    assert {row.stage for row in found.tensors} == {"float.tflite", "int8.tflite"}


REFUSED = {"dropped_requantization", "wrong_shift"}
"""Vela refuses a RESHAPE between two scales."""
COMPILED = [name for name, (_, forms) in planted.FAULTS.items() if "int8" in forms and name not in REFUSED]


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=() if name == "swapped_operands" else pytest.mark.slow) for name in COMPILED])
def test_a_fault_of_a_compiler_is_located(name: str, forms: Forms, tmp_path: Path) -> None:
    tensor = _plant(forms.int8, tmp_path / "broken.tflite", name)
    compiled = tmp_path / "compiled.tflite"
    compile_file(tmp_path / "broken.tflite", "imx93", compiled)
    found = verify_files([forms.onnx, forms.int8, compiled], forms.data, ConvertOptions())
    stage, first = _first(found)
    row = next(row for row in found.tensors if (row.stage, row.tensor) == (stage, first))
    assert stage == "compiled.tflite"
    assert tensor in (row.tensor, *row.covers), [(row.tensor, row.verdict, row.why) for row in found.tensors]
    assert len(row.covers) <= 2
