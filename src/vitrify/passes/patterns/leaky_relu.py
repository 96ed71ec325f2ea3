"""Leaky ReLU in the forms that exporters write."""

from __future__ import annotations

from vitrify import ops
from vitrify.ir import DType, Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import by_constant, scalar, swap


class LeakyRelu(Pass):
    """Recognise max(x, alpha * x) and a PRELU with a single slope.

    Before:  %1 = MUL(%x, 0.1);  %2 = MAXIMUM(%x, %1)
    After:   %2 = LEAKY_RELU(%x, alpha 0.1)
    """

    name = "leaky-relu"
    kinds = (ops.Maximum, ops.Prelu)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace the operator for slopes of 0 to 1 (any slope for a PRELU)."""
        if node.output.dtype is not DType.FLOAT32:
            return False
        if isinstance(node.op, ops.Prelu):
            slope = scalar(node.input(1))
            return slope is not None and self._replace(graph, node, node.input(0), slope)
        for value, scaled in ((node.input(0), node.input(1)), (node.input(1), node.input(0))):
            pair = by_constant(scaled.producer, ops.Mul)
            slope = scalar(pair[1]) if pair is not None else None
            if pair is not None and pair[0] is value and slope is not None and 0 <= slope <= 1:
                return self._replace(graph, node, value, slope)
        return False

    def _replace(self, graph: Graph, node: Node, value: Tensor, slope: float) -> bool:
        op = ops.Relu() if slope == 0 else ops.LeakyRelu(alpha=slope)
        maker = next((t.producer for t in node.inputs if t is not None and t is not value), None)
        swap(graph, node, op, [value], self.made(maker, node))
        return True
