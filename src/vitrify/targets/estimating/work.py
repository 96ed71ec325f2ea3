"""What a node has to do, counted from its shapes: products, values, bytes of weights, of values and of patches."""

from __future__ import annotations

import math
from typing import NamedTuple

from vitrify.ir import Node, Tensor
from vitrify.targets.cost import node_macs

SLOW = frozenset({"LEAKY_RELU", "PRELU", "SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION", "RESIZE_BILINEAR", "TRANSPOSE",
                  "DIV", "EXP", "RSQRT", "SQRT", "POW", "SQUARED_DIFFERENCE", "GELU", "ELU", "ARG_MAX", "ARG_MIN",
                  "GATHER", "GATHER_ND", "TOPK_V2", "SELECT", "SELECT_V2", "STRIDED_SLICE", "SLICE", "MEAN", "SUM",
                  "REDUCE_MAX", "REDUCE_MIN", "MIRROR_PAD", "BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND", "TILE"})
"""Operators whose kernels go value by value, with index arithmetic or several steps for each."""

FREE = frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS", "SHAPE"})
"""Operators that give another name to the same bytes."""


class Work(NamedTuple):
    """The amounts of one node. ``patches`` are the bytes that a convolution copies together before it multiplies."""

    macs: int
    values: int
    weight_bytes: int
    value_bytes: int
    patches: int


def work_of(node: Node) -> Work:
    """Count what ``node`` does."""
    reads = [t for t in node.inputs if t is not None]
    moving = [t for t in (*reads, *node.outputs) if not t.is_constant]
    values = max(sum(t.size for t in reads if not t.is_constant), sum(t.size for t in node.outputs))
    return Work(node_macs(node), values, sum(t.nbytes for t in reads if t.is_constant), sum(t.nbytes for t in moving),
                _patches(node))


def _patches(node: Node) -> int:
    """A convolution that sees one cell alone multiplies in place."""
    weight = node.optional(1)
    if node.op.kind != "CONV_2D" or weight is None or len(weight.shape) != 4 or not node.outputs:
        return 0
    taps = weight.shape[1] * weight.shape[2]
    strided = _cells(node.output) < _cells(node.inputs[0]) if node.inputs[0] is not None else False
    return _cells(node.output) * taps * weight.shape[3] if taps > 1 or strided else 0


def _cells(tensor: Tensor) -> int:
    return math.prod(tensor.shape[:-1])
