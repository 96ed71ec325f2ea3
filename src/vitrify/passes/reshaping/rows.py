"""TRANSPOSEs that are left, in forms that NPUs do quickly: long rows sliced and joined, few axes."""

from __future__ import annotations

from math import prod

import numpy as np

from vitrify import ops
from vitrify.ir import Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import constant, swap
from vitrify.passes.layout.perms import Perm, Shape, moves_only_ones, permute
from vitrify.passes.layout.region import permutation
from vitrify.passes.reshaping.reshapes import reshape_to

MOST_PIECES = 8
"""More slices than this cost more than the TRANSPOSE."""
SHORTEST_ROW = 64
"""Elements that stay together; a TRANSPOSE of shorter rows is quicker than slices of them."""
IMAGE_RANK = 4


def simplified(shape: Shape, perm: Perm) -> tuple[Shape, Perm]:
    """The same movement with as few axes as do: without those of extent 1, neighbours that stay together as one."""
    kept = [axis for axis in perm if shape[axis] != 1]
    place = {axis: i for i, axis in enumerate(sorted(kept))}
    runs: list[list[int]] = []
    for axis in kept:
        if runs and place[axis] == place[runs[-1][-1]] + 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    order = sorted(range(len(runs)), key=lambda i: runs[i][0])
    return tuple(prod(shape[a] for a in runs[i]) for i in order), tuple(order.index(i) for i in range(len(runs)))


class RowsByParts(Pass):
    """Exchange two axes over long rows by slicing along the shorter one, and joining.

    Before:  %1 = RESHAPE(%x, [8,7,8,672]);  %2 = TRANSPOSE(%1, [0,2,1,3])      (windows of an image)
    After:   %1 = RESHAPE(%x, [8,56,672]);  ... = SPLIT(%1, 7);  %2 = CONCATENATION(...)      along the rows
    NPUs do slices and joins as they read and write.
    """

    name = "rows-by-parts"
    kinds = (ops.Transpose,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace an exchange of two axes of which one is short."""
        found = exchange(node)
        if found is None:
            return False
        lead, a, b, row = found
        shape, split, join, pieces = (((lead, a, b * row), 2, 1, b) if b <= a else ((lead, a * b, row), 1, 2, a))
        source = self.insert(graph, ops.Reshape(new_shape=shape), [node.input(0), _integers(shape)],
                             f"{node.name}_rows", node, node)
        along = constant(f"{node.name}_axis", np.array(split, np.int32))
        parts = graph.add(ops.Split(num_splits=pieces), [along, source], name=f"{node.name}_parts", before=node,
                          origin=self.made(node)).outputs
        joined = self.insert(graph, ops.Concatenation(axis=join), parts, f"{node.name}_joined", node, node)
        op, target = reshape_to(node)
        swap(graph, node, op, [joined, target], self.made(node))
        return True


def exchange(node: Node) -> tuple[int, int, int, int] | None:
    """(lead, a, b, row) of a TRANSPOSE of [lead,a,b,row] to [lead,b,a,row] with long rows and few of a or b."""
    perm, source = permutation(node), node.input(0)
    if perm is None or source.is_constant or _is_quantized(node) or 0 in source.shape:
        return None
    shape, order = simplified(source.shape, perm)
    if order == (1, 0, 2):
        shape, order = (1, *shape), (0, 2, 1, 3)
    if order != (0, 2, 1, 3) or shape[3] < SHORTEST_ROW or min(shape[1:3]) > MOST_PIECES:
        return None
    return shape[0], shape[1], shape[2], shape[3]


class FewerAxes(Pass):
    """Write a TRANSPOSE of more than four axes with those that it does not part joined.

    Before:  %1 = TRANSPOSE(%x, [0,1,3,2,4,5])      x: [1,8,7,8,7,96]
    After:   %1 = RESHAPE(TRANSPOSE(RESHAPE(%x, [8,7,8,672]), [0,2,1,3]))
    """

    name = "fewer-axes"
    kinds = (ops.Transpose,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Reshape before and behind, where four axes do."""
        perm, source = permutation(node), node.input(0)
        if perm is None or len(perm) <= IMAGE_RANK or _is_quantized(node) or moves_only_ones(source.shape, perm):
            return False
        shape, order = simplified(source.shape, perm)
        if len(shape) > IMAGE_RANK:
            return False
        joined = self.insert(graph, ops.Reshape(new_shape=shape), [source, _integers(shape)], f"{node.name}_rows",
                             node, node)
        turned = self.insert(graph, ops.Transpose(), [joined, _integers(order)], f"{node.name}_turned", node, node)
        assert turned.shape == permute(shape, order)
        op, target = reshape_to(node)
        swap(graph, node, op, [turned, target], self.made(node))
        return True


def _is_quantized(node: Node) -> bool:
    return node.input(0).quantization is not None or node.output.quantization is not None


def _integers(values: tuple[int, ...]) -> Tensor:
    return constant("order", np.array(values, np.int32))
