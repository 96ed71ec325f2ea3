"""Masks of a softmax whose numbers integers can hold."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import Exactness, Graph, Node, Tensor
from vitrify.ir.graph import Array
from vitrify.passes.base import Pass
from vitrify.passes.graphs import constant, float_data, scalar, swap

FAR = 1024.0
"""What is this much below the rest of a row has no share of a softmax, in float32 or in integers."""

WAY = (ops.Add, ops.SelectV2, ops.Reshape, ops.Squeeze, ops.ExpandDims, ops.Transpose)
"""What may stand between a mask and its softmax."""


class SoftmaxMask(Pass):
    """Mask with -1024 what was masked with minus infinity, or with the lowest number.

    Before:  %1 = SELECT_V2(%m, %x, -3.4e38);  %2 = SOFTMAX(%1)      or  ADD(%x, mask of 0 and -inf)
    After:   %1 = SELECT_V2(%m, %x, -1024);    %2 = SOFTMAX(%1)          where %m is known: ADD(%x, mask of 0 and -1024)
    Equal for rows that are not masked as a whole. Integers have a step for the whole range: beside 1e38 it is larger
    than every score, and infinity has none.
    """

    name = "softmax-mask"
    exactness = Exactness.ROUNDING
    kinds = (ops.Softmax,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace the constants that reach this softmax and nothing else."""
        return self._bound(graph, node.input(0))

    def _bound(self, graph: Graph, tensor: Tensor) -> bool:
        maker = tensor.producer
        if maker is None or not isinstance(maker.op, WAY) or not _is_masked_only(tensor):
            return False
        if (mask := _known_mask(maker)) is not None:
            scores, shift = mask
            swap(graph, maker, ops.Add(), [scores, constant(f"{maker.name}_mask", shift)], self.made(maker))
            return True
        changed = False
        for index in range(len(maker.inputs)):
            value = maker.input(index)
            data = float_data(value)
            if data is None:
                changed |= self._bound(graph, value)
            elif data.size and data.min() < -FAR:
                graph.set_input(maker, index, constant(f"{value.name}_bounded", np.maximum(data, np.float32(-FAR)),
                                                       self.made(value)))
                changed = True
        return changed


def _is_masked_only(tensor: Tensor) -> bool:
    """True when a tensor ends in softmaxes alone."""
    return not tensor.is_output and bool(tensor.users) and all(
        isinstance(user.op, ops.Softmax) or (isinstance(user.op, WAY) and _is_masked_only(user.output))
        for user in tensor.users)


def _known_mask(node: Node) -> tuple[Tensor, Array] | None:
    """The scores of a choice with a constant condition, and what to add to them instead."""
    if not isinstance(node.op, ops.SelectV2) or node.input(0).data is None:
        return None
    for scores, low, far in ((node.input(1), node.input(2), False), (node.input(2), node.input(1), True)):
        value = scalar(low)
        if value is not None and value <= -FAR and not scores.is_constant and scores.shape == node.output.shape:
            return scores, np.where(node.input(0).data == far, np.float32(-FAR), np.float32(0))
    return None
