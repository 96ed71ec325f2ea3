"""The front door in Python: what is public, that it is lazy, and that it gives what the source model gives."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import vitrify as vt
from vitrify.results import ErrorRow

ModelFile = Callable[[str], Path]


def test_all_is_what_is_public() -> None:
    assert sorted(vt.__all__) == dir(vt)
    assert all(getattr(vt, name) is not None for name in vt.__all__)
    assert vt.__all__ == sorted(vt.__all__)


def test_a_package_of_the_same_name_hides_no_function() -> None:
    code = ("import vitrify as vt, vitrify.verify.metrics; print(callable(vt.verify)); "
            "from vitrify.verify.gate import Gate; from vitrify import verify; print(verify.__module__)")
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout.split() == ["True", "vitrify.api"], ran.stderr


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="module 'vitrify' has no attribute 'frobnicate'"):
        _ = vt.frobnicate


def test_importing_is_quick_and_loads_nothing() -> None:
    code = ("import time; started = time.perf_counter(); import vitrify; spent = time.perf_counter() - started\n"
            "import sys; print(spent, [m for m in sys.modules if m in ('numpy', 'onnx', 'msgspec', 'rich')])")
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout for _ in range(3)]
    assert min(float(run.split()[0]) for run in runs) < 0.15
    assert all(run.split(maxsplit=1)[1] == "[]\n" for run in runs)


@pytest.mark.models
def test_the_whole_way_in_memory(model_file: ModelFile, tmp_path: Path) -> None:
    images = np.random.default_rng(5).random((6, 1, 1, 28, 28), np.float32)
    np.save(tmp_path / "images.npy", images)
    model = vt.load(model_file("digits_cnn/digits_cnn.onnx"))
    name = model.interface.inputs[0].name if model.interface else ""
    assert vt.convert(model, tmp_path / "float.tflite").output == str(tmp_path / "float.tflite")
    int8 = vt.quantize(model, data=tmp_path / "images.npy")
    wanted = vt.run(model_file("digits_cnn/digits_cnn.onnx"), {name: images[0]})
    for form, tolerance in ((model, 1e-4), (int8, 0.2)):
        given = vt.run(form, {name: images[0]})
        assert given.keys() == wanted.keys()
        for output in wanted:
            assert given[output].shape == wanted[output].shape
            assert np.abs(given[output] - wanted[output]).max() <= tolerance * np.abs(wanted[output]).max()
    checked = vt.check(int8, target="imx93")
    assert str(checked).startswith("imx93: 100.0% of the nodes on the NPU")
    compiled = vt.compile(int8, target="imx93", output=tmp_path / "digits_vela.tflite")
    assert compiled.placement.cpu == 0
    assert vt.inspect(tmp_path / "digits_vela.tflite").kind == "compiled"
    compared = vt.verify(model, int8, data=tmp_path / "images.npy", samples=2)
    assert compared.samples == 2
    assert isinstance(compared.stages[0].outputs[0], ErrorRow)


def test_a_float_model_is_not_checked(model_file: ModelFile) -> None:
    model = vt.load(model_file("digits_cnn/digits_cnn.onnx"))
    with pytest.raises(vt.VitrifyError, match="its operators compute in float"):
        vt.check(model, target="imx93")


def test_quantizing_without_data_is_refused(model_file: ModelFile) -> None:
    with pytest.raises(vt.VitrifyError, match="calibration needs samples, and none were given"):
        vt.quantize(model_file("digits_cnn/digits_cnn.onnx"))
