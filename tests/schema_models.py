"""Tiny TFLite files made with LiteRT's own schema classes, so that nothing of ours stands between test and runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

BUILTIN = schema.BuiltinOperator
_TYPES = {"float32": 0, "int32": 2, "uint8": 3, "int16": 7, "int8": 9}


class Maker:
    """Collects tensors and operators of one graph, then writes the file."""

    def __init__(self) -> None:
        self.model = schema.ModelT()
        self.model.version = 3
        self.model.buffers = [schema.BufferT()]
        self.model.operatorCodes = []
        self.graph = schema.SubGraphT()
        self.graph.tensors, self.graph.operators = [], []
        self.model.subgraphs = [self.graph]

    def tensor(self, name: str, shape: Sequence[int], dtype: str = "float32", scale: float | None = None,
               zero_point: int = 0, data: np.ndarray[Any, Any] | None = None) -> int:
        tensor = schema.TensorT()
        tensor.name, tensor.shape, tensor.type, tensor.buffer = name, list(shape), _TYPES[dtype], 0
        if data is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)
            self.model.buffers.append(buffer)
            tensor.buffer = len(self.model.buffers) - 1
        if scale is not None:
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale = np.array([scale], np.float32)
            tensor.quantization.zeroPoint = np.array([zero_point], np.int64)
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def node(self, code: int, inputs: Sequence[int], outputs: Sequence[int], options: str = "", custom: str = "",
             version: int = 1, **attributes: Any) -> None:
        kind = schema.OperatorCodeT()
        kind.builtinCode, kind.deprecatedBuiltinCode, kind.version = code, min(code, 127), version
        kind.customCode = custom or None
        self.model.operatorCodes.append(kind)
        node = schema.OperatorT()
        node.opcodeIndex, node.inputs, node.outputs = len(self.model.operatorCodes) - 1, list(inputs), list(outputs)
        if options:
            node.builtinOptionsType = getattr(schema.BuiltinOptions, options)
            node.builtinOptions = getattr(schema, f"{options}T")()
            for name, value in attributes.items():
                setattr(node.builtinOptions, name, value)
        self.graph.operators.append(node)

    def write(self, path: Path, inputs: Sequence[int], outputs: Sequence[int]) -> Path:
        self.graph.inputs, self.graph.outputs = list(inputs), list(outputs)
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        path.write_bytes(bytes(builder.Output()))
        return path


def add(path: Path, output_scale: float, before: int = 0) -> Path:
    """ADD of two int8 tensors of scale 0.1, after ``before`` harmless nodes on its left input."""
    made = Maker()
    left = first = made.tensor("left", (1, 4, 4, 8), "int8", 0.1)
    for number in range(before):
        following = made.tensor(f"step{number}", (1, 4, 4, 8), "int8", 0.1)
        made.node(BUILTIN.RELU, [left], [following], version=2)
        left = following
    right = made.tensor("right", (1, 4, 4, 8), "int8", 0.1)
    total = made.tensor("sum", (1, 4, 4, 8), "int8", output_scale)
    last = made.tensor("last", (1, 4, 4, 8), "int8", output_scale)
    made.node(BUILTIN.ADD, [left, right], [total], "AddOptions", version=2)
    made.node(BUILTIN.RELU, [total], [last], version=2)
    return made.write(path, [first, right], [last])


def resize(path: Path, align_corners: bool, half_pixel: bool) -> Path:
    """RESIZE_BILINEAR from 8 to 16."""
    made = Maker()
    x, size = made.tensor("x", (1, 8, 8, 3)), made.tensor("size", (2,), "int32", data=np.array([16, 16], np.int32))
    y = made.tensor("y", (1, 16, 16, 3))
    made.node(BUILTIN.RESIZE_BILINEAR, [x, size], [y], "ResizeBilinearOptions", version=3, alignCorners=align_corners,
              halfPixelCenters=half_pixel)
    return made.write(path, [x], [y])


def post_process(path: Path) -> Path:
    """A detection post-processing operator without its options, which LiteRT reads through a null pointer."""
    made = Maker()
    boxes, scores = made.tensor("boxes", (1, 10, 4)), made.tensor("scores", (1, 10, 3))
    anchors = made.tensor("anchors", (10, 4), data=np.ones((10, 4), np.float32))
    outputs = [made.tensor(f"found{i}", shape) for i, shape in enumerate([(1, 10, 4), (1, 10), (1, 10), (1,)])]
    made.node(BUILTIN.CUSTOM, [boxes, scores, anchors], outputs, custom="TFLite_Detection_PostProcess")
    return made.write(path, [boxes, scores], outputs)


def custom(path: Path) -> Path:
    """A custom operator that nobody knows."""
    made = Maker()
    x, y = made.tensor("x", (1, 4)), made.tensor("y", (1, 4))
    made.node(BUILTIN.CUSTOM, [x], [y], custom="MadeUp")
    return made.write(path, [x], [y])


def concatenation(path: Path) -> Path:
    """CONCATENATION of int8 tensors with unequal scales."""
    made = Maker()
    a, b = made.tensor("a", (1, 4, 4, 8), "int8", 0.1), made.tensor("b", (1, 4, 4, 8), "int8", 0.2)
    joined = made.tensor("joined", (1, 4, 4, 16), "int8", 0.2)
    made.node(BUILTIN.CONCATENATION, [a, b], [joined], "ConcatenationOptions", version=2, axis=3)
    return made.write(path, [a, b], [joined])


def squared_difference(path: Path) -> Path:
    """SQUARED_DIFFERENCE in int16, which LiteRT prepares but cannot run."""
    made = Maker()
    a, b, y = (made.tensor(name, (1, 4, 4, 8), "int16", 0.1) for name in ("a", "b", "y"))
    made.node(BUILTIN.SQUARED_DIFFERENCE, [a, b], [y], "SquaredDifferenceOptions", version=2)
    return made.write(path, [a, b], [y])


def division(path: Path, dtype: str, by_nothing: bool = False) -> Path:
    """DIV by an input, or by the difference of an input and itself, which is zero whatever comes."""
    made = Maker()
    scale = None if dtype == "int32" else 0.1
    a, b, none, y = (made.tensor(name, (1, 8), dtype, scale) for name in ("a", "b", "none", "y"))
    if by_nothing:
        made.node(BUILTIN.SUB, [b, b], [none], "SubOptions")
    made.node(BUILTIN.DIV, [a, none if by_nothing else b], [y], "DivOptions", version=2 if dtype == "int8" else 1)
    return made.write(path, [a, b], [y])


def logistic(path: Path, scale: float) -> Path:
    """LOGISTIC in int8 with the given output scale; only 1/256 is allowed."""
    made = Maker()
    x, y = made.tensor("x", (1, 8), "int8", 0.1), made.tensor("y", (1, 8), "int8", scale, -128)
    made.node(BUILTIN.LOGISTIC, [x], [y], version=2)
    return made.write(path, [x], [y])


def rounding(path: Path, shape: Sequence[int], scale: float, zero_point: int = -128,
             inner: str = "q") -> Path:
    """A float model that rounds its input to int8 of one scale and gives it back."""
    made = Maker()
    x, y = made.tensor("x", shape), made.tensor("y", shape)
    q = made.tensor(inner, shape, "int8", scale, zero_point)
    made.node(BUILTIN.QUANTIZE, [x], [q], "QuantizeOptions")
    made.node(BUILTIN.DEQUANTIZE, [q], [y], "DequantizeOptions", version=2)
    return made.write(path, [x], [y])


def negation_twice(path: Path, shape: Sequence[int]) -> Path:
    """A float model that gives its input back unchanged: NEG of NEG."""
    made = Maker()
    x, inner, y = made.tensor("x", shape), made.tensor("q", shape), made.tensor("y", shape)
    made.node(BUILTIN.NEG, [x], [inner], "NegOptions")
    made.node(BUILTIN.NEG, [inner], [y], "NegOptions")
    return made.write(path, [x], [y])


Make = Callable[[Path], Path]
