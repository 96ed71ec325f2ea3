"""Which channels can be scaled together without changing what a model computes.

A channel may be multiplied by a positive number where it is made and divided by it where it is read. What makes and
reads channels with weights takes the number up in them; what is positive homogeneous (RELU, pooling, ADD, resizing)
hands it on, so that all channels that it connects carry one number. Everything else forbids it: its channels stay.

Source: Nagel et al., Data-Free Quantization Through Weight Equalization and Bias Correction, section 4.1; Xiao et al.,
SmoothQuant, section 4, for the same through a normalisation's own factors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from vitrify.ir import Graph, Node, Tensor
from vitrify.ops import (
    Abs,
    Add,
    AveragePool2D,
    BatchMatMul,
    Concatenation,
    Conv2D,
    DepthwiseConv2D,
    FullyConnected,
    LeakyRelu,
    MaxPool2D,
    Mean,
    Mul,
    Neg,
    Pad,
    Prelu,
    ReduceMax,
    Relu,
    Reshape,
    ResizeBilinear,
    ResizeNearestNeighbor,
    Slice,
    Split,
    StridedSlice,
    Sub,
    Sum,
    Transpose,
)
from vitrify.ops.attributes import Activation
from vitrify.quant.rules import is_real

Array = np.ndarray[Any, np.dtype[Any]]
HOMOGENEOUS = (Activation.NONE, Activation.RELU)


class Channels:
    """The channels (last axis) of all float tensors of a graph, and which of them carry one number.

    ``of`` gives the class of each channel of a tensor; ``free`` says of each class whether it may be scaled.
    """

    def __init__(self, graph: Graph) -> None:
        self._of: dict[Tensor, Array] = {}
        self._links: list[tuple[Array, Array]] = []
        self._blocked: list[Array] = []
        self._count = 0
        for tensor in graph.tensors():
            if is_real(tensor) and not tensor.is_constant and tensor.shape:
                size = tensor.shape[-1]
                self._of[tensor] = np.arange(self._count, self._count + size)
                self._count += size
        for tensor in (*graph.inputs, *graph.outputs):
            self.block(tensor)
        for node in graph:
            if not _RULES.get(type(node.op), _nothing)(node, self):
                for each in (*node.inputs, *node.outputs):
                    self.block(each)
        self._settle()

    def knows(self, *tensors: Tensor | None) -> bool:
        """True when all are float tensors computed at run time."""
        return all(t in self._of for t in tensors)

    def of(self, tensor: Tensor) -> Array:
        """The class of each channel."""
        return self._of[tensor]

    def tensors(self) -> list[Tensor]:
        """All tensors with a channel that may be scaled."""
        return [t for t, ids in self._of.items() if self.free[ids].any()]

    def tie(self, first: Array, second: Array) -> bool:
        """Let two rows of channels carry the same numbers."""
        if first.shape != second.shape:
            return False
        self._links.append((first, second))
        return True

    def block(self, tensor: Tensor | None) -> None:
        """Forbid the scaling of a tensor's channels."""
        if tensor in self._of:
            self._blocked.append(self._of[tensor])

    def _settle(self) -> None:
        """Join what is tied: every class gets its smallest member's number, until nothing changes."""
        root = np.arange(self._count)
        pairs = self._links
        one = np.concatenate([a for a, _ in pairs]) if pairs else np.zeros(0, int)
        two = np.concatenate([b for _, b in pairs]) if pairs else np.zeros(0, int)
        while True:
            least = np.minimum(root[one], root[two])
            if (root[one] == least).all() and (root[two] == least).all():
                break
            np.minimum.at(root, root[one], least)
            np.minimum.at(root, root[two], least)
            while (root[root] != root).any():
                root = root[root]
        self._of = {tensor: root[ids] for tensor, ids in self._of.items()}
        self.free = np.ones(self._count, bool)
        for ids in self._blocked:
            self.free[root[ids]] = False


Rule = Callable[[Node, Channels], bool]
_RULES: dict[type, Rule] = {}


def _nothing(node: Node, channels: Channels) -> bool:
    return False


def _rule(*kinds: type) -> Callable[[Rule], Rule]:
    """Register what an operator does with its channels' numbers; the function gives False where it forbids them."""
    def register(function: Rule) -> Rule:
        _RULES.update(dict.fromkeys(kinds, function))
        return function
    return register


def _passes_sign(node: Node) -> bool:
    return getattr(node.op, "fused_activation_function", Activation.NONE) in HOMOGENEOUS


def absorbs(node: Node) -> bool:
    """True for a node whose constants can take up the numbers of its input's and output's channels, apart."""
    x, y = node.input(0), node.output
    if isinstance(node.op, Conv2D | DepthwiseConv2D | FullyConnected):
        constants = [node.input(1), *([node.input(2)] if node.optional(2) is not None else [])]
        known = all(c.is_constant and is_real(c) for c in constants)
        dense = not isinstance(node.op, FullyConnected) or x.shape[-1] == node.input(1).shape[1]
        return known and dense
    if isinstance(node.op, Mul):
        return factor(node) is not None and x.shape[-1] == y.shape[-1]
    return False


def factor(node: Node) -> int | None:
    """The position of a constant with one value for each channel, None where there is none."""
    for index in (0, 1):
        tensor = node.input(index)
        if tensor.is_constant and is_real(tensor) and tensor.shape and \
                tensor.size == node.output.shape[-1] == tensor.shape[-1] > 1:
            return index
    return None


@_rule(Conv2D, DepthwiseConv2D, FullyConnected)
def _weighted(node: Node, channels: Channels) -> bool:
    if not _passes_sign(node):
        channels.block(node.output)
    return absorbs(node)


