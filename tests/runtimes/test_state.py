"""Layers that keep a state between runs: every run here is independent, as in the source model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from vitrify import tflite
from vitrify.importers import load
from vitrify.passes import optimize
from vitrify.pipeline.steps import state_findings
from vitrify.quant import Recipe
from vitrify.runtimes.litert import LiteRT
from vitrify.runtimes.onnxruntime import OnnxRuntime

Array = np.ndarray[Any, np.dtype[Any]]
RNG = np.random.default_rng(2)
SAMPLES = [RNG.standard_normal((6, 1, 4)).astype(np.float32) for _ in range(3)]


def source(folder: Path, kind: str) -> Path:
    rows = {"LSTM": 4, "RNN": 1}[kind] * 3
    weights = {"w": (1, rows, 4), "r": (1, rows, 3), "b": (1, 2 * rows)}
    node = helper.make_node(kind, ["x", "w", "r", "b"], ["y"], "the layer", hidden_size=3)
    graph = helper.make_graph(
        [node], "tiny", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [6, 1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [6, 1, 1, 3])],
        [numpy_helper.from_array(RNG.uniform(-1, 1, s).astype(np.float32), n) for n, s in weights.items()])
    path = folder / "source.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.mark.parametrize("kind", ["LSTM", "RNN"])
def test_runs_are_independent(kind: str, tmp_path: Path) -> None:
    path, file = source(tmp_path, kind), tmp_path / "float.tflite"
    model = load(path)
    optimize(model)
    tflite.write(model, file)
    with LiteRT(file) as runtime, LiteRT(file, keep_state=True) as streaming, OnnxRuntime(path) as reference:
        for number, x in enumerate([*SAMPLES, *SAMPLES]):
            wanted = reference.run({"x": x})["y"]
            np.testing.assert_allclose(runtime.run({"x": x})["y"], wanted, rtol=0, atol=1e-6)
            kept = streaming.run({"x": x})["y"]
            assert np.allclose(kept, wanted, rtol=0, atol=1e-6) == (number == 0)


def test_layers_with_state_are_told(tmp_path: Path) -> None:
    (told,) = state_findings(load(source(tmp_path, "LSTM")))
    assert told.code == "convert.state"
    assert told.headline == "1 layer with a state that stays from one run to the next"
    assert "'the layer'" in told.where


def test_samples_of_a_calibration_are_independent(tmp_path: Path) -> None:
    from vitrify.runtimes.litert.calibrate import _Observed

    file = tmp_path / "float.tflite"
    model = load(source(tmp_path, "LSTM"))
    optimize(model)
    tflite.write(model, file)
    read = tflite.read(file)
    from vitrify.quant.calibration.observe import watches

    assert read.interface is not None
    watched = [w for w in watches(read.main, Recipe()) if w.tensor.producer is not None]
    run = _Observed(read, watched, read.interface, str(file))
    first = [np.array(a) for a in run.arrays({"x": SAMPLES[0]})]
    run.arrays({"x": SAMPLES[1]})
    for before, after in zip(first, run.arrays({"x": SAMPLES[0]}), strict=True):
        np.testing.assert_array_equal(before, after)
