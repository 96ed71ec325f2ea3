"""Scalar factors carried back to the weights that make the values: attention's scale goes into the queries."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import Exactness, Graph, Node, Tensor
from vitrify.ir.graph import Array
from vitrify.passes.base import Pass
from vitrify.passes.graphs import RESHAPES, by_constant, bypass, can_bypass, only_user, scalar, swap
from vitrify.passes.weights.scales import KINDS, weights_of, with_weights

MOVES = (*RESHAPES, ops.Transpose)
PARTS = (ops.Split, ops.SplitV, ops.Slice, ops.StridedSlice, ops.Unpack)
"""Operators that give a part of what they take; others may take other parts."""
MOST_ELEMENTS = 1 << 22
DEPTH = 12


class ScaleToMaker(Pass):
    """Fold a scalar factor into weights that are some reshapes, slices and products away.

    Before:  %1 = FULLY_CONNECTED(%x, w, b);  %2, %3, %4 = SPLIT(RESHAPE(%1));  %5 = BATCH_MATMUL(%2, %3)
             %6 = MUL(%5, 0.125)
    After:   %1 = FULLY_CONNECTED(%x, w with the rows of %2 times 0.125, b too);  ...  %6 = BATCH_MATMUL(%2, %3)
    Equal in real arithmetic.
    """

    name = "scale-to-maker"
    exactness = Exactness.ROUNDING
    kinds = (ops.Mul,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Fold where weights are found behind moves alone, and nothing else reads the scaled channels."""
        pair = by_constant(node, ops.Mul)
        factor = scalar(pair[1]) if pair is not None else None
        if pair is None or factor is None or not can_bypass(node) or not np.isfinite(factor):
            return False
        found = _maker(pair[0], node)
        if found is None:
            return False
        maker, chosen = found
        parts = weights_of(maker)
        assert parts is not None
        places, weights, bias = parts
        vector = np.where(chosen, np.float32(factor), np.float32(1))
        shape = [1] * weights.ndim
        shape[places.out_axis] = -1
        bias = None if bias is None else bias.reshape(-1) * vector
        swap(graph, maker, maker.op, with_weights(maker, places, weights * vector.reshape(shape), bias),
             self.made(maker, node))
        return bypass(graph, node, pair[0])


def _maker(tensor: Tensor, reader: Node) -> tuple[Node, Array] | None:
    """The node with weights that makes ``tensor``, and which of its channels ``tensor`` holds, whole and alone."""
    path: list[tuple[Node, Tensor]] = []
    for _ in range(DEPTH):
        node = tensor.producer
        if node is None or tensor.quantization is not None or tensor.is_output:
            return None
        if any(user is not reader and not isinstance(user.op, PARTS) for user in tensor.users):
            return None
        if isinstance(node.op, tuple(KINDS)):
            chosen = _channels(node, path)
            return None if chosen is None else (node, chosen)
        if isinstance(node.op, ops.BatchMatMul) and not path and only_user(tensor) is reader:
            tensor, reader = node.input(0), node
        elif isinstance(node.op, (*MOVES, *PARTS)):
            path.append((node, tensor))
            tensor, reader = node.input(1 if isinstance(node.op, ops.Split) else 0), node
        else:
            return None
    return None


def _channels(maker: Node, path: list[tuple[Node, Tensor]]) -> Array | None:
    """The channels of ``maker`` at the end of ``path``, if no other part of what is on the way holds them."""
    parts = weights_of(maker)
    activation = getattr(maker.op, "fused_activation_function", ops.Activation.NONE)
    if parts is None or activation is not ops.Activation.NONE or maker.output.size > MOST_ELEMENTS:
        return None
    count = parts[1].shape[parts[0].out_axis]
    ids: Array = np.broadcast_to(np.arange(count, dtype=np.int32), maker.output.shape)
    tensor, others = maker.output, np.zeros(count, bool)
    for node, following in reversed(path):
        for user in tensor.users:
            for output, values in zip(user.outputs, _evaluated(user, tensor, ids), strict=True):
                if user is node and output is following:
                    ahead = values
                else:
                    others[values.reshape(-1)] = True
        tensor, ids = following, ahead
    chosen = np.zeros(count, bool)
    chosen[ids.reshape(-1)] = True
    return None if (chosen & others).any() else chosen


def _evaluated(node: Node, tensor: Tensor, ids: Array) -> list[Array]:
    """What a move or part gives of channel numbers."""
    inputs = [ids if given is tensor else None if given is None else given.data for given in node.inputs]
    return [np.asarray(values) for values in node.op.evaluate(inputs)]
