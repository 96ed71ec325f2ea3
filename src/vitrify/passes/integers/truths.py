"""Truth values as numbers."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Graph, Node
from vitrify.passes.base import Pass
from vitrify.passes.graphs import constant, swap


class TruthToNumber(Pass):
    """Choose between 1 and 0 where a truth value becomes a number.

    Before:  %1 = CAST(%x: bool) to float32
    After:   %1 = SELECT_V2(%x, 1, 0)
    The choice has an int8 kernel; a CAST of truth values ends Vela.
    Source: TFLite kernels/select.cc.
    """

    name = "truth-to-number"
    kinds = (ops.Cast,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace the CAST."""
        if node.input(0).dtype is not DType.BOOL or node.output.dtype is not DType.FLOAT32:
            return False
        one, zero = (constant(f"{node.name}_{name}", np.full(1, value, np.float32))
                     for name, value in (("one", 1), ("zero", 0)))
        swap(graph, node, ops.SelectV2(), [node.input(0), one, zero], self.made(node))
        return True
