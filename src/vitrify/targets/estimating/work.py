"""What a node has to do, counted from its shapes: products, values, bytes of weights, of values, of patches."""

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

RENAMING = frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS", "SHAPE"})
"""Operators that give another name to the same bytes."""

_STEP_KERNELS = 10
"""A step of a recurrent layer: eight products and their sums, four gates, the state."""


class Work(NamedTuple):
    """The amounts of one node.

    ``values``: of its inputs or its outputs, whichever are more. ``patches``: bytes that a convolution copies together
    before it multiplies. ``written``: output values. ``depth`` and ``channels``: the length of a dot product along the
    channels, and how many outputs share it. ``starts``: kernels, one but for layers that go step by step.
    """

    kind: str
    macs: int
    values: int
    weight_bytes: int
    value_bytes: int
    patches: int
    written: int
    depth: int
    channels: int
    starts: int

    @property
    def reuses_nothing(self) -> bool:
        """True where each weight, or each value, is multiplied but once: nothing is gained from keeping it."""
        return self.kind in ("DEPTHWISE_CONV_2D", "FULLY_CONNECTED") or self.kind.endswith(("LSTM", "RNN"))


def work_of(node: Node) -> Work:
    """Count what ``node`` does."""
    reads = [t for t in node.inputs if t is not None]
    moving = [t for t in (*reads, *node.outputs) if not t.is_constant]
    written = sum(t.size for t in node.outputs)
    depth, channels = _extents(node)
    return Work(node.op.kind, node_macs(node), max(sum(t.size for t in reads if not t.is_constant), written),
                sum(t.nbytes for t in reads if t.is_constant), sum(t.nbytes for t in moving), _patches(node), written,
                depth, channels, _starts(node))


def _patches(node: Node) -> int:
    """A convolution that sees one cell alone multiplies in place."""
    weight = node.optional(1)
    if node.op.kind != "CONV_2D" or weight is None or len(weight.shape) != 4 or not node.outputs:
        return 0
    taps, first = weight.shape[1] * weight.shape[2], node.inputs[0]
    strided = first is not None and _cells(node.output) < _cells(first)
    return _cells(node.output) * taps * weight.shape[3] if taps > 1 or strided else 0


def _cells(tensor: Tensor) -> int:
    return math.prod(tensor.shape[:-1])


def _extents(node: Node) -> tuple[int, int]:
    weight = node.optional(1)
    shape = () if weight is None else weight.shape
    channels = node.output.shape[-1] if node.outputs and node.output.shape else 1
    if node.op.kind == "DEPTHWISE_CONV_2D":
        return 1, channels
    return (shape[-1] if shape else 1), channels


def _starts(node: Node) -> int:
    if "SEQUENCE" not in node.op.kind or not node.outputs or len(node.output.shape) < 2:
        return 1
    return _STEP_KERNELS * max(node.output.shape[:2])
