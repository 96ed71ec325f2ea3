"""Arithmetic by constants in the forms that other passes look for, as few nodes as possible."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import Exactness, Graph, Node, Tensor
from vitrify.ir.graph import Array
from vitrify.passes.base import Pass
from vitrify.passes.graphs import by_constant, constant, only_user, swap


def pair_in_order(node: Node, kind: type[ops.Sub] | type[ops.Div]) -> tuple[Tensor, Tensor] | None:
    """The (value, constant) of ``value - constant`` or ``value / constant``; None the other way round."""
    pair = by_constant(node, kind)
    return pair if pair is not None and pair[0] is node.inputs[0] else None


class DivToMul(Pass):
    """Divide by a constant by multiplying with its reciprocal.

    Before:  %1 = DIV(%x, 6)
    After:   %1 = MUL(%x, 0.16666667)
    One more rounding of the reciprocal.
    """

    name = "div-to-mul"
    exactness = Exactness.ROUNDING
    kinds = (ops.Div,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace the operator; a constant with a zero stays."""
        pair = pair_in_order(node, ops.Div)
        if pair is None or pair[1].data is None or not pair[1].data.all():
            return False
        data = (1.0 / pair[1].data.astype(np.float64)).astype(np.float32)
        if not np.isfinite(data).all():
            return False
        swap(graph, node, ops.Mul(), [pair[0], constant(pair[1].name, data, pair[1].origin)], self.made(node))
        return True


class SubToAdd(Pass):
    """Subtract a constant by adding its negative.

    Before:  %1 = SUB(%x, c)
    After:   %1 = ADD(%x, -c)
    """

    name = "sub-to-add"
    kinds = (ops.Sub,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace the operator."""
        pair = pair_in_order(node, ops.Sub)
        if pair is None or pair[1].data is None:
            return False
        swap(graph, node, ops.Add(), [pair[0], constant(pair[1].name, -pair[1].data, pair[1].origin)], self.made(node))
        return True


class MergeConstants(Pass):
    """Join constants that are added, or multiplied, one after the other.

    Before:  %1 = MUL(%x, a);  %2 = ADD(%1, b);  %3 = MUL(%2, c)
    After:   %1 = MUL(%x, a * c);  %3 = ADD(%1, b * c)
    Equal in real arithmetic.
    """

    name = "merge-constants"
    exactness = Exactness.ROUNDING
    kinds = (ops.Add, ops.Mul)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Join with the node before, or exchange the two."""
        kind = ops.Add if isinstance(node.op, ops.Add) else ops.Mul
        outer = by_constant(node, kind)
        if outer is None or only_user(outer[0]) is not node:
            return False
        inner = by_constant(outer[0].producer, kind)
        if inner is not None:
            joined = _joined(kind, inner[1], outer[1])
            if joined is None:
                return False
            swap(graph, node, kind(), [inner[0], joined], self.made(inner[0].producer, outer[0].producer, node))
            return True
        return kind is ops.Mul and self._exchange(graph, node, outer)

    def _exchange(self, graph: Graph, node: Node, outer: tuple[Tensor, Tensor]) -> bool:
        """MUL after ADD after MUL: multiply first, so that the two MULs join."""
        added = outer[0].producer
        middle = by_constant(added, ops.Add)
        if added is None or middle is None or only_user(middle[0]) is not added:
            return False
        first = by_constant(middle[0].producer, ops.Mul)
        if first is None:
            return False
        scale, offset = _joined(ops.Mul, first[1], outer[1]), _joined(ops.Mul, middle[1], outer[1])
        if scale is None or offset is None:
            return False
        product = self.insert(graph, ops.Mul(), [first[0], scale], middle[0].name, node, middle[0].producer, node)
        swap(graph, node, ops.Add(), [product, offset], self.made(added, node))
        return True


def _joined(kind: type[ops.Add] | type[ops.Mul], a: Tensor, b: Tensor) -> Tensor | None:
    """The constant that does the work of both, unless it would be larger than either."""
    assert a.data is not None
    assert b.data is not None
    data: Array = np.add(a.data, b.data) if kind is ops.Add else np.multiply(a.data, b.data)
    if data.size > max(a.size, b.size):
        return None
    return constant(a.name, data.astype(np.float32), a.origin)
