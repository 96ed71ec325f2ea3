"""Division that gives 0 where the divisor is 0, as frameworks write it for normalizing."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Exactness, Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import constant, only_user, producer, swap
from vitrify.passes.patterns.division import reciprocal_factor
from vitrify.passes.patterns.signs import greatest_of, is_all_zero, is_non_negative


class DivNoNan(Pass):
    """Divide by the greatest of values that are not below 0 without asking whether it is 0.

    Before:  %y = REDUCE_MAX(%x);  %1 = SELECT_V2(EQUAL(%y, 0), 0, DIV(%x, %y))
    After:   %2 = RSQRT(MAXIMUM(%y, tiny));  %3 = MUL(%2, %2);  %1 = MUL(%x, %3)
    Where the greatest is 0 all values are, and 0 times the finite factor is 0 as well. Two more roundings. EQUAL,
    SELECT_V2 and DIV run on no NPU here.
    """

    name = "div-no-nan"
    exactness = Exactness.ROUNDING
    kinds = (ops.SelectV2, ops.Select)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace the three operators."""
        quotient = _guarded(node)
        if quotient is None:
            return False
        value, divisor = quotient.input(0), quotient.input(1)
        if greatest_of(divisor) is not value or not is_non_negative(value):
            return False
        tiny = constant(f"{node.name}_tiny", np.array(np.finfo(np.float32).tiny, np.float32))
        above = self.insert(graph, ops.Maximum(), [divisor, tiny], f"{node.name}_above_zero", node, quotient)
        factor = reciprocal_factor(self, graph, above, node, quotient)
        swap(graph, node, ops.Mul(), [value, factor], self.made(quotient, node))
        return True


def _guarded(node: Node) -> Node | None:
    """The DIV whose quotient a node gives except where the divisor is 0."""
    condition, chosen, other = node.input(0), node.input(1), node.input(2)
    test = producer(condition, ops.Equal, ops.NotEqual)
    if test is None:
        return None
    zero, kept = (chosen, other) if isinstance(test.op, ops.Equal) else (other, chosen)
    quotient = producer(kept, ops.Div)
    if (quotient is None or quotient.op != ops.Div() or not is_all_zero(zero) or only_user(quotient.output) is not node
            or node.output.dtype is not DType.FLOAT32 or node.output.shape != quotient.output.shape):
        return None
    return quotient if _tests_for_zero(test, quotient.input(1)) else None


def _tests_for_zero(test: Node, divisor: Tensor) -> bool:
    a, b = test.input(0), test.input(1)
    return (a is divisor and is_all_zero(b)) or (b is divisor and is_all_zero(a))
