"""Quantization parameters in words, and lines of code that do what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import schema_models as made
import vitrify as vt
from vitrify.ir import DType, Graph, Model, Quantization, Tensor
from vitrify.ops import Concatenation, FullyConnected, Logistic, Quantize
from vitrify.pipeline.inspecting.quantization import quantization_rows
from vitrify.results import QuantizationRow
from vitrify.tflite import write


def tensor(name: str, scale: float, zero: int, dtype: DType = DType.INT8, shape: tuple[int, ...] = (1, 4)) -> Tensor:
    return Tensor(name, dtype, shape, quantization=Quantization.per_tensor(scale, zero))


def told(tensor_: Tensor) -> QuantizationRow:
    graph = Graph()
    graph.inputs = [tensor_]
    return quantization_rows(Model([graph]))[0]


WORDS = {
    "unit": ((1 / 255, -128, DType.INT8), "usual and right for values in [0, 1]", "usual"),
    "relu6": ((6 / 255, -128, DType.INT8), "usual behind a RELU6", "usual"),
    "symmetric": ((0.1, 0, DType.INT8), "as many levels below 0 as above", "usual"),
    "negative": ((0.1, 127, DType.INT8), "no value is above 0", "usual"),
    "between": ((0.1, -64, DType.INT8), "75% of the levels are for values above it", "usual"),
    "bytes": ((1 / 255, 0, DType.UINT8), "q = pixel", "usual"),
    "cast": ((1 / 255, -128, DType.INT8), "200 would become -56", "usual"),
    "dead": ((1e-20, 0, DType.INT8), "dead: calibration saw nothing but 0", "dead"),
    "coarse": ((1e36, 127, DType.INT8), "-infinity is in its range", "coarse"),
    "wide": ((1 / 32768, 0, DType.INT16), "-32768..32767 stands for -1..", "usual")}


@pytest.mark.parametrize("case", WORDS)
def test_words(case: str) -> None:
    (scale, zero, dtype), words, verdict = WORDS[case]
    row = told(tensor("x", scale, zero, dtype))
    assert words in row.text
    assert row.verdict == verdict


def weights(data: np.ndarray, axis: int | None) -> QuantizationRow:
    graph = Graph()
    graph.inputs = [tensor("x", 0.1, 0, shape=(1, data.shape[1]))]
    scales = np.full(len(data), 0.1)
    quantization = Quantization.per_tensor(0.1) if axis is None else Quantization.per_axis(scales, axis)
    constant = Tensor("w", DType.INT8, data.shape, data=data.astype(np.int8), quantization=quantization)
    bias = Tensor("b", DType.INT32, (len(data),), data=np.zeros(len(data), np.int32))
    made = graph.add(FullyConnected(), [graph.inputs[0], constant, bias], name="fc")
    graph.set_outputs([made.output])
    return next(row for row in quantization_rows(Model([graph])) if row.tensor == "w")


RANDOM = np.random.default_rng(0)
CONSTANTS = {"usual": (np.clip(RANDOM.normal(0, 40, (8, 200)), -126, 126), 0, "usual"),
             "dead channel": (np.r_[np.zeros((1, 200)), RANDOM.normal(0, 40, (7, 200)).clip(-126, 126)], 0, "dead"),
             "dead": (np.zeros((8, 200)), None, "dead"),
             "saturated": (np.clip(RANDOM.normal(0, 150, (8, 200)), -127, 127), 0, "saturated")}


@pytest.mark.parametrize("case", CONSTANTS)
def test_constants(case: str) -> None:
    data, axis, verdict = CONSTANTS[case]
    assert weights(data, axis).verdict == verdict


@pytest.mark.parametrize(("top", "levels"), [(640, 1), (30, 9), (16, 16)], ids=str)
def test_scores_that_share_the_scale_of_boxes_are_squeezed(top: float, levels: int) -> None:
    graph = Graph()
    graph.inputs = [tensor("boxes", top / 255, -128), tensor("logits", 0.1, 0)]
    scores = tensor("scores", 1 / 256, -128)
    graph.add(Logistic(), [graph.inputs[1]], [scores], name="scores")
    moved = tensor("moved", top / 255, -128)
    graph.add(Quantize(), [scores], [moved], name="moved")
    joined = tensor("joined", top / 255, -128, shape=(1, 8))
    graph.add(Concatenation(axis=1), [graph.inputs[0], moved], [joined], name="joined")
    graph.set_outputs([joined])
    row = next(r for r in quantization_rows(Model([graph])) if r.verdict == "squeezed")
    assert row.tensor == "scores"
    assert f"keeps {levels} of its 256 levels" in row.text
    assert ("what it says is lost" in row.text) == (levels < 3)


@pytest.mark.parametrize("io", ["int8", "uint8"])
def test_the_lines_of_code_do_what_they_say(io: str, tmp_path: Path) -> None:
    """The same network with both types: the lines give the same classes, a plain cast others."""
    from vitrify.quant import Recipe

    graph = Graph()
    graph.inputs = [Tensor("x", DType.FLOAT32, (1, 16))]
    random = np.random.default_rng(3)
    kernel = random.standard_normal((4, 16)).astype(np.float32)
    graph.add(FullyConnected(), [graph.inputs[0], Tensor("w", DType.FLOAT32, (4, 16), data=kernel),
                                 Tensor("b", DType.FLOAT32, (4,), data=np.zeros(4, np.float32))], name="fc")
    graph.set_outputs([next(iter(graph)).output])
    samples = random.random((32, 16), np.float32)
    model = vt.quantize(Model([graph]), data=samples, recipe=Recipe(input_type=io, output_type=io))  # type: ignore[arg-type]
    write(model, tmp_path / "model.tflite")
    rows = {row.role: row for row in vt.inspect(tmp_path / "model.tflite").quantization if row.python}
    from vitrify import runtimes

    with runtimes.open(tmp_path / "model.tflite") as runtime:
        for x in samples:
            space = {"np": np, "x": x[None]}
            exec(rows["input"].python, space)
            (raw,) = runtime.invoke_raw([space["q"]])                                # type: ignore[attr-defined]
            space["q"] = raw
            exec(rows["output"].python, space)
            found = next(iter(vt_run(runtime, x).values()))
            assert np.allclose(space["x"], found, atol=1e-6)
    assert f"({io}_t)" in rows["input"].c


def vt_run(runtime: object, x: np.ndarray) -> dict[str, np.ndarray]:
    """The source's outputs."""
    (name,) = (binding.name for binding in runtime.interface.inputs)              # type: ignore[attr-defined]
    found: dict[str, np.ndarray] = runtime.run({name: x[None]})                   # type: ignore[attr-defined]
    return found


def test_a_file_of_another_tool_is_explained(tmp_path: Path) -> None:
    rows = vt.inspect(made.add(tmp_path / "add.tflite", 2e-7)).quantization
    assert [row.role for row in rows][:2] == ["input", "input"]
    assert all(row.text for row in rows)
