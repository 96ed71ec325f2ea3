"""Writing channels' numbers into the constants of a float graph; what it computes stays the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vitrify.ir import Graph, Node, Tensor
from vitrify.ops import Add, Conv2D, DepthwiseConv2D, FullyConnected, Mul, Sub
from vitrify.quant.equalizing.channels import absorbs, factor

Array = np.ndarray[Any, np.dtype[Any]]
PASS = "equalize"


def equalize(graph: Graph, scales: Mapping[str, Array], named: Mapping[Tensor, str]) -> int:
    """Scale the channels of the tensors of these names; returns the nodes changed."""
    return scale_channels(graph, {t: scales[name] for t, name in named.items() if name in scales})


def scale_channels(graph: Graph, scales: Mapping[Tensor, Array]) -> int:
    """Divide the channels of tensors by ``scales``, in the constants around them; returns the nodes changed."""
    changed = 0
    for node in graph:
        source = node.input(1 - (factor(node) or 0)) if isinstance(node.op, Mul) and factor(node) is not None else \
            node.inputs[0] if node.inputs else None
        taken = scales.get(source) if source is not None else None
        given = scales.get(node.outputs[0]) if node.outputs else None
        if absorbs(node) and (taken is not None or given is not None):
            _absorb(graph, node, taken, given)
            changed += 1
        elif given is not None and isinstance(node.op, Add | Sub) and factor(node) is not None:
            _replace(graph, node, factor(node) or 0, 1 / given)
            changed += 1
    return changed


def _absorb(graph: Graph, node: Node, taken: Array | None, given: Array | None) -> None:
    """Multiply weights by the numbers of the channels that they read, divide by those of the channels they make."""
    if isinstance(node.op, Mul):
        _replace(graph, node, factor(node) or 0, _or_one(taken) / _or_one(given))
        return
    weights = node.input(1)
    if isinstance(node.op, DepthwiseConv2D):
        repeats = weights.shape[-1] // node.input(0).shape[-1]
        many = 1.0 if taken is None else np.repeat(taken, repeats)
        _replace(graph, node, 1, np.asarray(many / _or_one(given)))
    else:
        assert isinstance(node.op, Conv2D | FullyConnected)
        outputs = 1.0 if given is None else (1 / given).reshape(-1, *[1] * (len(weights.shape) - 1))
        _replace(graph, node, 1, outputs * _read(weights, taken, node.input(0).shape[-1]))
    if given is not None and node.optional(2) is not None:
        _replace(graph, node, 2, 1 / given)


def _read(weights: Tensor, taken: Array | None, channels: int) -> Array:
    """The numbers of the inputs of each weight; weights of groups read a group's channels each."""
    if taken is None:
        return np.ones(1)
    share = weights.shape[-1]
    groups = channels // share
    rows = np.repeat(taken.reshape(groups, share), weights.shape[0] // groups, axis=0)
    return rows.reshape(weights.shape[0], *[1] * (len(weights.shape) - 2), share)


def _or_one(values: Array | None) -> Any:
    return 1.0 if values is None else values


def _replace(graph: Graph, node: Node, index: int, by: Array) -> None:
    tensor = node.input(index)
    assert tensor.data is not None
    data = (tensor.data.astype(np.float64) * np.broadcast_to(by, tensor.shape)).astype(np.float32)
    made = Tensor(tensor.name, tensor.dtype, tensor.shape, data=data, origin=tensor.origin.by(PASS))
    graph.set_input(node, index, made)
