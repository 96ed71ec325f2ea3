"""Applying a plan: tensors become int8, constants are rounded, QUANTIZE nodes stand where scales change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from vitrify.ir import DType, Graph, Node, Operator, Quantization, Tensor
from vitrify.ops import Quantize
from vitrify.quant.forms.wide import without_pot
from vitrify.quant.planning import Plan, Weights
from vitrify.quant.rules import makes_real, roles
from vitrify.quant.scales import covered, quantize_bias, quantize_weights
from vitrify.quant.weights.bias_correction import shift

Array = np.ndarray[Any, np.dtype[Any]]
PASS = "quantize"


def apply(graph: Graph, plan: Plan) -> None:
    """Change ``graph`` into the int8 graph that ``plan`` describes."""
    constants = _Constants()
    for node in [n for n in graph if makes_real(n)]:
        node.input(0).quantization = Quantization.per_tensor(1.0, 0)
        graph.replace_node(node, Quantize(), [node.input(0)], origin=node.origin)
    for (node, index), quantization in plan.constants.items():
        tensor = node.input(index)
        graph.set_input(node, index, constants.get(tensor, quantization,
                                                   _round_wide if node in plan.wide else _round_activation))
    for node, weights in plan.weights.items():
        _apply_weights(graph, node, weights, plan, constants)
    for tensor, quantization in plan.activations.items():
        dtype = DType.INT16 if tensor in plan.wide_inputs else _dtype(tensor.producer, plan)
        tensor.dtype, tensor.quantization = dtype, quantization
    _requantize(graph, plan)
    for node in graph:
        if node in plan.wide:
            node.op = without_pot(node.op)
        node.extras.pop("version", None)      # the operator version follows from the new types


class _Constants:
    """Constants already rounded, so that one with several readers is stored once for each scale."""

    def __init__(self) -> None:
        self._made: dict[tuple[Tensor, Quantization], Tensor] = {}

    def get(self, tensor: Tensor, quantization: Quantization, round_: Callable[[Array, Quantization], Array]) -> Tensor:
        made = self._made.get((tensor, quantization))
        if made is None:
            assert tensor.data is not None
            made = _constant(tensor, round_(tensor.data, quantization), quantization)
            self._made[tensor, quantization] = made
        return made


def _round_activation(data: Array, quantization: Quantization) -> Array:
    limits = covered(quantization)
    return quantization.quantize(np.clip(np.nan_to_num(np.asarray(data)), limits.low, limits.high), np.int8)


def _round_wide(data: Array, quantization: Quantization) -> Array:
    return quantization.quantize(np.nan_to_num(np.asarray(data)), np.int16)


def _dtype(node: Node | None, plan: Plan) -> DType:
    return DType.INT16 if node in plan.wide else DType.INT8


def _constant(source: Tensor, data: Array, quantization: Quantization) -> Tensor:
    return Tensor(source.name, DType.of(data.dtype), source.shape, data=data, quantization=quantization,
                  origin=source.origin.by(PASS))


def _apply_weights(graph: Graph, node: Node, weights: Weights, plan: Plan, constants: _Constants) -> None:
    source = node.input(weights.index)
    rounded = constants.get(source, weights.quantization, quantize_weights) if weights.levels is None else \
        _constant(source, weights.levels, weights.quantization)
    graph.set_input(node, weights.index, rounded)
    if weights.bias is None:
        return
    bias = node.input(weights.bias)
    assert bias.data is not None
    input_scale = float(plan.input_scale(node, weights.input).scale[0])
    assert source.data is not None
    assert rounded.data is not None
    exact = bias.data if weights.added is None else bias.data + weights.added
    if weights.means is not None:
        moved = shift(node.op, weights.quantization.dequantize(rounded.data) - source.data, weights.means)
        exact = exact - moved.astype(np.float32) if moved is not None else exact
    data, quantization = quantize_bias(exact, weights.quantization, input_scale,
                                       np.int64 if node in plan.wide else np.int32)
    graph.set_input(node, weights.bias, _constant(bias, data, quantization))


def _requantize(graph: Graph, plan: Plan) -> None:
    made: dict[tuple[Tensor, Quantization], Tensor] = {}
    for (node, index), quantization in plan.requantize.items():
        tensor = node.input(index)
        changed = made.get((tensor, quantization))
        if changed is None:
            changed = Tensor(f"{tensor.name}_requantized", _dtype(node, plan), tensor.shape, quantization=quantization,
                             origin=tensor.origin.by(PASS))
            place_after(graph, tensor, Quantize(), changed)
            made[tensor, quantization] = changed
        graph.set_input(node, index, changed)


def place_after(graph: Graph, tensor: Tensor, op: Operator, output: Tensor) -> Node:
    """Add a node that reads ``tensor``, right behind the one that makes it."""
    first = next(iter(graph), None)
    origin = tensor.origin.by(PASS)
    if tensor.producer is not None:
        return graph.add(op, [tensor], [output], name=output.name, origin=origin, after=tensor.producer)
    return graph.add(op, [tensor], [output], name=output.name, origin=origin, before=first)


def left_in_float(graph: Graph) -> list[Node]:
    """Return the nodes that still compute with floats."""
    return [n for n in graph if roles(n) is not None and any(t is not None and t.dtype.is_float
                                                             for t in (*n.inputs, *n.outputs))]
