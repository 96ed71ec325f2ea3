"""Operators without an int8 kernel, written with operators that have one."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Exactness, Graph, Node
from vitrify.passes.base import Pass
from vitrify.passes.graphs import constant, producer, swap


class NegToMul(Pass):
    """Negate by multiplying with -1, or by subtracting instead of adding.

    Before:  %1 = NEG(%x);  %2 = ADD(%y, NEG(%z))
    After:   %1 = MUL(%x, -1);  %2 = SUB(%y, %z)
    NEG has no int8 kernel, and a factor folds into weights.
    Source: TFLite kernels/neg.cc.
    """

    name = "neg-to-mul"
    kinds = (ops.Neg,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Let each sum subtract; what else reads the negative gets a product."""
        if node.output.dtype is not DType.FLOAT32:
            return False
        for user in node.output.users:
            if user.op == ops.Add() and user.inputs[0] is not user.inputs[1]:
                other = user.input(0) if user.inputs[1] is node.output else user.input(1)
                swap(graph, user, ops.Sub(), [other, node.input(0)], self.made(node, user))
        if node.graph is graph:
            minus = constant(f"{node.name}_minus", np.array(-1.0, np.float32))
            swap(graph, node, ops.Mul(), [node.input(0), minus], self.made(node))
        return True


class SquareToMul(Pass):
    """Square by multiplying; a square of a square root is what the root was taken of.

    Before:  %1 = SQUARE(%x);  %2 = SQRT(%y);  %3 = MUL(%2, %2)
    After:   %1 = MUL(%x, %x)       (readers of %3 read %y)
    SQUARE has no int8 kernel. The second form is for sums of squares, which are not below 0.
    Source: TFLite kernels/elementwise.cc.
    """

    name = "square-to-mul"
    exactness = Exactness.ROUNDING
    kinds = (ops.Square, ops.Mul)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace the operator, or skip root and square."""
        if node.output.dtype is not DType.FLOAT32:
            return False
        if isinstance(node.op, ops.Square):
            swap(graph, node, ops.Mul(), [node.input(0), node.input(0)], self.made(node))
            return True
        root = producer(node.input(0), ops.Sqrt) if node.op == ops.Mul() and node.inputs[0] is node.inputs[1] else None
        if root is None or not _is_sum_of_squares(root.input(0).producer) or node.output.is_output:
            return False
        graph.replace_uses(node.output, root.input(0))
        graph.remove(node)
        return True


def _is_sum_of_squares(node: Node | None) -> bool:
    if node is None or not isinstance(node.op, ops.Sum | ops.Mean):
        return False
    square = node.input(0).producer
    return square is not None and square.op == ops.Mul() and square.inputs[0] is square.inputs[1]


class SumToMean(Pass):
    """Sum by averaging, and multiply by the number of elements.

    Before:  %1 = SUM(%x, axes)
    After:   %2 = MEAN(%x, axes);  %1 = MUL(%2, number of elements)
    The reference kernel of an int8 SUM gives wrong values (LiteRT 2.3); that of MEAN is right.
    """

    name = "sum-to-mean"
    exactness = Exactness.ROUNDING
    kinds = (ops.Sum,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace the operator where the number of elements is above 0."""
        assert isinstance(node.op, ops.Sum)
        value = node.input(0)
        if node.output.dtype is not DType.FLOAT32 or not value.size or not node.output.size:
            return False
        mean = self.insert(graph, ops.Mean(keep_dims=node.op.keep_dims), list(node.inputs), node.name, node, node)
        count = constant(f"{node.name}_count", np.array(value.size / node.output.size, np.float32))
        swap(graph, node, ops.Mul(), [mean, count], self.made(node))
        return True
