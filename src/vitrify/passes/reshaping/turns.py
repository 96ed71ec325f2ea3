"""TRANSPOSEs that are left, one behind the other with reshapes between: as one, and patches without any."""

from __future__ import annotations

from itertools import accumulate, pairwise
from operator import mul

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import RESHAPES, constant, only_user, producer, swap, sweep
from vitrify.passes.layout.perms import Perm, Shape, inverse, permute
from vitrify.passes.layout.region import permutation
from vitrify.passes.reshaping.reshapes import reshape_to
from vitrify.passes.reshaping.rows import SHORTEST_ROW, simplified

Movement = tuple[Shape, Perm]
FEW_AXES = 4
MOST_PATCHES = 16
"""More slices than this cost more than the TRANSPOSE."""
APART: Perm = (1, 3, 0, 2, 4)
"""From [H,A,W,B,C] to [A,B,H,W,C]: pixels at the same place of each patch of AxB together."""
TOGETHER = inverse(APART)
LONGEST_CHAIN = 8


def patches(movement: Movement) -> bool:
    """True for a movement of patches' pixels with long rows."""
    shape, perm = movement
    if perm not in (APART, TOGETHER):
        return False
    pieces = shape[1] * shape[3] if perm == APART else shape[0] * shape[1]
    return pieces <= MOST_PATCHES and shape[4] >= SHORTEST_ROW


def combined(first: Movement, second: Movement) -> Movement | None:
    """Two movements as one, where the second reads the first's result in another shape; None when axes do not fit."""
    between, split = permute(*first), second[0]
    ends = sorted({*accumulate(reversed(between), mul), *accumulate(reversed(split), mul), 1}, reverse=True)
    if any(long % short for long, short in pairwise(ends)):
        return None
    atoms = [long // short for long, short in pairwise(ends)]
    before, after = _runs(between, atoms), _runs(split, atoms)
    stored = [atom for axis in inverse(first[1]) for atom in before[axis]]
    wanted = [atom for axis in second[1] for atom in after[axis]]
    return simplified(tuple(atoms[i] for i in stored), tuple(stored.index(i) for i in wanted))


def _runs(shape: Shape, atoms: list[int]) -> list[list[int]]:
    """Which of ``atoms`` each axis consists of."""
    runs, i = [], 0
    for extent in shape:
        run, size = [], 1
        while size < extent:
            run.append(i)
            size, i = size * atoms[i], i + 1
        runs.append(run)
    return runs


class MergeTurns(Pass):
    """Make one movement of several TRANSPOSEs with reshapes between.

    Before:  %1 = TRANSPOSE(%x, [0,3,1,2]);  %2 = RESHAPE(%1, [1024,2,16,2]);  %3 = TRANSPOSE(%2, [0,2,1,3]);
             %4 = RESHAPE(%3, [1,64,256,4]);  %5 = TRANSPOSE(%4, [0,3,2,1])             x: [1,32,32,64]
    After:   %5 = RESHAPE(TRANSPOSE(RESHAPE(%x, [16,2,16,2,64]), [1,3,0,2,4]))
    Only where four axes do, or where patches are taken apart, which needs no TRANSPOSE then.
    """

    name = "merge-turns"
    kinds = (ops.Transpose,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace the longest chain behind which ``node`` stands."""
        movement, start = _movement(node), node
        best: tuple[Node, Movement] | None = None
        for _ in range(LONGEST_CHAIN):
            before = _turn_before(start)
            earlier = _movement(before) if before is not None else None
            if before is None or earlier is None or movement is None:
                break
            movement, start = combined(earlier, movement), before
            if movement is not None and (len(movement[0]) <= FEW_AXES or patches(movement)):
                best = before, movement
        if best is None:
            return False
        self._replace(graph, node, *best)
        return True

    def _replace(self, graph: Graph, node: Node, first: Node, movement: Movement) -> None:
        shape, perm = movement
        source, old = first.input(0), node.input(0)
        rows = self.insert(graph, ops.Reshape(new_shape=shape), [source, _integers(shape)], f"{node.name}_rows", node,
                           first, node)
        turned = self.insert(graph, ops.Transpose(), [rows, _integers(perm)], f"{node.name}_turned", node, first, node)
        op, target = reshape_to(node)
        swap(graph, node, op, [turned, target], self.made(first, node))
        sweep(graph, old)


class PatchesByParts(Pass):
    """Take patches apart, and put them together, by slices and joins along long rows.

    Before:  %2 = TRANSPOSE(%1, [1,3,0,2,4])                      %1: [H,A,W,B,C]
    After:   ... = SPLIT(SPLIT(RESHAPE(%1, [H,A*W,B*C]), A), B);  %2 = RESHAPE(CONCATENATION(...))
    """

    name = "patches-by-parts"
    kinds = (ops.Transpose,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace either direction."""
        movement = _movement(node)
        if movement is None or node.input(0).is_constant or not patches(simplified(*movement)):
            return False
        shape, perm = simplified(*movement)
        joined = self._apart(graph, node, shape) if perm == APART else self._together(graph, node, shape)
        op, target = reshape_to(node)
        swap(graph, node, op, [joined, target], self.made(node))
        return True

    def _apart(self, graph: Graph, node: Node, shape: Shape) -> Tensor:
        high, a, wide, b, row = shape
        x = self._reshaped(graph, node, (high, a * wide, b * row))
        parts = [piece for part in self._split(graph, node, x, 1, a) for piece in self._split(graph, node, part, 2, b)]
        return self._joined(graph, node, parts, 0)

    def _together(self, graph: Graph, node: Node, shape: Shape) -> Tensor:
        a, b, high, wide, row = shape
        parts = self._split(graph, node, self._reshaped(graph, node, (a * b * high, wide, row)), 0, a * b)
        rows = [self._joined(graph, node, parts[i * b:(i + 1) * b], 2) for i in range(a)]
        return self._joined(graph, node, rows, 1)

    def _reshaped(self, graph: Graph, node: Node, shape: Shape) -> Tensor:
        return self.insert(graph, ops.Reshape(new_shape=shape), [node.input(0), _integers(shape)],
                           f"{node.name}_rows", node, node)

    def _split(self, graph: Graph, node: Node, x: Tensor, axis: int, count: int) -> tuple[Tensor, ...]:
        if count == 1:
            return (x,)
        along = constant(f"{node.name}_axis", np.array(axis, np.int32))
        return graph.add(ops.Split(num_splits=count), [along, x], name=f"{node.name}_parts", before=node,
                         origin=self.made(node)).outputs

    def _joined(self, graph: Graph, node: Node, parts: list[Tensor] | tuple[Tensor, ...], axis: int) -> Tensor:
        if len(parts) == 1:
            return parts[0]
        return self.insert(graph, ops.Concatenation(axis=axis), parts, f"{node.name}_joined", node, node)


def _movement(node: Node) -> Movement | None:
    """What a float TRANSPOSE by a constant moves."""
    perm, source = permutation(node), node.input(0)
    plain = source.dtype is DType.FLOAT32 and source.quantization is None and node.output.quantization is None
    return (source.shape, perm) if perm is not None and plain and 0 not in source.shape else None


def _turn_before(node: Node) -> Node | None:
    """The TRANSPOSE before a reshape before ``node``, where nothing else reads what is between."""
    reshape = producer(node.input(0), *RESHAPES)
    if reshape is None or only_user(reshape.output) is not node:
        return None
    first = producer(reshape.input(0), ops.Transpose)
    return first if first is not None and only_user(first.output) is reshape else None


def _integers(values: tuple[int, ...]) -> Tensor:
    return constant("order", np.array(values, np.int32))
