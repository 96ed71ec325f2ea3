"""Models with one planted failure each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from vitrify import ops, tflite
from vitrify.ir import DType, Model, Quantization, Tensor

Plant = Callable[[Path, Path], "str | None"]
"""Writes a model with a failure in it; gives the name of the tensor that fails, where it is one."""


def with_unknown_operator(source: Path, target: Path, domain: str = "planted") -> None:
    """Put an operator that nobody knows behind the middle Conv."""
    model = onnx.load(source)
    node = _middle(model, "Conv")
    _insert(model, node.output[0], lambda name, made: [helper.make_node("Strange", [name], [made], "planted_node",
                                                                        domain=domain)])
    model.opset_import.append(helper.make_opsetid(domain, 1))
    onnx.save(model, target)


def with_extreme_constant(source: Path, target: Path, size: float = 1e4) -> str:
    """Add a constant behind an early Conv and take it away again: nothing in float, in 8 bits all is lost."""
    model = onnx.load(source)
    nodes = [node for node in model.graph.node if node.op_type == "Conv"]
    node = nodes[len(nodes) // 8]
    weight = next(one for one in model.graph.initializer if one.name == node.input[1])
    large = np.full((1, weight.dims[0], 1, 1), size, np.float32)
    model.graph.initializer.append(numpy_helper.from_array(large, "planted_constant"))

    def make(name: str, made: str) -> list[Any]:
        return [helper.make_node("Add", [name, "planted_constant"], [f"{made}_large"], "planted_add"),
                helper.make_node("Relu", [f"{made}_large"], [f"{made}_cut"], "planted_relu"),
                helper.make_node("Sub", [f"{made}_cut", "planted_constant"], [made], "planted_sub")]

    name = _insert(model, node.output[0], make)
    onnx.save(model, target)
    return name


def with_deadly_add(source: Path, target: Path) -> None:
    """Give an int8 ADD in the middle an output scale far below those of its inputs, of which LiteRT dies."""
    model = tflite.read(source)
    adds = [node for node in model.main.nodes_of(ops.Add) if node.output.dtype is DType.INT8]
    adds[len(adds) // 2].output.quantization = Quantization.per_tensor(1e-9, 0)
    tflite.write(model, target)


def with_wide_hard_swish(source: Path, target: Path) -> None:
    """Put a 16-bit HARD_SWISH between two operators, of which Vela dies."""
    model = tflite.read(source)
    node = _middle_tensor(model)
    tensor = node.output
    scale = tensor.quantization
    assert scale is not None
    wide = Quantization.per_tensor(float(scale.scale[0]) / 128, 0)
    users = tensor.uses
    graph = model.main
    parts = [Tensor(f"planted_{name}", dtype, tensor.shape, quantization=q) for name, dtype, q in (
        ("wide", DType.INT16, wide), ("swish", DType.INT16, wide), ("narrow", DType.INT8, scale))]
    before: Any = tensor
    last = node
    for op, made in zip((ops.Quantize(), ops.HardSwish(), ops.Quantize()), parts, strict=True):
        last = graph.add(op, [before], [made], name=made.name, after=last)
        before = made
    for user, index in users:
        graph.set_input(user, index, before)
    tflite.write(model, target)


def _middle_tensor(model: Model) -> Any:
    nodes = [node for node in model.main.nodes_of(ops.Conv2D) if node.output.dtype is DType.INT8]
    return nodes[len(nodes) // 2]


def _middle(model: Any, kind: str) -> Any:
    nodes = [node for node in model.graph.node if node.op_type == kind]
    return nodes[len(nodes) // 2]


def _insert(model: Any, name: str, make: Any) -> str:
    """Put nodes between a value and those that read it; return the name of the new value."""
    made = f"{name}_planted"
    nodes = list(model.graph.node)
    for node in nodes:
        node.input[:] = [made if given == name else given for given in node.input]
    for value in model.graph.output:
        if value.name == name:
            value.name = made
    index = next(n for n, node in enumerate(nodes) if name in node.output)
    nodes[index + 1:index + 1] = make(name, made)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return made
