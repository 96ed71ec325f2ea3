"""Bringing constant scales next to the weights that can take them over."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import Exactness, Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import by_constant, constant, only_user, per_channel, scalar, swap
from vitrify.passes.weights.scales import KINDS

LARGEST_QUOTIENT = 64.0
"""An offset grown by more than this, through a small scale, would cost the sum its precision."""


class ScaleAfterOffset(Pass):
    """Multiply after adding, when weights that read the sum can then take the factor over.

    Before:  %1 = MUL(%x, s);  %2 = ADD(%1, t);  %3 = CONV_2D(%2, w, b)
    After:   %1 = ADD(%x, t / s);  %2 = MUL(%1, s);  %3 = CONV_2D(%2, w, b)      (the MUL folds next)
    Equal in real arithmetic.
    """

    name = "scale-after-offset"
    exactness = Exactness.ROUNDING
    kinds = (ops.Add,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Exchange a scalar factor with the offset behind it."""
        added = by_constant(node, ops.Add)
        if added is None or only_user(added[0]) is not node or not _feeds_weights(node.output):
            return False
        product = added[0].producer
        scaled = by_constant(product, ops.Mul)
        factor = scalar(scaled[1]) if scaled is not None else None
        if scaled is None or product is None or not factor or added[1].data is None:
            return False
        offset = (added[1].data.astype(np.float64) / factor).astype(np.float32)
        if np.abs(offset).max(initial=0) > LARGEST_QUOTIENT * max(1.0, float(np.abs(added[1].data).max(initial=0))):
            return False
        term = constant(added[1].name, offset, added[1].origin)
        shifted = self.insert(graph, ops.Add(), [scaled[0], term], product.name, node, product, node)
        swap(graph, node, ops.Mul(), [shifted, scaled[1]], self.made(product, node))
        return True


class ScaleAfterPad(Pass):
    """Multiply after padding with 0, when weights that read the result can then take the factor over.

    Before:  %1 = MUL(%x, s);  %2 = PAD(%1);  %3 = CONV_2D(%2, w, b)
    After:   %1 = PAD(%x);  %2 = MUL(%1, s);  %3 = CONV_2D(%2, w, b)      (the MUL folds next)
    """

    name = "scale-after-pad"
    kinds = (ops.Pad,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Exchange a factor per channel with the spatial padding behind it."""
        value, amounts = node.input(0), node.input(1).data
        scaled = by_constant(value.producer, ops.Mul)
        if scaled is None or amounts is None or amounts[-1].any() or not _feeds_weights(value):
            return False
        assert scaled[1].data is not None
        if per_channel(scaled[1].data, value.shape[-1]) is None:
            return False
        padded = self.insert(graph, node.op, [scaled[0], node.input(1)], node.name, node, value.producer, node)
        swap(graph, node, ops.Mul(), [padded, scaled[1]], self.made(value.producer, node))
        return True


def _feeds_weights(tensor: Tensor) -> bool:
    """True when only operators with constant weights read ``tensor``, at once or behind a padding."""
    if tensor.is_output or not tensor.uses:
        return False
    return all(_takes_factor(*use) or (isinstance(use[0].op, ops.Pad) and not use[0].output.is_output
                                       and all(_takes_factor(*behind) for behind in use[0].output.uses))
               for use in tensor.uses)


def _takes_factor(user: Node, index: int) -> bool:
    places = KINDS.get(type(user.op))
    return places is not None and places.value == index and user.input(places.weights).is_constant
