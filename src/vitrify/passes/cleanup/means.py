"""Reductions after reductions."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Exactness, Graph, Node
from vitrify.passes.base import Pass
from vitrify.passes.graphs import constant, only_user, producer, swap
from vitrify.passes.layout.rules_axes import axis_list


class MergeReductions(Pass):
    """Reduce over all axes at once.

    Before:  %1 = MEAN(%x, [1]);  %2 = MEAN(%1, [2])      axes kept
    After:   %2 = MEAN(%x, [1,2])
    Equal in real arithmetic.
    """

    name = "merge-reductions"
    exactness = Exactness.ROUNDING
    kinds = (ops.Mean, ops.Sum, ops.ReduceMax, ops.ReduceMin)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Join with the same reduction before, where both keep their axes."""
        first = producer(node.input(0), type(node.op))
        if first is None or first.op != node.op or not getattr(node.op, "keep_dims", False):
            return False
        if only_user(first.output) is not node or node.output.dtype is not DType.FLOAT32:
            return False
        rank = len(node.output.shape)
        a, b = axis_list(first.input(1), rank), axis_list(node.input(1), rank)
        if a is None or b is None or set(a) & set(b):
            return False
        axes = constant(node.input(1).name, np.array(sorted((*a, *b)), np.int32))
        swap(graph, node, node.op, [first.input(0), axes], self.made(first, node))
        return True
