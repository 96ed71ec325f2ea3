"""Layout of operators with one number per axis in constant inputs (pads, begins, sizes): the numbers are permuted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from vitrify import ops
from vitrify.ir import Node, Operator, Tensor
from vitrify.passes.layout.perms import Perm, drop, insert
from vitrify.passes.layout.rule import Anchor, Editor, LayoutRule, Layouts, rule

Rewritten = tuple[Operator, Sequence[Tensor | None]]


class PerAxis(LayoutRule):
    """Constant inputs at ``places`` hold one row per axis of the first input."""

    places: ClassVar[tuple[int, ...]] = (1,)

    def spread(self, node: Node, anchor: Anchor) -> Layouts | None:
        """Same permutation on both sides; the rows must be constant and of the same rank."""
        rank = len(anchor.perm)
        for place in self.places:
            rows = node.input(place)
            if rows.data is None or len(rows.data) != rank:
                return None
        if len(node.input(0).shape) != rank or len(node.output.shape) != rank:
            return None
        others = (None,) * (len(node.inputs) - 1)
        return Layouts((anchor.perm, *others), (anchor.perm,))

    def rewrite(self, node: Node, layouts: Layouts, inputs: list[Tensor | None], editor: Editor) -> Rewritten:
        """Permute the rows."""
        for place in self.places:
            like = node.input(place)
            assert like.data is not None
            inputs[place] = editor.integers(like, like.data[list(layouts.outputs[0])])
        return node.op, inputs


@rule
class OneTable(PerAxis):
    """Paddings, multiples and target shapes."""

    kinds = (ops.Pad, ops.PadV2, ops.MirrorPad, ops.Tile, ops.BroadcastTo)


@rule
class Slicing(PerAxis):
    """SLICE: begin and size."""

    kinds = (ops.Slice,)
    places = (1, 2)


@rule
class StridedSlicing(LayoutRule):
    """STRIDED_SLICE without new axes: begin, end, strides and the masks' bits."""

    kinds = (ops.StridedSlice,)

    def spread(self, node: Node, anchor: Anchor) -> Layouts | None:
        """The permutation without the axes that shrink away."""
        assert isinstance(node.op, ops.StridedSlice)
        rank = len(node.input(0).shape)
        tables = [node.input(i).data for i in (1, 2, 3)]
        if node.op.ellipsis_mask or node.op.new_axis_mask or any(t is None or len(t) != rank for t in tables):
            return None
        gone = [a for a in range(rank) if node.op.shrink_axis_mask >> a & 1]
        given = insert(anchor.perm, gone) if anchor.is_output else anchor.perm
        return Layouts((given, None, None, None), (drop(given, gone),))

    def rewrite(self, node: Node, layouts: Layouts, inputs: list[Tensor | None], editor: Editor) -> Rewritten:
        """Permute the rows and the bits."""
        assert isinstance(node.op, ops.StridedSlice)
        perm = layouts.inputs[0]
        assert perm is not None
        for place in (1, 2, 3):
            like = node.input(place)
            assert like.data is not None
            inputs[place] = editor.integers(like, np.asarray(like.data)[list(perm)])
        op = node.op
        return replace(op, begin_mask=_bits(op.begin_mask, perm), end_mask=_bits(op.end_mask, perm),
                       shrink_axis_mask=_bits(op.shrink_axis_mask, perm)), inputs


def _bits(mask: int, perm: Perm) -> int:
    """Reorder a mask's bits like axes."""
    return sum((mask >> axis & 1) << place for place, axis in enumerate(perm))
