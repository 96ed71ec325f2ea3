"""Nearest-neighbour enlargements."""

from __future__ import annotations

from dataclasses import replace

from vitrify import ops
from vitrify.ir import Graph, Node
from vitrify.passes.base import Pass
from vitrify.passes.graphs import swap


class PlainNearest(Pass):
    """Enlarge by 2, 4 or 8 without half-pixel centres, which picks the same elements.

    Before:  %1 = RESIZE_NEAREST_NEIGHBOR[half_pixel_centers](%x, twice the size)
    After:   %1 = RESIZE_NEAREST_NEIGHBOR(%x, twice the size)
    Both read floor(i / 2): floor((i + 0.5) / 2) is the same for whole i. Compilers support the plain form more widely.
    """

    name = "plain-nearest"
    kinds = (ops.ResizeNearestNeighbor,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Clear the attribute for powers of two, whose quotients are exact in float32."""
        op = node.op
        assert isinstance(op, ops.ResizeNearestNeighbor)
        if not op.half_pixel_centers or op.align_corners:
            return False
        for before, after in zip(node.input(0).shape[1:3], node.output.shape[1:3], strict=True):
            factor, rest = divmod(after, before)
            if rest or factor & (factor - 1):
                return False
        swap(graph, node, replace(op, half_pixel_centers=False), list(node.inputs), self.made(node))
        return True
