"""Channels put into another order by the weights that make them."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import Graph, Node
from vitrify.ir.graph import Array
from vitrify.passes.base import Pass
from vitrify.passes.graphs import RESHAPES, only_user, producer, swap
from vitrify.passes.weights.scales import weights_of, with_weights
from vitrify.passes.weights.shuffles import shuffled

POINTWISE = (ops.Relu, ops.Relu6, ops.ReluN1To1, ops.Relu0To1, ops.LeakyRelu, ops.Logistic, ops.Tanh, ops.HardSwish,
             ops.Gelu, ops.Elu)
"""Operators that do the same to every channel."""
READERS = (ops.Conv2D, ops.Split, ops.SplitV, ops.Slice)
"""Operators whose readers' weights take the channels in any order."""


class ShuffleByMaker(Pass):
    """Let a convolution make its channels in the order that they are shuffled to.

    Before:  %1 = CONV_2D(%x, w, b);  %2 = RESHAPE(%1, [1,H,W,G,N]);  %3 = TRANSPOSE(%2, [0,1,2,4,3]);
             %4 = RESHAPE(%3, [1,H,W,N*G])
    After:   %4 = CONV_2D(%x, w with its rows in the new order, b too)
    A pixel shuffle after a convolution needs no TRANSPOSE so. Where readers take the order over, they do.
    """

    name = "shuffle-by-maker"
    kinds = (ops.Transpose,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Permute the weights of the one convolution before, through operators that treat channels alike."""
        order = shuffled(node)
        first, last = producer(node.input(0), *RESHAPES), only_user(node.output)
        if order is None or first is None or last is None or only_user(first.output) is not node:
            return False
        if all(isinstance(user.op, READERS) for user in last.output.users) and not last.output.is_output:
            return False
        tensor, reader = first.input(0), first
        while only_user(tensor) is reader and (between := producer(tensor, *POINTWISE)) is not None:
            tensor, reader = between.input(0), between
        maker = producer(tensor, ops.Conv2D, ops.TransposeConv)
        if maker is None or only_user(tensor) is not reader or not _permute(self, graph, maker, order, node):
            return False
        graph.replace_uses(last.output, first.input(0))
        for done in (last, node, first):
            graph.remove(done)
        return True


def _permute(one: Pass, graph: Graph, maker: Node, order: Array, shuffle: Node) -> bool:
    found = weights_of(maker)
    if found is None:
        return False
    places, weights, bias = found
    channels = maker.input(places.value).shape[3]
    if weights.shape[places.out_axis] != len(order) or weights.shape[places.in_axis] != channels:
        return False                       # outputs of a grouped convolution stay with their group
    wanted = np.take(weights, order, places.out_axis)
    inputs = with_weights(maker, places, wanted, None if bias is None else bias.reshape(-1)[order])
    swap(graph, maker, maker.op, inputs, one.made(maker, shuffle))
    return True