@_rule(Relu, LeakyRelu, Abs, Neg, MaxPool2D, AveragePool2D, ResizeBilinear, ResizeNearestNeighbor)
def _elementwise(node: Node, channels: Channels) -> bool:
    return _passes_sign(node) and _through(node, channels)


def _through(node: Node, channels: Channels) -> bool:
    x, y = node.input(0), node.output
    return channels.knows(x, y) and channels.tie(channels.of(x), channels.of(y))


@_rule(Prelu)
def _prelu(node: Node, channels: Channels) -> bool:
    return node.input(1).is_constant and _through(node, channels)


@_rule(Pad)
def _pad(node: Node, channels: Channels) -> bool:
    widths = node.input(1).data
    return widths is not None and not widths[-1].any() and _through(node, channels)


@_rule(Mean, Sum, ReduceMax)
def _reduce(node: Node, channels: Channels) -> bool:
    axes, x = node.input(1).data, node.input(0)
    if axes is None or any(int(a) % len(x.shape) == len(x.shape) - 1 for a in axes.reshape(-1)):
        return False
    return _through(node, channels)


@_rule(Reshape)
def _reshape(node: Node, channels: Channels) -> bool:
    x, y = node.input(0), node.output
    if not channels.knows(x, y):
        return False
    if x.shape[-1] == y.shape[-1]:
        return channels.tie(channels.of(x), channels.of(y))
    if y.shape[-1] % x.shape[-1] == 0:                  # rows of channels one after the other
        return channels.tie(np.tile(channels.of(x), y.shape[-1] // x.shape[-1]), channels.of(y))
    if x.shape[-1] % y.shape[-1] == 0:                  # each row cut: its parts carry the same numbers
        for part in channels.of(x).reshape(-1, y.shape[-1]):
            channels.tie(part, channels.of(y))
        return True
    return False


@_rule(Transpose)
def _transpose(node: Node, channels: Channels) -> bool:
    order = node.input(1).data
    return order is not None and int(order[-1]) == len(order) - 1 and _through(node, channels)


@_rule(Add, Sub)
def _sum(node: Node, channels: Channels) -> bool:
    if not _passes_sign(node):
        return False
    if factor(node) is not None:
        return channels.tie(channels.of(node.input(1 - (factor(node) or 0))), channels.of(node.output))
    both = channels.knows(*node.inputs, node.output)
    return both and all(t is not None and channels.tie(channels.of(t), channels.of(node.output)) for t in node.inputs)


@_rule(Mul)
def _product(node: Node, channels: Channels) -> bool:
    """A constant takes numbers up; of two computed inputs the larger hands its own on and the other has none."""
    if not _passes_sign(node) or absorbs(node):
        return _weighted(node, channels)
    one, two = node.input(0), node.input(1)
    if one.is_constant or two.is_constant:
        other, value = (two, one) if one.is_constant else (one, two)
        return value.size == 1 and channels.knows(other) and channels.tie(channels.of(other), channels.of(node.output))
    if not channels.knows(one, two, node.output):
        return False
    carrier, still = (one, two) if math.prod(one.shape) >= math.prod(two.shape) else (two, one)
    channels.block(still)
    return channels.tie(channels.of(carrier), channels.of(node.output))


@_rule(Concatenation)
def _join(node: Node, channels: Channels) -> bool:
    if not channels.knows(*node.inputs, node.output) or not _passes_sign(node):
        return False
    parts = [channels.of(t) for t in node.inputs if t is not None]
    rank = len(node.output.shape)
    assert isinstance(node.op, Concatenation)
    if node.op.axis % rank == rank - 1:
        return channels.tie(np.concatenate(parts), channels.of(node.output))
    return all(channels.tie(p, channels.of(node.output)) for p in parts)


@_rule(Split)
def _split(node: Node, channels: Channels) -> bool:
    axis, x = node.input(0).data, node.input(1)
    if axis is None or not channels.knows(x, *node.outputs):
        return False
    made = [channels.of(t) for t in node.outputs]
    if int(axis.reshape(-1)[0]) % len(x.shape) == len(x.shape) - 1:
        return channels.tie(channels.of(x), np.concatenate(made))
    return all(channels.tie(channels.of(x), ids) for ids in made)


@_rule(Slice, StridedSlice)
def _cut(node: Node, channels: Channels) -> bool:
    x, y = node.input(0), node.output
    masks = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    begin = node.input(1).data
    if not channels.knows(x, y) or begin is None or len(x.shape) != len(y.shape):
        return False
    if x.shape[-1] == y.shape[-1]:
        return channels.tie(channels.of(x), channels.of(y))
    if isinstance(node.op, StridedSlice) and any(getattr(node.op, m, 0) for m in masks):
        return False
    steps = node.input(3).data if isinstance(node.op, StridedSlice) else None
    step = 1 if steps is None else int(steps.reshape(-1)[-1])
    first = int(begin.reshape(-1)[-1])
    return first >= 0 and step > 0 and channels.tie(channels.of(x)[first::step][:y.shape[-1]], channels.of(y))


@_rule(BatchMatMul)
def _attention(node: Node, channels: Channels) -> bool:
    """Rows weighted and summed: the second factor's channels go through, the first has none to give."""
    x, y = node.input(0), node.input(1)
    assert isinstance(node.op, BatchMatMul)
    if node.op.adj_y or not channels.knows(x, y, node.output):
        return False
    channels.block(x)
    return channels.tie(channels.of(y), channels.of(node.output))
