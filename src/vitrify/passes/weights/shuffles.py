"""Channels put into another order: done by the weights of the convolutions behind, or by one of ones and zeros."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Graph, Node, Tensor
from vitrify.ir.graph import Array
from vitrify.passes.base import Pass
from vitrify.passes.graphs import RESHAPES, constant, only_user, producer, swap, sweep
from vitrify.passes.layout.region import permutation
from vitrify.passes.layout.rules_axes import axis_list
from vitrify.passes.weights.scales import weights_of, with_weights

IMAGE_RANK = 4
MOST_CHANNELS = 1024
"""A kernel of ones and zeros for more channels costs more than the TRANSPOSE."""


class ChannelShuffle(Pass):
    """Let weights take channels in another order, and halves of them from the whole.

    Before:  %1 = RESHAPE(%x, [1,H,W,G,N]);  %2 = TRANSPOSE(%1, [0,1,2,4,3]);  %3 = RESHAPE(%2, [1,H,W,N*G])
             %4, %5 = SPLIT(%3, 2);  %6 = CONV_2D(%5, w, b)
    After:   %4 = CONV_2D(%x, ones and zeros);  %6 = CONV_2D(%x, w with its columns in %x's order, 0 elsewhere)
    Exact: every product that is added is one of before, or 0.
    """

    name = "channel-shuffle"
    kinds = (ops.Transpose,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace reshape, transpose and reshape, and what takes parts of the result."""
        order = shuffled(node)
        last = only_user(node.output)
        if order is None or last is None or len(order) > MOST_CHANNELS:
            return False
        source = producer(node.input(0), *RESHAPES)
        assert source is not None
        taken = [part for user, index in last.output.uses for part in _parts(user, index, order)]
        if last.output.is_output or sum(len(user.outputs) for user in last.output.users) > len(taken):
            taken.append((last.output, order))
        for part, channels in taken:
            self._replace(graph, source.input(0), part, channels, node)
        sweep(graph, last.output, *(part for part, _ in taken))
        return True

    def _replace(self, graph: Graph, whole: Tensor, part: Tensor, channels: Array, shuffle: Node) -> None:
        """Give the readers of ``part`` the same from ``whole``."""
        uses = part.uses
        direct = [user for user, index in uses if index == 0 and _takes(user, len(channels), whole.shape[-1])]
        for user in direct:
            found = weights_of(user)
            assert found is not None
            places, weights, bias = found
            wide = np.zeros((*weights.shape[:-1], whole.shape[-1]), np.float32)
            wide[..., channels] = weights
            inputs = with_weights(user, places, wide, bias)
            inputs[0] = whole
            swap(graph, user, user.op, inputs, self.made(shuffle, user))
        if part.is_output or part.uses:
            kernel = np.zeros((len(channels), 1, 1, whole.shape[-1]), np.float32)
            kernel[np.arange(len(channels)), 0, 0, channels] = 1
            inputs = [whole, constant(f"{part.name}_order", kernel), constant(f"{part.name}_bias", np.zeros(
                len(channels), np.float32))]
            maker = part.producer
            assert maker is not None
            chosen = graph.add(ops.Conv2D(stride_h=1, stride_w=1), inputs, name=maker.name, before=maker,
                               origin=self.made(shuffle, maker)).output
            chosen.name, chosen.origin = f"{part.name}_shuffled", part.origin
            graph.replace_uses(part, chosen)


def shuffled(node: Node) -> Array | None:
    """Which channel comes from where, for a TRANSPOSE between reshapes that moves parts of an image's channels."""
    before, perm = producer(node.input(0), *RESHAPES), permutation(node)
    after = only_user(node.output)
    if before is None or perm is None or after is None or not isinstance(after.op, RESHAPES):
        return None
    source, shape, whole = before.input(0), node.input(0).shape, after.output
    if source.shape != whole.shape or len(whole.shape) != IMAGE_RANK or source.dtype is not DType.FLOAT32:
        return None
    lead = IMAGE_RANK - 1
    if shape[:lead] != source.shape[:lead] or perm[:lead] != tuple(range(lead)):
        return None
    if any(t.quantization is not None for t in (source, node.input(0), node.output, whole)):
        return None
    tail = tuple(axis - lead for axis in perm[lead:])
    return np.arange(whole.shape[-1]).reshape(shape[lead:]).transpose(tail).reshape(-1)


def _parts(user: Node, index: int, order: Array) -> Sequence[tuple[Tensor, Array]]:
    """The runs of channels that a SPLIT or SLICE takes of the shuffled ones, each with where its channels come from."""
    op, channel_axis = user.op, IMAGE_RANK - 1
    if isinstance(op, ops.Split) and axis_list(user.inputs[0], IMAGE_RANK) == [channel_axis]:
        return list(zip(user.outputs, np.split(order, len(user.outputs)), strict=True))
    if isinstance(op, ops.SplitV) and axis_list(user.inputs[2], IMAGE_RANK) == [channel_axis]:
        ends = np.cumsum([t.shape[-1] for t in user.outputs])
        return list(zip(user.outputs, np.split(order, ends[:-1]), strict=True))
    if isinstance(op, ops.Slice) and index == 0 and user.output.shape[:-1] == user.input(0).shape[:-1]:
        begin = user.input(1).data
        if begin is not None:
            return [(user.output, order[int(begin[-1]):int(begin[-1]) + user.output.shape[-1]])]
    return []


def _takes(user: Node, channels: int, all_channels: int) -> bool:
    """True for a convolution that can read more channels: one of 1x1, or one that reads all of them anyway."""
    found = weights_of(user) if isinstance(user.op, ops.Conv2D) else None
    if found is None or found[1].shape[-1] != channels:
        return False
    return channels == all_channels or found[1].shape[1:3] == (1, 1)
