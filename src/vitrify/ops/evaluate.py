"""Running a graph through the operators' numpy references: slow, and depends on no runtime.

Quantized nodes compute with integers as LiteRT's reference kernels do, to the bit; all others with ``evaluate``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from vitrify.ir import Graph, Node, Tensor
from vitrify.ir.graph import Array

Compute = Callable[[Node, Sequence[Array | None]], list[Array]]
"""Gives a node's outputs for the values of its inputs."""


def evaluate_graph(graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    """Return the graph's outputs for one array per graph input.

    Raises:
        ValueError: an array does not have its input's type, or a result not the type that its tensor says.
        UnsupportedError: an operator has no reference for these types.
    """
    return outputs_of(graph, evaluate_tensors(graph, inputs))


def evaluate_tensors(graph: Graph, inputs: Sequence[Array], compute: Compute | None = None) -> dict[Tensor, Array]:
    """Return the value of every tensor that the graph takes or computes; raises as ``evaluate_graph`` does.

    ``compute`` takes the place of ``evaluate_node`` where nodes need more than their inputs, such as variables.
    """
    values: dict[Tensor, Array] = {}
    for tensor, array in zip(graph.inputs, inputs, strict=True):
        values[tensor] = _checked(tensor, np.asarray(array))
    for node in graph:
        arrays = [None if t is None else values.get(t, t.data) for t in node.inputs]
        found = (compute or evaluate_node)(node, arrays)
        for tensor, array in zip(node.outputs, found, strict=True):
            values[tensor] = _checked(tensor, array)
    return values


def outputs_of(graph: Graph, values: dict[Tensor, Array]) -> list[Array]:
    """Return what the graph gives out, from the values of its tensors."""
    return [values[t] if t in values else np.asarray(t.data) for t in graph.outputs]


def evaluate_node(node: Node, arrays: Sequence[Array | None]) -> list[Array]:
    """Return the outputs of one node for the values of its inputs."""
    from vitrify.ops.reference.integer import evaluate_integer, is_quantized  # above the operators, which it computes

    return evaluate_integer(node, arrays) if is_quantized(node) else node.op.evaluate(arrays)


def _checked(tensor: Tensor, array: Array) -> Array:
    wanted = tensor.dtype.numpy
    if wanted is not None and (array.shape != tensor.shape or array.dtype != wanted):
        raise ValueError(f"'{tensor.name}' is {tensor.type}, its value is {array.dtype}{list(array.shape)}")
    return array
