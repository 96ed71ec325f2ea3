"""Vectors of length 1, written out for NPUs."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Exactness, Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import constant, swap

LEAST = 1e-12
"""The smallest sum of squares that L2_NORMALIZATION divides by."""


class UnitLength(Pass):
    """Divide by the length in operators that an NPU has.

    Before:  %1 = L2_NORMALIZATION(%x)
    After:   %2 = MUL(%x, %x);  %3 = FULLY_CONNECTED(%2, ones, 1e-12);  %4 = RSQRT(%3);  %1 = MUL(%x, %4)
    A vector within a network: one at its end costs the CPU less than a call of the NPU costs.
    Source: TFLite kernels/l2norm.cc; Vela 5.2 SUPPORTED_OPS.
    """

    name = "unit-length"
    exactness = Exactness.ROUNDING
    kinds = (ops.L2Normalization,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace the operator where something follows it."""
        x = node.input(0)
        if node.output.is_output or x.dtype is not DType.FLOAT32 or node.op != ops.L2Normalization():
            return False
        channels = x.shape[-1]
        square = self.insert(graph, ops.Mul(), [x, x], f"{node.name}_squares", node, node)
        ones: list[Tensor | None] = [square, constant(f"{node.name}_ones", np.ones((1, channels), np.float32)),
                                     constant(f"{node.name}_least", np.full(1, LEAST, np.float32))]
        total = self.insert(graph, ops.FullyConnected(keep_num_dims=True), ones, f"{node.name}_sum", node, node)
        inverse = self.insert(graph, ops.Rsqrt(), [total], f"{node.name}_inverse", node, node)
        swap(graph, node, ops.Mul(), [x, inverse], self.made(node))
        return True
