"""What a graph says about the signs of its values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Node, Tensor
from vitrify.passes.graphs import is_dense, producer

DEPTH = 32
"""How many nodes back a proof may reach."""

MOVES = (ops.Reshape, ops.Squeeze, ops.ExpandDims, ops.Transpose, ops.Slice, ops.StridedSlice, ops.Pad, ops.MirrorPad,
         ops.MaxPool2D, ops.AveragePool2D, ops.ReduceMax, ops.ReduceMin, ops.Mean, ops.Sum, ops.Split, ops.SplitV)
"""Operators whose results lie within what their data inputs can be, up to a positive factor, or are 0."""

POSITIVE = (ops.Abs, ops.Square, ops.Sqrt, ops.Rsqrt, ops.Exp, ops.Relu, ops.Relu6, ops.Relu0To1, ops.Logistic,
            ops.Softmax, ops.SquaredDifference)
RELUS = (ops.Activation.RELU, ops.Activation.RELU6)


def is_non_negative(tensor: Tensor, depth: int = DEPTH) -> bool:
    """True when the graph proves that no value of a float tensor is below 0 (NaN aside)."""
    if tensor.data is not None:
        return is_dense(tensor) and tensor.dtype is DType.FLOAT32 and bool((tensor.data >= 0).all())
    node = tensor.producer
    if node is None or depth == 0:
        return False
    if isinstance(node.op, POSITIVE) or getattr(node.op, "fused_activation_function", None) in RELUS:
        return True
    if isinstance(node.op, MOVES):
        return is_non_negative(node.input(1 if isinstance(node.op, ops.Split) else 0), depth - 1)
    if isinstance(node.op, ops.Sub):
        return _is_above_the_least(node)
    quantifier = _QUANTIFIERS.get(type(node.op))
    if isinstance(node.op, ops.Mul) and node.inputs[0] is node.inputs[1]:
        return True
    return quantifier is not None and quantifier(is_non_negative(t, depth - 1) for t in node.inputs if t is not None)


_QUANTIFIERS: dict[type, Callable[..., bool]] = {ops.Add: all, ops.Mul: all, ops.Div: all, ops.Minimum: all,
                                                 ops.Concatenation: all, ops.Maximum: any}


def _is_above_the_least(node: Node) -> bool:
    """True for ``x - min(x)`` and ``max(x) - x``."""
    value, other = node.input(0), node.input(1)
    return _extreme_of(other, ops.ReduceMin) is value or _extreme_of(value, ops.ReduceMax) is other


def _extreme_of(tensor: Tensor, kind: type[ops.ReduceMin] | type[ops.ReduceMax]) -> Tensor | None:
    """The tensor whose extreme over all elements, or over kept dimensions, ``tensor`` holds."""
    node = producer(tensor)
    while node is not None and isinstance(node.op, (ops.Reshape, ops.Squeeze, ops.ExpandDims)) and tensor.size == 1:
        node = producer(node.input(0))
    if node is None or not isinstance(node.op, kind):
        return None
    return node.input(0) if node.op.keep_dims or node.output.size == 1 else None


def greatest_of(tensor: Tensor) -> Tensor | None:
    """The tensor whose greatest element ``tensor`` holds (in all, or along kept axes); None when it is not one."""
    return _extreme_of(tensor, ops.ReduceMax)


def is_all_zero(tensor: Tensor) -> bool:
    """True for a constant of zeros."""
    return is_dense(tensor) and tensor.data is not None and not np.any(tensor.data)
