"""One tensor through all stages: where it is, what became of it, and what is said where it is not."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from vitrify import tflite
from vitrify.core.errors import UsageError
from vitrify.pipeline.convert import convert_file
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.pipeline.tracing.trace import trace_tensor
from vitrify.results import TraceResult

sys.path.append(str(Path(__file__).parents[1] / "verify"))
import planted


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], DataOptions]:
    folder = tmp_path_factory.mktemp("traced")
    source = planted.network(folder / "model.onnx")
    convert_file(source, folder / "float.tflite", ConvertOptions())
    return [source, folder / "float.tflite"], DataOptions(path=planted.pictures(folder / "pictures", 2))


def _trace(forms: tuple[list[Path], DataOptions], name: str, output: Path | None = None) -> TraceResult:
    return trace_tensor(forms[0], name, forms[1], ConvertOptions(), output=output)


def test_a_tensor_is_followed(forms: tuple[list[Path], DataOptions], tmp_path: Path) -> None:
    found = _trace(forms, "total", tmp_path / "total.png")
    first, second = found.stages
    assert (first.state, second.state, second.layout) == ("reference", "kept", "transposed by [0, 2, 3, 1]")
    assert second.error is not None
    assert (second.error.sqnr_db or 999) > 100
    assert sum(first.counts) == 2 * 8 * 16 * 16
    assert abs(np.array(first.counts) - second.counts).sum() <= 8
    assert first.minimum == pytest.approx(second.minimum, rel=1e-4)
    assert (tmp_path / "total.png").read_bytes()[:4] == b"\x89PNG"


def test_a_node_stands_for_what_it_makes(forms: tuple[list[Path], DataOptions]) -> None:
    assert _trace(forms, "node_of_total").tensor == "total"


def test_where_a_fused_tensor_went_is_told(forms: tuple[list[Path], DataOptions]) -> None:
    row = _trace(forms, "stem_conv").stages[1]
    assert (row.state, row.operator, row.candidate) == ("fused", "CONV_2D", "stem")
    assert "done inside CONV_2D" in row.where


def test_an_unknown_tensor_is_told_with_near_names(forms: tuple[list[Path], DataOptions]) -> None:
    with pytest.raises(UsageError) as caught:
        _trace(forms, "totl")
    assert "'total'" in caught.value.findings[0].help


def test_a_planted_error_shows_where_it_is(forms: tuple[list[Path], DataOptions], tmp_path: Path) -> None:
    model = tflite.read(forms[0][1])
    planted.FAULTS["transposed_output"][0](model.main)
    tflite.write(model, tmp_path / "broken.tflite")
    found = trace_tensor([forms[0][1], tmp_path / "broken.tflite"], "total", forms[1], ConvertOptions())
    row = found.stages[1]
    assert row.error is not None
    assert (row.error.sqnr_db or 0) < 10
    assert max(value for line in row.map for value in line) > 0.01


def test_a_folder_that_is_no_build_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        trace_tensor([tmp_path], "x", DataOptions(), ConvertOptions())
