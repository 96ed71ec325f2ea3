"""Nodes that give back what they take."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import RESHAPES, by_constant, bypass, scalar


class Identities(Pass):
    """Remove nodes that change nothing.

    Before:  %1 = RESHAPE(%x, its own shape);  %2 = MUL(%1, 1);  %3 = TRANSPOSE(%2, [0,1,2,3])
    After:   (readers of %3 read %x)
    """

    name = "identities"
    kinds = (*RESHAPES, ops.Transpose, ops.Cast, ops.Mul, ops.Div, ops.Add, ops.Sub, ops.Concatenation, ops.Pad,
             ops.PadV2, ops.Tile, ops.BroadcastTo, ops.Slice, ops.StridedSlice, ops.Split, ops.SplitV)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Let the readers read the unchanged input."""
        source = _same(node)
        if source is None or source.type != node.output.type or source.quantization != node.output.quantization:
            return False
        return bypass(graph, node, source)


def _same(node: Node) -> Tensor | None:
    """The input that the output equals, if shapes agree; None when values may differ."""
    op, first = node.op, node.inputs[0]
    if isinstance(op, RESHAPES):
        return first
    if isinstance(op, ops.Cast | ops.Tile | ops.BroadcastTo | ops.Slice | ops.Pad | ops.PadV2):
        return first                # what is not larger or smaller has nothing added, repeated or left out
    if isinstance(op, ops.Transpose):
        perm = node.input(1).data
        return first if perm is not None and np.array_equal(perm, np.arange(len(perm))) else None
    if isinstance(op, ops.Concatenation):
        return first if len(node.inputs) == 1 and op.fused_activation_function is ops.Activation.NONE else None
    if isinstance(op, ops.Split | ops.SplitV):
        return node.inputs[1 if isinstance(op, ops.Split) else 0] if len(node.outputs) == 1 else None
    if isinstance(op, ops.StridedSlice):
        strides = node.input(3).data
        return first if strides is not None and (strides == 1).all() else None
    neutral = 1.0 if isinstance(op, ops.Mul | ops.Div) else 0.0
    pair = by_constant(node, type(op))
    if pair is None or scalar(pair[1]) != neutral or (isinstance(op, ops.Sub | ops.Div) and pair[0] is not first):
        return None
    return pair[0]
