"""Arithmetic with constants that float models keep, and integers should not have to do."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Exactness, Graph, Node
from vitrify.passes.base import Pass
from vitrify.passes.cleanup.folding import known_values
from vitrify.passes.graphs import constant, is_pure, swap

MOST_BYTES = 16 << 20
"""A constant of more stays computed."""


class ConstantDivisor(Pass):
    """Divide by constants by multiplying, where the quotient is larger than the value too.

    Before:  %1 = DIV(%x: [1,300,1], c: [128])
    After:   %1 = MUL(%x, 1 / c)
    One more rounding of the reciprocals.
    """

    name = "constant-divisor"
    exactness = Exactness.ROUNDING
    kinds = (ops.Div,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace the operator; a constant with a zero stays."""
        divisor = node.input(1)
        if divisor.data is None or divisor.dtype is not DType.FLOAT32 or not divisor.data.all():
            return False
        with np.errstate(over="ignore"):
            data = (1.0 / divisor.data.astype(np.float64)).astype(np.float32)
        if not np.isfinite(data).all():
            return False
        activation = getattr(node.op, "fused_activation_function", ops.Activation.NONE)
        swap(graph, node, ops.Mul(fused_activation_function=activation),
             [node.input(0), constant(f"{divisor.name}_inverse", data, self.made(divisor))], self.made(node))
        return True


class FoldLarge(Pass):
    """Compute what depends on constants alone, also where the file grows by it.

    Before:  %1 = SIN(MUL(c: [400,1], d: [1,64]))
    After:   %1: [400,64] constant
    Exact. In integers each step would round once more, and positions have no kernel at all.
    """

    name = "fold-large"

    def run(self, graph: Graph) -> int:
        """Walk in order, so that folded values feed the next node."""
        return sum(_fold_large(graph, node, self) for node in graph)


def _fold_large(graph: Graph, node: Node, fold: Pass) -> bool:
    if len(node.outputs) != 1 or node.output.dtype is not DType.FLOAT32 or node.output.is_output or not is_pure(node) \
            or node.output.nbytes > MOST_BYTES or any(t is None or not t.is_constant for t in node.inputs):
        return False
    values = known_values(node)
    if values is None or values[0].size != node.output.size:
        return False
    made = constant(node.output.name, np.asarray(values[0], np.float32).reshape(node.output.shape),
                    node.output.origin.by(fold.name))
    graph.replace_uses(node.output, made)
    graph.remove(node)
    return True
