"""ONNX models whose size can change, or not, for sweeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BLOCKS = ((16, 2, 1), (24, 2, 4), (24, 1, 4), (32, 2, 4), (32, 1, 4))
"""Channels, stride and expansion of five inverted residuals."""


class _Maker:
    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.random = np.random.default_rng(3)

    def constant(self, value: np.ndarray[Any, Any]) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def conv(self, x: str, channels: int, out: int, kernel: int = 1, stride: int = 1, group: int = 1) -> str:
        shape = (out, channels // group, kernel, kernel)
        weights = self.random.normal(0, (2 / np.prod(shape[1:])) ** 0.5, shape).astype(np.float32)
        return self.add("Conv", x, self.constant(weights), kernel_shape=[kernel, kernel], strides=[stride, stride],
                        pads=[kernel // 2] * 4, group=group)

    def save(self, path: Path, size: int | str, output: str, shape: list[int | str]) -> Path:
        dims = [1, 3, *([size, size] if isinstance(size, int) else [f"{size}_h", f"{size}_w"])]
        graph = helper.make_graph(
            self.nodes, "sweep", [helper.make_tensor_value_info("image", TensorProto.FLOAT, dims)],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        onnx.save(model, path)
        return path


def residuals(path: Path, size: int | str = 128) -> Path:
    """Five inverted residuals; with a number the file fixes its size, though the graph does not."""
    make = _Maker()
    x, channels = make.add("Relu", make.conv("image", 3, 16, 3, 2)), 16
    for out, stride, times in BLOCKS:
        wide = make.add("Relu", make.conv(x, channels, channels * times))
        deep = make.add("Relu", make.conv(wide, channels * times, channels * times, 3, stride, channels * times))
        flat = make.conv(deep, channels * times, out)
        x = make.add("Add", x, flat) if stride == 1 and out == channels else flat
        channels = out
    x = make.add("Flatten", make.add("GlobalAveragePool", x))
    return make.save(path, size, x, [1, channels])


def bound(path: Path) -> Path:
    """A graph that holds a number made for 64 pixels."""
    make = _Maker()
    x = make.conv("image", 3, 8, 3, 2)
    x = make.add("Reshape", x, make.constant(np.array([1, 8, 1024], np.int64)))
    return make.save(path, 64, x, [1, 8, 1024])


def sound(path: Path) -> Path:
    """A model without a picture."""
    graph = helper.make_graph([helper.make_node("Relu", ["signal"], ["y"])], "sound",
                              [helper.make_tensor_value_info("signal", TensorProto.FLOAT, [1, 400])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 400])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path
