"""Running a graph through the operators' numpy references: slow, and depends on no runtime.

Quantized nodes compute with integers as LiteRT's reference kernels do, to the bit; all others with ``evaluate``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vitrify.ir import Graph, Node, Tensor
from vitrify.ir.graph import Array


def evaluate_graph(graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    """Return the graph's outputs for one array per graph input.

    Raises:
        ValueError: an array does not have its input's type, or a result not the type that its tensor says.
        UnsupportedError: an operator has no reference for these types.
    """
    values = evaluate_tensors(graph, inputs)
    return [values[t] if t in values else np.asarray(t.data) for t in graph.outputs]


def evaluate_tensors(graph: Graph, inputs: Sequence[Array]) -> dict[Tensor, Array]:
    """Return the value of every tensor that the graph takes or computes; raises as ``evaluate_graph`` does."""
    values: dict[Tensor, Array] = {}
    for tensor, array in zip(graph.inputs, inputs, strict=True):
        values[tensor] = _checked(tensor, np.asarray(array))
    for node in graph:
        arrays = [None if t is None else values.get(t, t.data) for t in node.inputs]
        for tensor, array in zip(node.outputs, evaluate_node(node, arrays), strict=True):
            values[tensor] = _checked(tensor, array)
    return values


def evaluate_node(node: Node, arrays: Sequence[Array | None]) -> list[Array]:
    """Return the outputs of one node for the values of its inputs."""
    from vitrify.ops.reference.integer import evaluate_integer, is_quantized  # above the operators, which it computes

    return evaluate_integer(node, arrays) if is_quantized(node) else node.op.evaluate(arrays)


def _checked(tensor: Tensor, array: Array) -> Array:
    if array.shape != tensor.shape or array.dtype != tensor.dtype.numpy:
        raise ValueError(f"'{tensor.name}' is {tensor.type}, its value is {array.dtype}{list(array.shape)}")
    return array
