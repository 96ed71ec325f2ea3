"""Clips that are activations, and activations that the node before can do."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Exactness, Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import by_constant, constant, only_user, producer, scalar, swap, with_activation

Range = tuple[float | None, float | None]
FUSED: dict[type[ops.Operator], ops.Activation] = {
    ops.Relu: ops.Activation.RELU,
    ops.Relu6: ops.Activation.RELU6,
    ops.ReluN1To1: ops.Activation.RELU_N1_TO_1,
}
CLIPS: dict[type[ops.Operator], Range] = {
    ops.Relu: (0.0, None),
    ops.Relu6: (0.0, 6.0),
    ops.ReluN1To1: (-1.0, 1.0),
    ops.Relu0To1: (0.0, 1.0),
}
"""The bounds of the activations that clip."""
HOSTS = (ops.Conv2D, ops.DepthwiseConv2D, ops.TransposeConv, ops.FullyConnected, ops.Add, ops.Sub, ops.Mul,
         ops.AveragePool2D, ops.MaxPool2D)
"""Operators whose kernels apply a fused activation for float32 and int8."""


def clip_bounds(node: Node | None) -> tuple[Tensor, float | None, float | None] | None:
    """The (value, lower, upper) of a node that clips by constants; a missing bound is None. None for other nodes."""
    if node is None or node.output.dtype is not DType.FLOAT32:
        return None
    if type(node.op) in CLIPS:
        return node.input(0), *CLIPS[type(node.op)]
    for kind in (ops.Maximum, ops.Minimum):
        pair = by_constant(node, kind)
        bound = scalar(pair[1]) if pair is not None else None
        if pair is not None and bound is not None:
            return (pair[0], bound, None) if kind is ops.Maximum else (pair[0], None, bound)
    return None


def clip_range(node: Node | None) -> tuple[Tensor, float | None, float | None] | None:
    """Like ``clip_bounds``, for a clip written as one node or as two after each other."""
    outer = clip_bounds(node)
    inner = clip_bounds(outer[0].producer) if outer is not None else None
    if outer is None or inner is None or None not in outer or None not in inner:
        return outer
    if (outer[1] is None) == (inner[1] is None):
        return outer
    low = outer[1] if outer[1] is not None else inner[1]
    high = outer[2] if outer[2] is not None else inner[2]
    return (inner[0], low, high) if low is not None and high is not None and low <= high else outer


class ClipToRelu(Pass):
    """Write a clip by constants as the activation that it is.

    Before:  %1 = MAXIMUM(%x, 0);  %2 = MINIMUM(%1, 6)
    After:   %2 = RELU6(%x)
    """

    name = "clip-to-relu"
    kinds = (ops.Maximum, ops.Minimum, ops.Relu)

    NAMED: ClassVar[dict[Range, type[ops.Operator]]] = {bounds: kind for kind, bounds in CLIPS.items()
                                                        if kind is not ops.Relu0To1}

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace the outer node; the inner goes when nobody else reads it."""
        found = clip_range(node)
        kind = self.NAMED.get(found[1:]) if found is not None else None
        if found is None or kind is None or isinstance(node.op, kind):
            return False
        inner = node.input(0).producer if node.inputs[0] is not found[0] else None
        swap(graph, node, kind(), [found[0]], self.made(inner, node))
        return True


class Relu0To1ToClip(Pass):
    """Write RELU_0_TO_1, which has no int8 kernel, as RELU and MINIMUM.

    Before:  %1 = RELU_0_TO_1(%x)
    After:   %2 = RELU(%x);  %1 = MINIMUM(%2, 1)
    Vela keeps RELU_0_TO_1 on the CPU as well.
    """

    name = "relu-0-to-1-to-clip"
    kinds = (ops.Relu0To1,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace one node by two."""
        positive = self.insert(graph, ops.Relu(), [node.input(0)], f"{node.name}_positive", node, node)
        one = constant(f"{node.name}_upper", np.array(1.0, np.float32))
        swap(graph, node, ops.Minimum(), [positive, one], self.made(node))
        return True


class FuseActivation(Pass):
    """Let the node before apply an activation.

    Before:  %1 = CONV_2D(%x, w, b);  %2 = RELU6(%1)
    After:   %2 = CONV_2D[RELU6](%x, w, b)
    """

    name = "fuse-activation"
    exactness = Exactness.EXACT
    kinds = tuple(FUSED)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Fuse where the value before is used only here and has no activation yet."""
        value = node.input(0)
        host = producer(value, *HOSTS)
        if host is None or only_user(value) is not node or value.dtype is not DType.FLOAT32:
            return False
        if getattr(host.op, "fused_activation_function", None) is not ops.Activation.NONE:
            return False
        name = host.name
        op = with_activation(host.op, FUSED[type(node.op)])
        swap(graph, node, op, list(host.inputs), self.made(host, node)).name = name
        return True
