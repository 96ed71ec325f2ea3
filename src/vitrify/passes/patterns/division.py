"""Division by what is computed at run time, in operators that int8 and the NPUs have."""

from __future__ import annotations

from vitrify import ops
from vitrify.ir import DType, Exactness, Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import producer, swap, with_activation
from vitrify.passes.patterns.signs import is_non_negative


def reciprocal_factor(one: Pass, graph: Graph, divisor: Tensor, node: Node, *parts: Node | None) -> Tensor:
    """Add ``1 / divisor`` of a divisor that is not below 0 before ``node``; 1 / 0 is infinite."""
    squared = producer(divisor, ops.Sqrt)
    if squared is not None:
        return one.insert(graph, ops.Rsqrt(), [squared.input(0)], f"{node.name}_rsqrt", node, squared, node, *parts)
    root = one.insert(graph, ops.Rsqrt(), [divisor], f"{node.name}_rsqrt", node, node, *parts)
    return one.insert(graph, ops.Mul(), [root, root], f"{node.name}_reciprocal", node, node, *parts)


class DivToRsqrt(Pass):
    """Divide by what is never below 0 by multiplying with the square of its reciprocal square root.

    Before:  %1 = DIV(%x, %y)
    After:   %2 = RSQRT(%y);  %3 = MUL(%2, %2);  %1 = MUL(%x, %3)       (%y = SQRT(%z): %3 = RSQRT(%z))
    Two more roundings. The int8 kernel of DIV ends the process when a divisor is 0, and NPUs have no DIV; RSQRT of 0
    is the largest value there.
    Source: TFLite kernels/div.cc, elementwise.cc.
    """

    name = "div-to-rsqrt"
    exactness = Exactness.ROUNDING
    kinds = (ops.Div,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace the operator where the graph proves the sign of the divisor."""
        assert isinstance(node.op, ops.Div)
        value, divisor = node.input(0), node.input(1)
        if node.output.dtype is not DType.FLOAT32 or divisor.is_constant or not is_non_negative(divisor):
            return False
        factor = reciprocal_factor(self, graph, divisor, node)
        times = with_activation(ops.Mul(), node.op.fused_activation_function)
        swap(graph, node, times, [value, factor], self.made(node))
        return True
