"""Small questions and edits that several passes share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Graph, Node, Operator, Origin, Tensor
from vitrify.ir.graph import Array

RESHAPES = (ops.Reshape, ops.Squeeze, ops.ExpandDims)
"""Operators that give the same values under another shape."""


def constant(name: str, data: Array, origin: Origin = Origin()) -> Tensor:
    """Make a constant tensor; numpy's scalars become arrays, as the writer tells buffers by their address."""
    data = np.asarray(data)
    return Tensor(name, DType.of(data.dtype), data.shape, data=data, origin=origin)


def is_dense(tensor: Tensor) -> bool:
    """True for a constant whose data numpy can compute with: one element for each place, of a type numpy has."""
    return tensor.data is not None and tensor.dtype.numpy is not None and tensor.data.shape == tensor.shape


def scalar(tensor: Tensor | None) -> float | None:
    """The value of a float constant whose elements are all the same, None for anything else."""
    if tensor is None or tensor.data is None or not is_dense(tensor) or tensor.dtype is not DType.FLOAT32:
        return None
    if tensor.size == 0:
        return None
    if tensor.size > 1 and not (tensor.data == tensor.data.flat[0]).all():
        return None
    return float(tensor.data.flat[0])


def is_close(value: float | None, wanted: float) -> bool:
    """True when a constant is ``wanted`` up to float32 rounding."""
    return value is not None and abs(value - wanted) <= 1e-6 * max(1.0, abs(wanted))


def by_constant(node: Node | None, kind: type[Operator]) -> tuple[Tensor, Tensor] | None:
    """The (value, constant) of a two-input float node of ``kind`` with a constant on either side.

    None for other nodes, nodes with a fused activation, and for a constant that broadcasts the value to more elements.
    """
    if node is None or not isinstance(node.op, kind) or len(node.inputs) != 2 or node.output.dtype is not DType.FLOAT32:
        return None
    if getattr(node.op, "fused_activation_function", ops.Activation.NONE) is not ops.Activation.NONE:
        return None
    a, b = node.input(0), node.input(1)
    if a.is_constant and not b.is_constant:
        a, b = b, a
    if a.is_constant or not is_dense(b) or a.shape != node.output.shape:
        return None
    return a, b


def only_user(tensor: Tensor) -> Node | None:
    """The single node that reads ``tensor``, once; None when there are more, or the graph gives it out."""
    uses = tensor.uses
    return uses[0][0] if len(uses) == 1 and not tensor.is_output else None


def producer(tensor: Tensor | None, *kinds: type[Operator]) -> Node | None:
    """The node that makes ``tensor`` when it is one of ``kinds`` (any, when none are given)."""
    if tensor is None or tensor.producer is None:
        return None
    return tensor.producer if not kinds or isinstance(tensor.producer.op, kinds) else None


def can_bypass(node: Node) -> bool:
    """True when the readers of ``node``'s output may read its first input instead: a graph output keeps a maker."""
    source = node.input(0)
    return not node.output.is_output or (source.producer is not None and not source.is_output)


def bypass(graph: Graph, node: Node, source: Tensor | None = None) -> bool:
    """Remove a node whose output equals ``source`` (its first input); False when it must stay."""
    source = node.input(0) if source is None else source
    if node.output.is_output and (source.producer is None or source.is_output):
        return False
    graph.replace_uses(node.output, source)
    graph.remove(node)
    return True


def sweep(graph: Graph, *tensors: Tensor | None) -> None:
    """Remove the makers of tensors that nobody uses any more, and theirs in turn."""
    waiting = [t.producer for t in tensors if t is not None and t.producer is not None]
    while waiting:
        node = waiting.pop()
        if node.graph is not graph or any(t.is_used for t in node.outputs) or not is_pure(node):
            continue
        inputs = [t.producer for t in node.inputs if t is not None and t.producer is not None]
        graph.remove(node)
        waiting += inputs


IMPURE = (ops.Custom, ops.Opaque, ops.Call, ops.CallOnce, ops.If, ops.While, ops.VarHandle, ops.AssignVariable,
          ops.ReadVariable)
"""Operators that may do more than give their outputs."""


def is_pure(node: Node) -> bool:
    """True when equal inputs give equal outputs and nothing else happens."""
    return not isinstance(node.op, IMPURE) and not any(t is not None and t.is_variable for t in node.inputs)


def swap(graph: Graph, node: Node, op: Operator, inputs: list[Tensor | None], origin: Origin) -> Node:
    """Put an operator in a node's place and drop what only the old one used."""
    old = node.inputs
    new = graph.replace_node(node, op, inputs, origin=origin)
    sweep(graph, *old)
    return new


def with_activation(op: Any, activation: ops.Activation) -> Any:
    """The operator with another fused activation."""
    return replace(op, fused_activation_function=activation)


def float_data(tensor: Tensor | None) -> Array | None:
    """The data of a float32 constant, None for anything else."""
    return tensor.data if tensor is not None and tensor.dtype is DType.FLOAT32 and is_dense(tensor) else None


def per_channel(data: Array, channels: int) -> Array | None:
    """A constant as float32[channels] when it varies along the last axis only; None otherwise."""
    if data.size == 1:
        return np.full(channels, data.reshape(()), np.float32)
    if data.ndim and data.shape[-1] == channels and data.size == channels:
        return data.reshape(channels)
    return None
