"""Layout of operators that name axes in an attribute or in a constant input: the numbers are remapped."""

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


def axis_list(tensor: Tensor | None, rank: int) -> list[int] | None:
    """The axes in a constant input, none negative; None when it is not a constant."""
    if tensor is None or tensor.data is None:
        return None
    return [int(a) + rank if a < 0 else int(a) for a in np.atleast_1d(tensor.data)]


@rule
class Concatenating(LayoutRule):
    """CONCATENATION: the same permutation on every part."""

    kinds = (ops.Concatenation,)

    def spread(self, node: Node, anchor: Anchor) -> Layouts | None:
        """Same permutation everywhere."""
        return Layouts((anchor.perm,) * len(node.inputs), (anchor.perm,))

    def rewrite(self, node: Node, layouts: Layouts, inputs: list[Tensor | None], editor: Editor) -> Rewritten:
        """Remap the axis."""
        assert isinstance(node.op, ops.Concatenation)
        perm = layouts.outputs[0]
        return replace(node.op, axis=perm.index(node.op.axis % len(perm))), inputs


@rule
class Splitting(LayoutRule):
    """SPLIT and SPLIT_V: the same permutation on every part."""

    kinds = (ops.Split, ops.SplitV)

    def spread(self, node: Node, anchor: Anchor) -> Layouts | None:
        """Same permutation everywhere; the axis must be constant."""
        data, axis = self._places(node)
        if not node.input(axis).is_constant:
            return None
        inputs: list[Perm | None] = [None] * len(node.inputs)
        inputs[data] = anchor.perm
        return Layouts(tuple(inputs), (anchor.perm,) * len(node.outputs))

    def rewrite(self, node: Node, layouts: Layouts, inputs: list[Tensor | None], editor: Editor) -> Rewritten:
        """Remap the axis."""
        _, place = self._places(node)
        perm, like = layouts.outputs[0], node.input(place)
        axes = axis_list(like, len(perm)) or [0]
        assert like.data is not None
        inputs[place] = editor.integers(like, np.reshape(perm.index(axes[0]), like.data.shape))
        return node.op, inputs

    @staticmethod
    def _places(node: Node) -> tuple[int, int]:
        return (1, 0) if isinstance(node.op, ops.Split) else (0, 2)


class Reducing(LayoutRule):
    """An operator that removes the axes named in its second input, or keeps them with extent 1."""

    flattens: ClassVar[bool] = False

    def spread(self, node: Node, anchor: Anchor) -> Layouts | None:
        """The permutation without the removed axes; backwards the removed axes are put at their own numbers."""
        axes = self._axes(node)
        if axes is None:
            return None
        gone = [] if getattr(node.op, "keep_dims", False) else axes
        given = insert(anchor.perm, gone) if anchor.is_output else anchor.perm
        return Layouts((given, None), (drop(given, gone),))

    def rewrite(self, node: Node, layouts: Layouts, inputs: list[Tensor | None], editor: Editor) -> Rewritten:
        """Remap the axes."""
        axes, perm, like = self._axes(node), layouts.inputs[0], node.input(1)
        assert axes is not None
        assert perm is not None
        assert like.data is not None
        places = sorted(perm.index(a) for a in axes)
        inputs[1] = editor.integers(like, np.reshape(places, like.data.shape))
        return node.op, inputs

    @staticmethod
    def _axes(node: Node) -> list[int] | None:
        rank = len(node.input(0).shape)
        axes = axis_list(node.optional(1), rank)
        return axes if axes is not None and len(set(axes)) == len(axes) and rank else None


@rule
class Reductions(Reducing):
    """Reductions over axes; the order in which floats are added may change."""

    kinds = (ops.Mean, ops.Sum, ops.ReduceProd, ops.ReduceMax, ops.ReduceMin, ops.ReduceAny, ops.ReduceAll,
             ops.ArgMax, ops.ArgMin)


@rule
class AxisInput(LayoutRule):
    """Operators of unchanged shape whose second input names axes."""

    kinds = (ops.Cumsum, ops.ReverseV2)

    def spread(self, node: Node, anchor: Anchor) -> Layouts | None:
        """Same permutation on both sides; the axes must be constant."""
        return Layouts((anchor.perm, None), (anchor.perm,)) if node.input(1).is_constant else None

    def rewrite(self, node: Node, layouts: Layouts, inputs: list[Tensor | None], editor: Editor) -> Rewritten:
        """Remap the axes."""
        perm, like = layouts.outputs[0], node.input(1)
        axes = axis_list(like, len(perm)) or []
        assert like.data is not None
        inputs[1] = editor.integers(like, np.reshape([perm.index(a) for a in axes], like.data.shape))
        return node.op, inputs


@rule
class Gathering(LayoutRule):
    """GATHER by one index or a list of them: the axis goes, or stays."""

    kinds = (ops.Gather,)

    def spread(self, node: Node, anchor: Anchor) -> Layouts | None:
        """The permutation, without the axis when a single index is taken."""
        assert isinstance(node.op, ops.Gather)
        indices = node.input(1)
        if node.op.batch_dims or len(indices.shape) > 1:
            return None
        axis = [node.op.axis % len(node.input(0).shape)] if indices.shape == () else []
        given = insert(anchor.perm, axis) if anchor.is_output else anchor.perm
        return Layouts((given, None), (drop(given, axis),))

    def rewrite(self, node: Node, layouts: Layouts, inputs: list[Tensor | None], editor: Editor) -> Rewritten:
        """Remap the axis."""
        assert isinstance(node.op, ops.Gather)
        perm = layouts.inputs[0]
        assert perm is not None
        return replace(node.op, axis=perm.index(node.op.axis % len(perm))), inputs


@rule
class Packing(LayoutRule):
    """PACK and UNPACK: the stacking axis comes or goes."""

    kinds = (ops.Pack, ops.Unpack)

    def spread(self, node: Node, anchor: Anchor) -> Layouts | None:
        """The permutation with and without the stacking axis."""
        assert isinstance(node.op, ops.Pack | ops.Unpack)
        packs = isinstance(node.op, ops.Pack)
        long_side = node.output if packs else node.input(0)
        axis = [node.op.axis % len(long_side.shape)]
        long = anchor.perm if anchor.is_output == packs else insert(anchor.perm, axis)
        short = drop(long, axis)
        if packs:
            return Layouts((short,) * len(node.inputs), (long,))
        return Layouts((long,), (short,) * len(node.outputs))

    def rewrite(self, node: Node, layouts: Layouts, inputs: list[Tensor | None], editor: Editor) -> Rewritten:
        """Remap the axis."""
        assert isinstance(node.op, ops.Pack | ops.Unpack)
        long = layouts.outputs[0] if isinstance(node.op, ops.Pack) else layouts.inputs[0]
        assert long is not None
        return replace(node.op, axis=long.index(node.op.axis % len(long))), inputs
