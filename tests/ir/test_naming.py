"""Names of tensors: one for each in files that come from other formats, untouched in files that are only passed on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from vitrify import importers, ops, tflite
from vitrify.data.samples import random_samples
from vitrify.ir import DType, Graph, Model, Tensor
from vitrify.ir.naming import make_names_unique
from vitrify.passes import optimize
from vitrify.quant import Recipe, quantize
from vitrify.runtimes.litert.calibrate import calibrate

ModelFile = Callable[[str], Path]


def graph_with_equal_names() -> Graph:
    """The input and the output are called x, and so are a constant and two tensors between; another constant is x_2."""
    graph = Graph()
    x = Tensor("x", DType.FLOAT32, (2,))
    graph.inputs = [x]
    first = graph.add(ops.Mul(), [x, Tensor("x", DType.FLOAT32, (2,), data=np.ones(2, np.float32))],
                      [Tensor("x", DType.FLOAT32, (2,))])
    second = graph.add(ops.Abs(), [first.output], [Tensor("x", DType.FLOAT32, (2,))])
    last = graph.add(ops.Mul(), [second.output, Tensor("x_2", DType.FLOAT32, (2,), data=np.ones(2, np.float32))],
                     [Tensor("x", DType.FLOAT32, (2,))])
    graph.set_outputs([last.output])
    return graph


def test_order_of_names() -> None:
    graph = graph_with_equal_names()
    make_names_unique(graph)
    mul, absolute, last = graph.nodes
    assert [t.name for t in (*graph.inputs, *graph.outputs)] == ["x", "x"]
    assert [mul.output.name, absolute.output.name] == ["x_2", "x_3"]
    assert [mul.input(1).name, last.input(1).name] == ["x_4", "x_2_2"]


def test_again_changes_nothing() -> None:
    graph = graph_with_equal_names()
    make_names_unique(graph)
    names = [t.name for t in graph.tensors()]
    make_names_unique(graph)
    assert [t.name for t in graph.tensors()] == names


def test_a_file_that_is_passed_on_keeps_its_names(tmp_path: Path) -> None:
    graph = graph_with_equal_names()
    tflite.write(Model(graphs=[graph]), tmp_path / "a.tflite")
    assert sorted(t.name for t in tflite.read(tmp_path / "a.tflite").main.tensors()) == ["x"] * 5 + ["x_2"]


@pytest.mark.models
def test_imported_and_quantized(model_file: ModelFile, tmp_path: Path) -> None:
    model = importers.load(model_file("ppocr_v4/ch_PP-OCRv4_det_infer.onnx"), shapes={"x": (1, 3, 64, 64)})
    optimize(model)
    assert model.interface is not None
    path = tmp_path / "float.tflite"
    tflite.write(model, path)
    statistics = calibrate(path, random_samples(model.interface, 1, 0), Recipe())
    for made in (model, quantize(model, statistics, Recipe()).model):
        names = [t.name for t in made.main.tensors()]
        assert len(names) == len(set(names)) > 300
        assert [t.name for t in made.main.inputs] == ["x"]
