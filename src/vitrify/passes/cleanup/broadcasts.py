"""Repetitions that the reader does by itself."""

from __future__ import annotations

from vitrify import ops
from vitrify.core.errors import VitrifyError
from vitrify.ir import Graph, Node, Tensor
from vitrify.ops.elementwise import BinaryElementwise
from vitrify.passes.base import Pass
from vitrify.passes.graphs import sweep

_READERS = (BinaryElementwise, ops.SelectV2, ops.BatchMatMul)
_MOST_AXES = 4
"""Kernels that broadcast take as many axes everywhere."""


class ImplicitBroadcast(Pass):
    """Let an operator that broadcasts read what was repeated for it.

    Before:  %1 = BROADCAST_TO(%x, shape);  %2 = ADD(%y, %1)
    After:   %2 = ADD(%y, %x)
    Only where the result keeps its shape; a TILE counts when it repeats axes of one element alone.
    """

    name = "implicit-broadcast"
    kinds = (ops.BroadcastTo, ops.Tile)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Give every reader that can repeat by itself the shorter tensor."""
        source, made = node.input(0), node.output
        if source.quantization != made.quantization or not _only_ones(node):
            return False
        changed = False
        for reader, index in list(made.uses):
            if _keeps(reader, index, source):
                graph.set_input(reader, index, source)
                changed = True
        sweep(graph, made)
        return changed


def _only_ones(node: Node) -> bool:
    """True when nothing but axes of one element is repeated."""
    times = node.input(1).data
    if isinstance(node.op, ops.BroadcastTo):
        return True
    return times is not None and all(t == 1 or d == 1 for d, t in zip(node.input(0).shape, times.flat, strict=True))


def _keeps(reader: Node, index: int, source: Tensor) -> bool:
    """True when the reader's result has the same shape with ``source`` in the place of an input."""
    if not isinstance(reader.op, _READERS) or len(reader.output.shape) > _MOST_AXES:
        return False
    inputs = [source if i == index else t for i, t in enumerate(reader.inputs)]
    try:
        return reader.op.infer(inputs) == [reader.output.type]
    except VitrifyError:
        return False
