"""Means over channels as products with constant weights."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Exactness, Graph, Node, Operator, Tensor
from vitrify.ir.graph import Array
from vitrify.passes.base import Pass
from vitrify.passes.graphs import constant, swap
from vitrify.passes.layout.rules_axes import axis_list

FEWEST = 3
"""Channels from which on a mean is rewritten: a mean of two is half of a complex number's power."""


class DepthMean(Pass):
    """Average over the last axis with a convolution of one filter, 1 / channels everywhere.

    Before:  %1 = MEAN(%x, [3])                 axes kept
    After:   %1 = CONV_2D(%x, w, b)             w: float32[1,1,1,channels], all 1 / channels;  b: 0
    FULLY_CONNECTED where %x is no map; a mean over places and channels averages over the places first. An NPU averages
    over the places of a map; over the channels of one it does so on the CPU, and over those of a row at an eighth of a
    convolution's speed. Equal weights lose nothing in int8, and what is added to a variance becomes the bias.
    Source: Vela 5.2 SUPPORTED_OPS, MEAN, and its estimates.
    """

    name = "depth-mean"
    exactness = Exactness.ROUNDING
    kinds = (ops.Mean,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace a mean over the last axis; one over others as well takes their mean first."""
        x, rank = node.input(0), len(node.input(0).shape)
        if x.dtype is not DType.FLOAT32 or x.is_constant or rank < 2 or not x.size or x.shape[-1] < FEWEST:
            return False
        axes = axis_list(node.input(1), rank)
        if axes is None or rank - 1 not in axes:
            return False
        if len(axes) > 1:
            x = self._over_places(graph, node, x, sorted(set(axes) - {rank - 1}))
        op, weights = _product(x)
        inputs: list[Tensor | None] = [x, constant(f"{node.name}_weights", weights),
                                       constant(f"{node.name}_bias", np.zeros(1, np.float32))]
        if getattr(node.op, "keep_dims", False):
            swap(graph, node, op, inputs, self.made(node))
            return True
        kept = self.insert(graph, op, inputs, f"{node.name}_kept", node, node)
        shape = node.output.shape
        target = constant(f"{node.name}_shape", np.array(shape, np.int32))
        swap(graph, node, ops.Reshape(new_shape=shape), [kept, target], self.made(node))
        return True

    def _over_places(self, graph: Graph, node: Node, x: Tensor, axes: list[int]) -> Tensor:
        wanted = constant(f"{node.name}_places", np.array(axes, np.int32))
        return self.insert(graph, ops.Mean(keep_dims=True), [x, wanted], f"{node.name}_of_places", node, node)


def _product(x: Tensor) -> tuple[Operator, Array]:
    """The operator that takes weights of 1 / channels, and the weights as it wants them."""
    channels = x.shape[-1]
    share = np.full(channels, 1 / channels, np.float32)
    if len(x.shape) == 4 and x.shape[0] == 1:
        return ops.Conv2D(stride_w=1, stride_h=1), share.reshape(1, 1, 1, channels)
    return ops.FullyConnected(keep_num_dims=True), share.reshape(1, channels)
