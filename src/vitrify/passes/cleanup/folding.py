"""Nodes whose inputs are all known."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from vitrify import ops
from vitrify.core.errors import UnsupportedError
from vitrify.ir import Graph, Node, Tensor
from vitrify.ir.graph import Array
from vitrify.ops.cost import MOST_OPERATIONS, operations
from vitrify.passes.base import Pass
from vitrify.passes.graphs import is_dense, is_pure

FREE_GROWTH = 1 << 16
"""A folded constant may always have this many bytes ..."""
GROWTH = 4
"""... or this many times the bytes of the constants that it is made from."""


MOST_TOGETHER = 2 * MOST_OPERATIONS
"""For all nodes of a graph, in all runs."""
_SPENT: WeakKeyDictionary[Graph, int] = WeakKeyDictionary()


class FoldConstants(Pass):
    """Compute now what depends on constants alone, and the shapes of tensors.

    Before:  %1 = SHAPE(%x);  %2 = GATHER(%1, 0);  %3 = MUL(2, 3)
    After:   %2 = 1;  %3 = 6       (constants)
    """

    name = "fold-constants"

    def run(self, graph: Graph) -> int:
        """Walk in order, so that folded values feed the next node."""
        changed = 0
        for node in graph:
            if node.outputs and is_pure(node) and self._fold(graph, node):
                changed += 1
        return changed

    def _fold(self, graph: Graph, node: Node) -> bool:
        if any(t.is_output or t.quantization is not None for t in node.outputs) or not _is_bounded(node):
            return False
        values = known_values(node) if _is_quick(graph, node) else None
        if values is None or any(v.size != t.size for v, t in zip(values, node.outputs, strict=True)):
            return False
        for tensor, value in zip(node.outputs, values, strict=True):
            value = np.asarray(value, tensor.dtype.numpy).reshape(tensor.shape)
            folded = Tensor(tensor.name, tensor.dtype, tensor.shape, data=value, origin=tensor.origin.by(self.name))
            graph.replace_uses(tensor, folded)
        graph.remove(node)
        return True


def known_values(node: Node) -> list[Array] | None:
    """The outputs of a node whose inputs are constants, None when they are not known."""
    if isinstance(node.op, ops.Shape):
        return [np.array(node.input(0).shape)]
    if isinstance(node.op, ops.Rank):
        return [np.array(len(node.input(0).shape))]
    if not all(t is None or _is_plain(t) for t in node.inputs):
        return None
    arrays = [None if t is None else t.data for t in node.inputs]
    if isinstance(node.op, ops.Dequantize):
        data = arrays[0]
        return [data.astype(np.float32)] if data is not None and data.dtype == np.float16 else None
    evaluate = getattr(node.op, "evaluate", None)
    try:
        return None if evaluate is None else list(evaluate(arrays))
    except UnsupportedError:        # no numpy reference for these types: the node stays
        return None


def _is_plain(tensor: Tensor) -> bool:
    """True for a constant that numpy can compute with as it is."""
    return is_dense(tensor) and tensor.quantization is None


def _is_bounded(node: Node) -> bool:
    """True when the folded constants would not blow the file up; asked before anything is computed."""
    taken = sum(t.nbytes for t in node.inputs if t is not None and t.is_constant)
    return sum(t.nbytes for t in node.outputs) <= max(FREE_GROWTH, GROWTH * taken)


def _is_quick(graph: Graph, node: Node) -> bool:
    """True when the node may still be computed; one that takes long stays, for run time."""
    if not all(t is None or t.is_constant for t in node.inputs):
        return True      # its shape at most is known
    wanted, spent = operations(node), _SPENT.get(graph, 0)
    if wanted > MOST_OPERATIONS or spent + wanted > MOST_TOGETHER:
        return False
    _SPENT[graph] = spent + wanted
    return True
