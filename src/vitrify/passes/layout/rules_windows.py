"""Layout of channel-last operators: a 1x1 window takes its rows in any order; height and width may change places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vitrify import ops
from vitrify.ir import Node, Operator, Tensor
from vitrify.passes.layout.perms import Perm, is_identity
from vitrify.passes.layout.rule import Anchor, Editor, LayoutRule, Layouts, rule
from vitrify.passes.layout.rules_elementwise import KeepsLast

Rewritten = tuple[Operator, Sequence[Tensor | None]]
TURNED: Perm = (0, 2, 1, 3)
"""Height and width exchanged."""


@rule
class Convolving(LayoutRule):
    """CONV_2D and DEPTHWISE_CONV_2D."""

    kinds = (ops.Conv2D, ops.DepthwiseConv2D)

    def spread(self, node: Node, anchor: Anchor) -> Layouts | None:
        """Any order of rows for a pointwise kernel, height and width exchanged for others."""
        perm = anchor.perm
        if len(perm) != 4 or perm[-1] != 3 or not node.input(1).is_constant:
            return None
        if perm != TURNED and not _is_pointwise(node):
            return None
        return Layouts((perm, *(None for _ in node.inputs[1:])), (perm,))

    def rewrite(self, node: Node, layouts: Layouts, inputs: list[Tensor | None], editor: Editor) -> Rewritten:
        """Turn kernel, strides and dilations."""
        op = node.op
        assert isinstance(op, ops.Conv2D | ops.DepthwiseConv2D)
        if _is_pointwise(node):
            return op, inputs
        kernel = node.input(1)
        assert kernel.data is not None
        inputs[1] = editor.constant(kernel, kernel.data.transpose(TURNED))
        return replace(op, stride_w=op.stride_h, stride_h=op.stride_w, dilation_w_factor=op.dilation_h_factor,
                       dilation_h_factor=op.dilation_w_factor), inputs


def _is_pointwise(node: Node) -> bool:
    op = node.op
    assert isinstance(op, ops.Conv2D | ops.DepthwiseConv2D)
    return node.input(1).shape[1:3] == (1, 1) and op.stride_w == op.stride_h == 1


@rule
class Pooling(LayoutRule):
    """Pools: height and width exchanged."""

    kinds = (ops.AveragePool2D, ops.MaxPool2D)

    def spread(self, node: Node, anchor: Anchor) -> Layouts | None:
        """Only height and width exchanged."""
        return Layouts((TURNED,), (TURNED,)) if anchor.perm == TURNED else None

    def rewrite(self, node: Node, layouts: Layouts, inputs: list[Tensor | None], editor: Editor) -> Rewritten:
        """Turn window and strides."""
        op = node.op
        assert isinstance(op, ops.AveragePool2D | ops.MaxPool2D)
        return replace(op, stride_w=op.stride_h, stride_h=op.stride_w, filter_width=op.filter_height,
                       filter_height=op.filter_width), inputs


@rule
class Resizing(LayoutRule):
    """Resizes: height and width exchanged."""

    kinds = (ops.ResizeBilinear, ops.ResizeNearestNeighbor)

    def spread(self, node: Node, anchor: Anchor) -> Layouts | None:
        """Only height and width exchanged; the size must be constant."""
        turned = anchor.perm == TURNED and node.input(1).is_constant
        return Layouts((TURNED, None), (TURNED,)) if turned else None

    def rewrite(self, node: Node, layouts: Layouts, inputs: list[Tensor | None], editor: Editor) -> Rewritten:
        """Turn the size."""
        size = node.input(1)
        assert size.data is not None
        inputs[1] = editor.integers(size, size.data[::-1])
        return node.op, inputs


@rule
class Dense(KeepsLast):
    """FULLY_CONNECTED that keeps its input's axes: rows in any order."""

    kinds = (ops.FullyConnected,)

    def spread(self, node: Node, anchor: Anchor) -> Layouts | None:
        """Any permutation that leaves the last axis, for constant weights."""
        assert isinstance(node.op, ops.FullyConnected)
        if not node.op.keep_num_dims or not node.input(1).is_constant:
            return None
        return super().spread(node, anchor)


@rule
class Multiplying(LayoutRule):
    """BATCH_MATMUL: an exchange of the last two axes becomes an adjoint flag, or an exchange of the operands."""

    kinds = (ops.BatchMatMul,)

    def spread(self, node: Node, anchor: Anchor) -> Layouts | None:
        """Rows and columns of one operand, or of the product, exchanged; the batches stay."""
        rank = len(anchor.perm)
        if rank < 2 or anchor.perm != _swapped(rank):
            return None
        if anchor.is_output:
            return Layouts((None, None), (anchor.perm,))
        inputs: list[Perm | None] = [None, None]
        inputs[anchor.place] = anchor.perm
        return Layouts(tuple(inputs), (tuple(range(len(node.output.shape))),))

    def rewrite(self, node: Node, layouts: Layouts, inputs: list[Tensor | None], editor: Editor) -> Rewritten:
        """Flip the flag of the exchanged operand; exchange the operands, both turned, for an exchanged product."""
        op = node.op
        assert isinstance(op, ops.BatchMatMul)
        if not is_identity(layouts.outputs[0]):
            return replace(op, adj_x=not op.adj_y, adj_y=not op.adj_x), inputs[::-1]
        x, y = (perm is not None for perm in layouts.inputs)
        return replace(op, adj_x=op.adj_x != x, adj_y=op.adj_y != y), inputs


def _swapped(rank: int) -> Perm:
    return (*range(rank - 2), rank - 1, rank - 2)
