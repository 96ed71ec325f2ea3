"""Which importer takes a file is decided by its content; TFLite files import as they are."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_makers import by_litert, model, saved

from vitrify import tflite
from vitrify.core.errors import ModelError, UsageError
from vitrify.importers import load

X = np.ones((1, 4), np.float32)


def relu() -> Any:
    return model([helper.make_node("Relu", ["x"], ["y"])], {"x": X}, {}, ["y"])


def as_tflite(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(bytes(tflite.to_bytes(load(saved(relu(), folder)))))
    return path


@pytest.mark.parametrize("name", ["model.tflite", "model.onnx", "model"])
def test_content_decides_not_the_name(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    data = as_tflite(folder, "made.tflite").read_bytes()
    path = tmp_path / name
    path.write_bytes(data)
    imported = load(path)
    assert [n.op.kind for n in imported.main] == ["RELU"]
    np.testing.assert_array_equal(by_litert(imported, {"x": X})["y"], X)


def test_tflite_keeps_the_source_interface(tmp_path: Path) -> None:
    interface = load(as_tflite(tmp_path, "a.tflite")).interface
    assert interface is not None
    assert (interface.source_format, interface.inputs[0].name) == ("onnx", "x")


@pytest.mark.models
def test_foreign_tflite_is_its_own_source(model_file: Callable[[str], Path]) -> None:
    path = model_file("mltk_int8/rock_paper_scissors/rock_paper_scissors.tflite")
    imported = load(path)
    assert imported.interface is not None
    assert imported.interface.source_format == "tflite"
    assert [(i.shape, i.dtype) for i in imported.interface.inputs] == [((1, 84, 84, 1), "float32")]
    assert imported.source == str(path)


TFLITE_CALLS: dict[str, tuple[dict[str, Any], str]] = {
    "another shape": ({"shapes": {"x": [2, 4]}}, r"fixed at \[1, 4\] in a TFLite file, not \[2, 4\]"),
    "unknown input": ({"shapes": {"z": [1, 4]}}, "there is no input 'z'"),
    "values": ({"values": {"x": 1}}, "cannot be replaced by constants"),
}


@pytest.mark.parametrize("name", TFLITE_CALLS)
def test_tflite_call_is_refused(name: str, tmp_path: Path) -> None:
    options, message = TFLITE_CALLS[name]
    with pytest.raises(UsageError, match=message):
        load(as_tflite(tmp_path, "a.tflite"), **options)


@pytest.mark.parametrize("shapes", [{"x": [1, 4]}, {"": [1, 4]}], ids=["named", "the only input"])
def test_tflite_takes_its_own_shape(shapes: dict[str, list[int]], tmp_path: Path) -> None:
    assert load(as_tflite(tmp_path, "a.tflite"), shapes).main.inputs[0].shape == (1, 4)


def test_truncated_tflite_is_refused(tmp_path: Path) -> None:
    path = as_tflite(tmp_path, "a.tflite")
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(ModelError):
        load(path)


def test_importing_is_lazy() -> None:
    code = "import sys, vitrify.importers; print({'onnx', 'google.protobuf', 'onnxruntime'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
