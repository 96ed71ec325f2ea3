"""Small models to profile: ONNX files with what passes fold, fuse and split, and int8 files for Vela."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from vitrify import ops, tflite
from vitrify.ir import Graph, Model
from vitrify.targets.ethos_u.probes.sketch import Sketch

RANDOM = np.random.default_rng(0)


def _onnx(path: Path, nodes: Sequence[Any], inputs: dict[str, Sequence[int]], outputs: dict[str, Sequence[int]],
          constants: dict[str, Any]) -> Path:
    def value(name: str, shape: Sequence[int]) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    graph = helper.make_graph(
        list(nodes), "net", [value(*one) for one in inputs.items()], [value(*one) for one in outputs.items()],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def _weights(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.normal(0, 0.2, shape).astype(np.float32)


def classifier(path: Path) -> Path:
    """Convolutions with a normalization that is folded, an activation that is fused, and a head."""
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["c1"], "first", strides=[2, 2], pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["c1", "g", "o", "m", "v"], ["n1"], "norm"), node("Relu", ["n1"], ["r1"], "act"),
        node("Identity", ["r1"], ["i1"], "same"),
        node("Conv", ["i1", "w2", "b1"], ["c2"], "second", pads=[1, 1, 1, 1]), node("Add", ["c2", "r1"], ["a"], "sum"),
        node("GlobalAveragePool", ["a"], ["p"], "pool"), node("Flatten", ["p"], ["f"], "flat"),
        node("Gemm", ["f", "w3", "b3"], ["y"], "head", transB=1)]
    ones = np.ones(16, np.float32)
    return _onnx(path, nodes, {"x": [1, 3, 32, 32]}, {"y": [1, 10]}, {
        "w1": _weights(16, 3, 3, 3), "w2": _weights(16, 16, 3, 3), "w3": _weights(10, 16), "b1": _weights(16),
        "b3": _weights(10), "g": ones, "o": 0 * ones, "m": 0 * ones, "v": ones})


def shapes(path: Path) -> Path:
    """A chain of nodes that only compute a shape, and one that nothing reads."""
    node = helper.make_node
    nodes = [
        node("Shape", ["x"], ["s"], "shape"), node("Gather", ["s", "zero"], ["n"], "batch"),
        node("Unsqueeze", ["n", "axis"], ["u"], "up"), node("Concat", ["u", "rest"], ["t"], "join", axis=0),
        node("Reshape", ["x", "t"], ["f"], "reshape"), node("MatMul", ["f", "w"], ["y"], "product"),
        node("Exp", ["f"], ["dead"], "unread")]
    return _onnx(path, nodes, {"x": [2, 4, 8]}, {"y": [2, 6]}, {
        "zero": np.int64(0), "axis": np.array([0], np.int64), "rest": np.array([-1], np.int64), "w": _weights(32, 6)})


def attention(path: Path) -> Path:
    """A product of two values with a softmax between, which is computed head by head."""
    node = helper.make_node
    nodes = [
        node("MatMul", ["x", "wq"], ["q"], "queries"), node("MatMul", ["x", "wk"], ["k"], "keys"),
        node("Reshape", ["q", "heads"], ["q4"], "q heads"), node("Reshape", ["k", "heads"], ["k4"], "k heads"),
        node("Transpose", ["q4"], ["qt"], "q turn", perm=[0, 2, 1, 3]),
        node("Transpose", ["k4"], ["kt"], "k turn", perm=[0, 2, 3, 1]), node("MatMul", ["qt", "kt"], ["l"], "logits"),
        node("Softmax", ["l"], ["y"], "weights", axis=-1)]
    return _onnx(path, nodes, {"x": [1, 12, 16]}, {"y": [1, 2, 12, 12]}, {
        "wq": _weights(16, 16), "wk": _weights(16, 16), "heads": np.array([1, 12, 2, 8], np.int64)})


SOURCES = {"classifier": classifier, "shapes": shapes, "attention": attention}


def convolution(s: Sketch, x: Any, channels: int, size: int = 3, stride: int = 1) -> Any:
    op = ops.Conv2D(stride_h=stride, stride_w=stride, padding=ops.Padding.SAME)
    return s.add(op, [x, s.weights((channels, size, size, x.shape[-1])), s.bias(channels)]).output


def island(path: Path) -> Path:
    """Two stretches for the NPU with operators between that no Ethos-U takes."""
    s = Sketch(Graph("main"), "m")
    x = convolution(s, s.value((1, 16, 16, 8)), 16)
    x = s.add(ops.Transpose(), [x, s.constant((0, 3, 1, 2))]).output
    x = s.add(ops.Square(), [x]).output
    x = s.add(ops.Transpose(), [x, s.constant((0, 2, 3, 1))]).output
    return saved(s, convolution(s, x, 8), path)


def runnable_island(path: Path) -> Path:
    """Two convolutions for the NPU, and between them what only the CPU takes, in integers too."""
    s = Sketch(Graph("main"), "m")
    x = convolution(s, s.value((1, 16, 16, 8)), 16)
    x = s.add(ops.SpaceToDepth(block_size=2), [x]).output
    return saved(s, convolution(s, x, 8), path)


def plain(path: Path) -> Path:
    """Three convolutions, all of which an NPU takes."""
    s = Sketch(Graph("main"), "m")
    x = convolution(s, s.value((1, 32, 32, 3)), 16, stride=2)
    return saved(s, convolution(s, convolution(s, x, 32), 8, 1), path)


def saved(s: Sketch, output: Any, path: Path) -> Path:
    s.graph.set_outputs([output])
    for number, node in enumerate(s.graph):
        node.name = f"{node.op.kind.lower()}_{number}"
    tflite.write(Model([s.graph]), path)
    return path
