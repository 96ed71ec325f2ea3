"""Reshapes after reshapes, and transposes that a reshape can do."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import RESHAPES, constant, producer, swap, sweep
from vitrify.passes.layout.perms import moves_only_ones
from vitrify.passes.layout.region import permutation


def reshape_to(node: Node) -> tuple[ops.Reshape, Tensor]:
    """The RESHAPE operator, with its shape input, that gives ``node``'s output shape."""
    shape = node.output.shape
    return ops.Reshape(new_shape=shape), constant(f"{node.output.name}_shape", np.array(shape, np.int32))


class MergeReshapes(Pass):
    """Let a reshape of a reshape read the first one's input.

    Before:  %1 = RESHAPE(%x, [1,64]);  %2 = SQUEEZE(%1)
    After:   %2 = RESHAPE(%x, [64])
    """

    name = "merge-reshapes"
    kinds = RESHAPES

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Skip the reshape before; it stays for other readers."""
        first = producer(node.input(0), *RESHAPES)
        if first is None or first.input(0).quantization != node.output.quantization:
            return False
        op, shape = reshape_to(node)
        swap(graph, node, op, [first.input(0), shape], self.made(first, node))
        sweep(graph, first.output)
        return True


class TransposeToReshape(Pass):
    """Write a TRANSPOSE that moves only axes of extent 1 as a RESHAPE, which costs no time.

    Before:  %1 = TRANSPOSE(%x, [0,2,3,1])      x: [1,64,1,1]
    After:   %1 = RESHAPE(%x, [1,1,1,64])
    """

    name = "transpose-to-reshape"
    kinds = (ops.Transpose,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace the operator, where the permutation is known."""
        perm = permutation(node)
        if perm is None or not moves_only_ones(node.input(0).shape, perm):
            return False
        op, shape = reshape_to(node)
        swap(graph, node, op, [node.input(0), shape], self.made(node))
        return True


class StaticReshape(Pass):
    """Give a RESHAPE whose shape is computed at run time, or holds -1, its static shape.

    Before:  %1 = RESHAPE(%x, %shape)
    After:   %1 = RESHAPE(%x, [1,128])
    """

    name = "static-reshape"
    kinds = (ops.Reshape,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Write shape input and attribute as constants."""
        wanted, given = node.output.shape, node.optional(1)
        assert isinstance(node.op, ops.Reshape)
        attribute = tuple(node.op.new_shape) in ((), wanted)
        if (given is None or (given.data is not None and tuple(given.data) == wanted)) and attribute:
            return False
        op, shape = reshape_to(node)
        swap(graph, node, op, [node.input(0), shape], self.made(node))
        return True
