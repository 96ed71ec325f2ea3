"""Paddings of signals moved behind the reshape that makes them images."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import RESHAPES, constant, only_user, producer, swap
from vitrify.passes.layout.perms import groups
from vitrify.passes.layout.rule import reshape_node

PADS = (ops.Pad, ops.PadV2, ops.MirrorPad)
IMAGE_RANK = 4


class ReshapeEarlier(Pass):
    """Pad after a reshape to four axes, not before it.

    Before:  %1 = PAD(%x, on axis 2);  %2 = RESHAPE(%1, [1,1,64,1]);  %3 = CONV_2D(%2, w, b)      x: [1,1,62]
    After:   %1 = RESHAPE(%x, [1,1,62,1]);  %2 = PAD(%1, on axis 2);  %3 = CONV_2D(%2, w, b)
    The reshape meets the one before, and compilers take a PAD of four axes.
    """

    name = "reshape-earlier"
    kinds = RESHAPES

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Exchange padding and reshape, where the reshape only adds axes of extent 1 and is the only reader."""
        pad = producer(node.input(0), *PADS)
        if pad is None or only_user(node.input(0)) is not node or node.output.quantization is not None:
            return False
        source, amounts, shape = pad.input(0), pad.input(1).data, node.output.shape
        places = _places(pad.output.shape, shape)
        if amounts is None or places is None or len(shape) != IMAGE_RANK or len(source.shape) >= IMAGE_RANK:
            return False
        if amounts[[axis for axis in range(len(source.shape)) if axis not in places]].any():
            return False
        table = np.zeros((IMAGE_RANK, 2), np.int32)
        early = [1] * IMAGE_RANK
        for axis, place in places.items():
            table[place], early[place] = amounts[axis], source.shape[axis]
        image = reshape_node(graph, source, tuple(early), source.origin.by(self.name), before=node)
        image.origin = self.made(node)
        inputs: list[Tensor | None] = [image.output, constant(pad.input(1).name, table), *pad.inputs[2:]]
        swap(graph, node, pad.op, inputs, self.made(pad, node))
        return True


def _places(before: tuple[int, ...], after: tuple[int, ...]) -> dict[int, int] | None:
    """Where each axis that is not of extent 1 goes; None when the reshape joins or splits axes."""
    runs = groups(before, after)
    if runs is None or any(len(left) != 1 or len(right) != 1 for left, right in runs):
        return None
    return {left[0]: right[0] for left, right in runs}
