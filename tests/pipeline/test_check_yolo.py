"""The five ways to bring a real YOLOv8n to an NPU that takes none of it, and what the printed command makes of each."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from old_forms import write_asymmetric, write_unsigned

from vitrify.cli.main import call
from vitrify.pipeline.checking.check import check_file
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.results import CheckResult

PEER = Path(__file__).resolve().parents[2] / ".cache" / "peers" / "ai_edge_quantizer" / "bin" / "python"
FORMS = {      # file -> diagnosis, MACs on the NPU as it is
    "dynamic": ("float.dynamic-range", 0.0), "mixed": ("float.island", 1.0), "float_ends": ("float.border", 1.0),
    "unsigned": ("quantized.uint8", 1.0), "asymmetric": ("quantized.asymmetric-weights", 1.0)}
ModelFile = Callable[[str], Path]


@pytest.fixture(scope="module")
def forms(model_file: ModelFile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the five files: three as another tool writes them, two made from one of its."""
    folder = tmp_path_factory.mktemp("forms")
    source = model_file("nudenet_yolov8n/320n.onnx")
    if not PEER.exists():
        pytest.skip("ai-edge-quantizer is not in .cache/peers")
    assert call(["convert", str(source), "-o", str(folder / "float.tflite"), "-q"]) == 0
    subprocess.run([PEER, Path(__file__).with_name("peer_forms.py"), folder / "float.tflite", folder], check=True,
                   capture_output=True)
    write_unsigned(folder / "static.tflite", folder / "unsigned.tflite")
    write_asymmetric(folder / "static.tflite", folder / "asymmetric.tflite")
    return folder


def check(path: Path, data: Path | None = None) -> CheckResult:
    return check_file(path, "imx93", DataOptions(path=data), ConvertOptions())


@pytest.mark.slow
@pytest.mark.models
@pytest.mark.parametrize("form", FORMS)
def test_the_printed_command_brings_it_to_the_npu(form: str, forms: Path, model_file: ModelFile, tmp_path: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    code, macs = FORMS[form]
    photos = model_file("ultralytics_photos/bus.jpg").parent
    monkeypatch.chdir(tmp_path)
    before = check(forms / f"{form}.tflite")
    row = next(row for row in before.diagnoses if row.code == code)
    assert (before.as_it_is or before.coverage).macs == pytest.approx(macs)
    words = shlex.split(row.command.replace("FOLDER", str(photos)))
    assert words[0] == "vitrify"
    assert call([*words[1:], "-q"]) in (0, 1)      # 1: written, its answers judged by two photos of nothing it knows
    after = check(tmp_path / words[words.index("-o") + 1])
    assert after.coverage.macs is not None
    assert after.coverage.macs >= 0.99
    assert after.ok
    assert after.coverage.nodes == 1.0
    assert not after.diagnoses
    assert any(judge.startswith("Vela ") for judge in after.judges)


@pytest.mark.slow
@pytest.mark.models
def test_a_source_model_is_judged_without_data(model_file: ModelFile) -> None:
    found = check(model_file("nudenet_yolov8n/320n.onnx"))
    assert found.ok
    assert found.as_it_is is not None
    assert found.as_it_is.macs == 0.0
    assert found.coverage.macs == 1.0
    assert found.form == "quantized on random values"
