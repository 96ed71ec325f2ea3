"""Operators that take and give quantized tensors (QLinearConv and the like) against ONNX Runtime, in steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_makers import Array, by_litert, by_runtime, model, saved, sqnr_db
from test_onnx_quantized import U8, Q, executed, weights

from vitrify import tflite
from vitrify.importers import load
from vitrify.passes import optimize

S8 = Q(0.02, np.int8(-5))
OUT = Q(0.06, np.uint8(100))
ROWS = Q(np.linspace(0.002, 0.01, 8), np.int8(0))


@dataclass
class Case:
    """One operator. ``inputs`` in its own order: a (shape, Q) is quantized data, an (array, Q) stored weights, each
    giving three inputs; an array is one plain constant, a Q the two inputs of the result's scale, None one left out."""

    kind: str
    inputs: Sequence[Any]
    output: Q | None = OUT
    attributes: Mapping[str, Any] = field(default_factory=dict)
    domain: str = "com.microsoft"
    made: str = "int8"

    def feeds(self) -> dict[str, Array]:
        """Float inputs that lie on steps."""
        rng = np.random.default_rng(4)
        found = {}
        for i, given in enumerate(self.inputs):
            if isinstance(given, tuple) and isinstance(given[0], tuple):
                scale, zero = given[1].arrays()
                info = np.iinfo(zero.dtype)
                q = rng.integers(info.min, info.max, given[0], endpoint=True)
                found[f"x{i}"] = ((q - int(zero)) * scale).astype(np.float32)
        return found

    def proto(self) -> onnx.ModelProto:
        """The model: quantize, operate, dequantize."""
        nodes, constants, names = [], {}, []
        for i, given in enumerate(self.inputs):
            if given is None:
                names.append("")
            elif isinstance(given, Q):
                constants["sy"], constants["zy"] = given.arrays()
                names += ["sy", "zy"]
            elif isinstance(given, np.ndarray):
                constants[f"c{i}"] = given
                names.append(f"c{i}")
            else:
                constants[f"s{i}"], constants[f"z{i}"] = given[1].arrays()
                if isinstance(given[0], np.ndarray):
                    constants[f"q{i}"] = given[0]
                else:
                    nodes.append(helper.make_node("QuantizeLinear", [f"x{i}", f"s{i}", f"z{i}"], [f"q{i}"]))
                names += [f"q{i}", f"s{i}", f"z{i}"]
        result = "y" if self.output is None else "qy"
        nodes.append(helper.make_node(self.kind, names, [result], "the node", domain=self.domain, **self.attributes))
        if self.output is not None:
            nodes.append(helper.make_node("DequantizeLinear", ["qy", "sy", "zy"], ["y"]))
        proto = model(nodes, self.feeds(), constants, ["y"], 17)
        proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        return proto


