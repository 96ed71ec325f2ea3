"""Pixels to channels and back, written as RESHAPE, TRANSPOSE of six axes, RESHAPE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Graph, Node, Operator, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import RESHAPES, constant, only_user, producer, swap
from vitrify.passes.layout.region import permutation

TO_LAST, TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Form:
    """A way to write blocks: the six axes and their order, the operator, and whether channels stand second.

    ``crd``: the channel stands before its place in the block, and not behind it as TFLite has it.
    """

    split: Shape
    perm: Shape
    op: Operator
    first: bool
    crd: bool


class PixelBlocks(Pass):
    """Recognise a pixel shuffle or its inverse, channels second or last.

    Before:  %1 = RESHAPE(%x, [N,C,B,B,H,W]);  %2 = TRANSPOSE(%1, [0,1,4,2,5,3]);  %3 = RESHAPE(%2, [N,C,H*B,W*B])
    After:   %3 = DEPTH_TO_SPACE(%x, B), between TRANSPOSEs to NHWC and back that the layout removes
    Where the channel stands before its place in the block, as here, the channels are shuffled before (behind
    SPACE_TO_DEPTH), which goes into weights.
    """

    name = "pixel-blocks"
    kinds = (ops.Transpose,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace the three nodes."""
        before, after, perm = producer(node.input(0), *RESHAPES), only_user(node.output), permutation(node)
        if before is None or after is None or perm is None or not isinstance(after.op, RESHAPES):
            return False
        x, result = before.input(0), after.output
        if len(x.shape) != 4 or len(result.shape) != 4 or x.dtype is not DType.FLOAT32:
            return False
        written = _movement(node.input(0).shape, perm)
        for form in _forms(x.shape, result.shape):
            if _movement(form.split, form.perm) == written:
                self._replace(graph, x, after, form, (before, node, after))
                return True
        return False

    def _replace(self, graph: Graph, x: Tensor, last: Node, form: Form, parts: Sequence[Node]) -> None:
        def put(op: Operator, inputs: list[Tensor | None]) -> Tensor:
            return self.insert(graph, op, inputs, f"{last.name}_{op.kind.lower()}", last, *parts)

        def reshape(t: Tensor, shape: Shape) -> Tensor:
            return put(ops.Reshape(new_shape=shape), [t, constant("shape", np.array(shape, np.int32))])

        def transpose(t: Tensor, perm: Shape) -> Tensor:
            return put(ops.Transpose(), [t, constant("perm", np.array(perm, np.int32))])

        def regrouped(t: Tensor, groups: int) -> Tensor:
            shape = (*t.shape[:3], groups, t.shape[3] // groups)
            return reshape(transpose(reshape(t, shape), (0, 1, 2, 4, 3)), t.shape)

        y = transpose(x, TO_LAST) if form.first else x
        deep = isinstance(form.op, ops.DepthToSpace)
        squares = form.op.block_size**2 if isinstance(form.op, ops.DepthToSpace | ops.SpaceToDepth) else 1
        if deep and form.crd:
            y = regrouped(y, y.shape[3] // squares)
        y = put(form.op, [y])
        if not deep and form.crd:
            y = regrouped(y, squares)
        shape = constant("shape", np.array(last.output.shape, np.int32))
        if form.first:
            perm = constant("perm", np.array(TO_FIRST, np.int32))
            swap(graph, last, ops.Transpose(), [y, perm], self.made(*parts))
        else:
            swap(graph, last, ops.Reshape(new_shape=last.output.shape), [y, shape], self.made(*parts))


def _forms(x: Shape, y: Shape) -> Iterator[Form]:
    """The ways to write the blocks that bring ``x`` to ``y``, both of four axes."""
    for first in (True, False):
        (n, h, w, c), (m, oh, ow, oc) = ((s[0], s[2], s[3], s[1]) if first else s for s in (x, y))
        if n != m or 0 in (h, w, oh, ow):
            continue
        b = oh // h if oh > h else h // oh
        if oh > h and (oh, ow, oc * b * b) == (h * b, w * b, c):
            deep = ops.DepthToSpace(block_size=b)
            if first:
                yield Form((n, oc, b, b, h, w), (0, 1, 4, 2, 5, 3), deep, True, crd=True)
                yield Form((n, b, b, oc, h, w), (0, 3, 4, 1, 5, 2), deep, True, crd=False)
            else:
                yield Form((n, h, w, oc, b, b), (0, 1, 4, 2, 5, 3), deep, False, crd=True)
                yield Form((n, h, w, b, b, oc), (0, 1, 3, 2, 4, 5), deep, False, crd=False)
        if oh < h and (oh * b, ow * b, oc) == (h, w, c * b * b):
            flat = ops.SpaceToDepth(block_size=b)
            if first:
                yield Form((n, c, oh, b, ow, b), (0, 1, 3, 5, 2, 4), flat, True, crd=True)
                yield Form((n, c, oh, b, ow, b), (0, 3, 5, 1, 2, 4), flat, True, crd=False)
            else:
                yield Form((n, oh, b, ow, b, c), (0, 1, 3, 5, 2, 4), flat, False, crd=True)
                yield Form((n, oh, b, ow, b, c), (0, 1, 3, 2, 4, 5), flat, False, crd=False)


def _movement(shape: Shape, perm: Shape) -> tuple[Shape, Shape]:
    """What a transpose does, however its axes are cut: without axes of extent 1, neighbours that stay so as one."""
    order = [axis for axis in perm if shape[axis] != 1]
    groups: list[list[int]] = []
    for axis in order:
        previous = groups[-1][-1] if groups else None
        if previous is not None and all(shape[i] == 1 for i in range(previous + 1, axis)) and axis > previous:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    starts = sorted(g[0] for g in groups)
    extents = {g[0]: int(np.prod([shape[i] for i in g])) for g in groups}
    return tuple(extents[s] for s in starts), tuple(starts.index(g[0]) for g in groups)
