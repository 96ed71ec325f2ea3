"""Sums that hold infinities, where the graph gives them out."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import Exactness, Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import constant, float_data, producer

DEEPEST = 8
"""Sums of sums that are looked into."""


class InfiniteSums(Pass):
    """Choose -inf after a sum whose terms hold it, where the sum is an output of the graph.

    Before:  %1 = ADD(%x, m)                                  m: 0 and -inf
    After:   %2 = ADD(%x, m);  %1 = SELECT_V2(m > -inf, %2, -inf)
    ADD clamps to the lowest number. A softmax does not see the difference; who looks at masked scores does.
    Source: TFLite kernels/add.cc.
    """

    name = "infinite-sums"
    exactness = Exactness.EXACT
    kinds = (ops.Add,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Put the choice behind the sum; readers within the graph keep the sum."""
        if not node.output.is_output:
            return False
        finite = self._finite(graph, node.output, node, DEEPEST)
        if finite is None:
            return False
        total = node.output
        low = constant(f"{node.name}_low", np.full(1, -np.inf, np.float32))
        chosen = graph.add(ops.SelectV2(), [finite, total, low], name=f"{node.name}_masked", origin=self.made(node))
        result = chosen.output
        total.name, result.name, result.origin = f"{total.name}_sum", total.name, total.origin
        graph.set_outputs([result if t is total else t for t in graph.outputs])
        return True

    def _finite(self, graph: Graph, tensor: Tensor, before: Node, depth: int) -> Tensor | None:
        """True where a value is no -inf, as a tensor made before ``before``; None where it never is."""
        data = float_data(tensor)
        if data is not None:
            infinite = np.isneginf(data)
            return constant(f"{tensor.name}_finite", ~infinite) if infinite.any() else None
        choice = producer(tensor, ops.SelectV2)
        if choice is not None:
            low = float_data(choice.input(2))
            return choice.input(0) if low is not None and np.isneginf(low).all() else None
        maker = producer(tensor, ops.Add)
        if maker is None or not depth:
            return None
        parts = [self._finite(graph, maker.input(i), before, depth - 1) for i in (0, 1)]
        found = [part for part in parts if part is not None]
        if len(found) < 2:
            return found[0] if found else None
        return self._both(graph, before, found)

    def _both(self, graph: Graph, before: Node, found: list[Tensor]) -> Tensor:
        both = graph.add(ops.LogicalAnd(), found, name=f"{before.name}_finite", origin=self.made(before), before=before)
        return both.output
