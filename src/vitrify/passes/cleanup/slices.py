"""Slices of what was put together: the part is taken from where it came."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import Graph, Node, Tensor
from vitrify.ops import Activation
from vitrify.passes.base import Pass
from vitrify.passes.graphs import constant


class SliceBefore(Pass):
    """Take a slice that lies in one part of a CONCATENATION, or in another slice, from there.

    Before:  %3 = CONCATENATION(%1, %2);  %4 = SLICE(%3, within %2)
    After:   %4 = SLICE(%2)
    Exact.
    """

    name = "slice-before"
    kinds = (ops.Slice,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Look one node back."""
        before, span = node.input(0).producer, _span(node)
        if before is None or span is None:
            return False
        begins, sizes = span
        if isinstance(before.op, ops.Slice):
            first = _span(before)
            if first is None:
                return False
            source, begins = before.input(0), begins + first[0]
        elif isinstance(before.op, ops.Concatenation):
            found = _part(before, begins, sizes)
            if found is None:
                return False
            source, begins = found
        else:
            return False
        if source.quantization != node.output.quantization:
            return False
        tables = [constant(f"{node.name}/{what}", values.astype(np.int32))
                  for what, values in (("begin", begins), ("size", sizes))]
        graph.set_inputs(node, [source, *tables])
        return True


def _span(node: Node) -> tuple[np.ndarray, np.ndarray] | None:
    """Begins and sizes of a SLICE; a size of -1 is what is left."""
    begins, sizes = node.input(1).data, node.input(2).data
    if begins is None or sizes is None:
        return None
    return np.asarray(begins, np.int64), np.array(node.output.shape, np.int64)


def _part(node: Node, begins: np.ndarray, sizes: np.ndarray) -> tuple[Tensor, np.ndarray] | None:
    """The input of a CONCATENATION in which a slice lies wholly, and where it begins there."""
    assert isinstance(node.op, ops.Concatenation)
    if node.op.fused_activation_function is not Activation.NONE:
        return None
    axis, start = node.op.axis % len(sizes), 0
    for index in range(len(node.inputs)):
        part = node.input(index)
        end = start + part.shape[axis]
        if start <= begins[axis] and begins[axis] + sizes[axis] <= end:
            moved = begins.copy()
            moved[axis] -= start
            return part, moved
        start = end
    return None