X = ((1, 4, 6, 6), U8)
CASES = {
    "conv": Case("QLinearConv", [X, (weights(8, 4, 3, 3), ROWS), OUT, weights(8, low=-900, dtype=np.int32)], domain=""),
    "conv, no bias": Case("QLinearConv", [X, (weights(8, 4, 3, 3), Q(0.004, np.int8(0))), OUT], domain="",
                          attributes={"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    "conv, depthwise": Case("QLinearConv", [((1, 8, 6, 6), U8), (weights(8, 1, 3, 3), ROWS), OUT], domain="",
                            attributes={"group": 8}),
    "matmul": Case("QLinearMatMul", [((3, 16), U8), (weights(16, 8), Q(0.004, np.int8(0))), OUT], domain=""),
    "matmul, per column": Case("QLinearMatMul", [((3, 16), U8), (weights(16, 8), ROWS), OUT], domain=""),
    "matmul of two": Case("QLinearMatMul", [((2, 3, 16), U8), ((2, 16, 4), U8), Q(0.2)], Q(0.2), domain=""),
    "add": Case("QLinearAdd", [X, ((1, 4, 6, 6), Q(0.05, np.uint8(9))), OUT]),
    "mul": Case("QLinearMul", [X, ((1, 4, 1, 1), Q(0.05, np.uint8(9))), OUT]),
    "sigmoid": Case("QLinearSigmoid", [X, Q(1 / 256, np.uint8(0))], Q(1 / 256, np.uint8(0))),
    "leaky relu": Case("QLinearLeakyRelu", [X, OUT], attributes={"alpha": 0.2}),
    "softmax": Case("QLinearSoftmax", [((3, 16), Q(0.1)), Q(1 / 256, np.uint8(0))], Q(1 / 256, np.uint8(0)),
                    {"axis": -1, "opset": 13}),
    "concat": Case("QLinearConcat", [OUT, X, ((1, 2, 6, 6), OUT)], attributes={"axis": 1}),
    "average pool": Case("QLinearAveragePool", [X, Q(0.02, np.uint8(120))], Q(0.02, np.uint8(120)),
                         {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "global average pool": Case("QLinearGlobalAveragePool", [X, Q(0.01)], Q(0.01)),
    "gemm": Case("QGemm", [((3, 16), U8), (weights(8, 16), ROWS), weights(8, low=-900, dtype=np.int32), OUT],
                 attributes={"transB": 1, "alpha": 1.0}),
    "gemm, real result": Case("QGemm", [((3, 16), U8), (weights(8, 16), Q(0.004, np.int8(0))),
                                        weights(8, low=-900, dtype=np.int32)], None, {"transB": 1, "alpha": 1.0},
                              made="mixed"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_equals_onnx_runtime(case: Case, tmp_path: Path) -> None:
    """Off by a step at most, in one integer operator."""
    path = saved(case.proto(), tmp_path)
    wanted = by_runtime(path, case.feeds())["y"]
    found = load(path)
    optimize(found)
    given = executed(found, case.feeds())["y"]
    if case.output is None:
        assert sqnr_db(given, wanted) > 100
        return
    assert tflite.classify(found).value == case.made
    assert np.abs(given - wanted).max() <= 1.01 * float(np.asarray(case.output.scale))


def test_pools_steps_as_they_are(tmp_path: Path) -> None:
    """MaxPool and Transpose of uint8 between QLinear operators stay integers."""
    case = CASES["add"]
    proto = case.proto()
    last = proto.graph.node.pop()
    proto.graph.node.append(helper.make_node("MaxPool", ["qy"], ["qp"], "pool", kernel_shape=[2, 2]))
    proto.graph.node.append(helper.make_node("Transpose", ["qp"], ["qt"], "turn", perm=[0, 2, 3, 1]))
    proto.graph.node.append(helper.make_node("DequantizeLinear", ["qt", *last.input[1:]], ["y"]))
    path = saved(proto, tmp_path)
    found = load(path)
    optimize(found)
    assert tflite.classify(found).value == "int8"
    assert "MAX_POOL_2D" in [n.op.kind for n in found.main]
    wanted = by_runtime(path, case.feeds())["y"]
    assert np.abs(executed(found, case.feeds())["y"] - wanted).max() <= 1.01 * 0.06


def test_integers_at_the_ends(tmp_path: Path) -> None:
    """A model that takes and gives uint8 keeps these types and values."""
    nodes = [helper.make_node("QLinearAdd", ["a", "s", "z", "b", "s", "z", "s", "z"], ["y"], "sum",
                              domain="com.microsoft")]
    feeds = {n: np.random.default_rng(i).integers(0, 256, (2, 9)).astype(np.uint8) for i, n in enumerate("ab")}
    proto = model(nodes, feeds, {"s": np.array(0.1, np.float32), "z": np.array(128, np.uint8)}, ["y"], 17)
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    path = saved(proto, tmp_path)
    found = load(path)
    optimize(found)
    assert sorted(n.op.kind for n in found.main) == ["ADD", "QUANTIZE", "QUANTIZE", "QUANTIZE"]
    wanted = by_runtime(path, feeds)["y"]
    given = executed(found, feeds)["y"]
    assert given.dtype == wanted.dtype == np.uint8
    assert np.abs(given.astype(int) - wanted).max() <= 1


def test_dynamic_scales_stay_float(tmp_path: Path) -> None:
    """What quantize_dynamic writes becomes a float product, with a finding."""
    from onnxruntime.quantization import quantize_dynamic

    rng = np.random.default_rng(8)
    feeds = {"x": rng.normal(size=(3, 16)).astype(np.float32)}
    constants = {"w": rng.normal(size=(16, 8)).astype(np.float32), "b": rng.normal(size=8).astype(np.float32)}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"], "product"), helper.make_node("Add", ["m", "b"], ["y"])]
    source = saved(model(nodes, feeds, constants, ["y"]), tmp_path)
    path = tmp_path / "dynamic.onnx"
    quantize_dynamic(source, path)
    found = load(path)
    assert [f.code for f in found.extras["findings"]] == ["onnx.dynamic-scales"]
    optimize(found)
    assert [n.op.kind for n in found.main] == ["FULLY_CONNECTED"]
    assert sqnr_db(by_litert(found, feeds)["y"], by_runtime(path, feeds)["y"]) > 35     # the runtime rounds x
    assert sqnr_db(by_litert(found, feeds)["y"], by_runtime(source, feeds)["y"]) > 35   # the file rounds w


def test_reads_a_fixed_output_as_it_is(tmp_path: Path) -> None:
    """x * sigmoid(x): the product takes the sigmoid's own scale, so none is changed between them."""
    steps: dict[str, Array] = {
        "s": np.array(0.05, np.float32), "z": np.array(120, np.uint8), "sg": np.array(1 / 255, np.float32),
        "zg": np.array(0, np.uint8), "sy": np.array(0.03, np.float32), "zy": np.array(9, np.uint8)}
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             helper.make_node("QLinearSigmoid", ["q", "s", "z", "sg", "zg"], ["g"], domain="com.microsoft"),
             helper.make_node("QLinearMul", ["q", "s", "z", "g", "sg", "zg", "sy", "zy"], ["r"],
                              domain="com.microsoft"),
             helper.make_node("DequantizeLinear", ["r", "sy", "zy"], ["y"])]
    x = ((np.arange(256) - 120) * np.float32(0.05)).astype(np.float32).reshape(1, 256)
    proto = model(nodes, {"x": x}, steps, ["y"], 17)
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    path = saved(proto, tmp_path)
    found = load(path)
    optimize(found)
    assert [n.op.kind for n in found.main] == ["LOGISTIC", "MUL"]
    assert np.abs(executed(found, {"x": x})["y"] - by_runtime(path, {"x": x})["y"]).max() <= 1.01 * 0.03


def test_dynamic_lstm(tmp_path: Path) -> None:
    """An LSTM with weights of 8 bits computes in float with what they stand for."""
    from onnxruntime.quantization import quantize_dynamic

    rng = np.random.default_rng(8)
    feeds = {"x": rng.normal(size=(4, 1, 6)).astype(np.float32)}
    constants = {"w": rng.normal(size=(1, 20, 6)).astype(np.float32) * np.float32(0.5),
                 "r": rng.normal(size=(1, 20, 5)).astype(np.float32) * np.float32(0.5)}
    nodes = [helper.make_node("LSTM", ["x", "w", "r"], ["y", "h"], "cell", hidden_size=5)]
    source = saved(model(nodes, feeds, constants, ["y", "h"]), tmp_path)
    path = tmp_path / "dynamic.onnx"
    quantize_dynamic(source, path, op_types_to_quantize=["LSTM"])
    found = load(path)
    given, wanted = by_litert(found, feeds), by_runtime(path, feeds)
    for name in ("y", "h"):
        assert sqnr_db(given[name], wanted[name]) > 30      # the runtime rounds x and h
