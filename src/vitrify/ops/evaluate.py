"""Running a graph through the operators' numpy references: slow, and depends on no runtime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vitrify.ir import Graph, Tensor
from vitrify.ir.graph import Array


def evaluate_graph(graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    """Return the graph's outputs for one array per graph input.

    Raises:
        ValueError: an array does not have its input's type, or a result not the type that its tensor says.
        UnsupportedError: an operator has no reference for these types.
    """
    values: dict[Tensor, Array] = {}
    for tensor, array in zip(graph.inputs, inputs, strict=True):
        values[tensor] = _checked(tensor, np.asarray(array))
    for node in graph:
        arrays = [None if t is None else values.get(t, t.data) for t in node.inputs]
        for tensor, array in zip(node.outputs, node.op.evaluate(arrays), strict=True):
            values[tensor] = _checked(tensor, array)
    return [values[t] if t in values else np.asarray(t.data) for t in graph.outputs]


def _checked(tensor: Tensor, array: Array) -> Array:
    if array.shape != tensor.shape or array.dtype != tensor.dtype.numpy:
        raise ValueError(f"'{tensor.name}' is {tensor.type}, its value is {array.dtype}{list(array.shape)}")
    return array
