"""Following the axis of heads from a product to the reshapes that split and join it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from vitrify import ops
from vitrify.ir import Node, Tensor
from vitrify.passes.graphs import RESHAPES, producer
from vitrify.passes.heads.lanes import Lane, lane
from vitrify.passes.layout.perms import Perm, drop, moves_only_ones
from vitrify.passes.layout.region import permutation
from vitrify.passes.layout.rules_axes import axis_list

LARGEST_REGION = 64
"""Nodes between splitting and joining; attention has about ten."""


class Pick(NamedTuple):
    """One index of an axis (query, key or value) taken from a turned reshape that also holds the heads.

    ``whole`` is the reshape's output, ``stack`` and ``heads`` its two axes, ``perm`` the order of the rest.
    """

    whole: Tensor
    stack: int
    heads: int
    item: int
    perm: Perm
    picker: Node


@dataclass
class Region:
    """The tensors with an axis of heads, the nodes between them, and where it starts and ends."""

    heads: int
    axes: dict[Tensor, int] = field(default_factory=dict)
    nodes: dict[Node, Lane] = field(default_factory=dict)
    picks: dict[Tensor, Pick] = field(default_factory=dict)
    ends: dict[Node, Tensor] = field(default_factory=dict)      # reshapes that join the axis with the next

    def saves(self) -> bool:
        """True when TRANSPOSEs go and none but exchanges of rows and columns is needed instead."""
        saved = False
        pickers = {pick.picker for pick in self.picks.values()}
        for node, found in self.nodes.items():
            if isinstance(node.op, ops.Transpose):
                perm = permutation(node) or ()
                saved |= not moves_only_ones(node.input(0).shape, perm) and not _swaps_matrix(perm)
                assert found.inputs[0] is not None
                rest = drop(perm, [found.inputs[0]])
                shape = tuple(n for i, n in enumerate(node.input(0).shape) if i != found.inputs[0])
                if not moves_only_ones(shape, rest) and not _swaps_matrix(rest):
                    return False
        for pick in self.picks.values():
            kept = [n for i, n in enumerate(pick.whole.shape) if i not in (pick.stack, pick.heads)]
            saved = True
            if not moves_only_ones(kept, pick.perm) and not _swaps_matrix(pick.perm):
                return False
            turned = pick.picker.input(1 if isinstance(pick.picker.op, ops.Split) else 0)
            if any(user not in pickers for user in turned.users):
                return False
        return saved


def _swaps_matrix(perm: Perm) -> bool:
    """True for an exchange of the last two axes, which a product takes over."""
    rank = len(perm)
    return rank >= 2 and perm == (*range(rank - 2), rank - 1, rank - 2)


def trace(seed: Tensor, axis: int) -> Region | None:
    """Follow ``axis`` of ``seed``; None when it does not start and end in reshapes everywhere."""
    region = Region(seed.shape[axis], {seed: axis})
    waiting = [seed]
    while waiting:
        tensor = waiting.pop()
        fresh = _backwards(region, tensor)
        ahead = _forwards(region, tensor) if fresh is not None else None
        if fresh is None or ahead is None or len(region.nodes) > LARGEST_REGION:
            return None
        waiting += fresh + ahead
    return region


def _backwards(region: Region, tensor: Tensor) -> list[Tensor] | None:
    maker, axis = tensor.producer, region.axes[tensor]
    if maker is None or tensor.is_output or tensor.is_variable or tensor.quantization is not None:
        return None
    pick = _pick(maker, tensor, axis)
    if pick is not None:
        region.picks[tensor] = pick
        return []
    found = lane(maker, True, maker.outputs.index(tensor), axis)
    fresh = _take(region, maker, found) if found is not None else None
    return [] if fresh is None and isinstance(maker.op, RESHAPES) and axis + 1 < len(tensor.shape) else fresh


def _forwards(region: Region, tensor: Tensor) -> list[Tensor] | None:
    fresh: list[Tensor] = []
    axis = region.axes[tensor]
    for user, index in tensor.uses:
        found = lane(user, False, index, axis)
        taken = _take(region, user, found) if found is not None else None
        if taken is not None:
            fresh += taken
        elif isinstance(user.op, RESHAPES) and axis + 1 < len(tensor.shape):
            region.ends[user] = tensor
        else:
            return None
    return fresh


def _take(region: Region, node: Node, found: Lane) -> list[Tensor] | None:
    """Take a node in; the tensors it adds, None when it contradicts what is known."""
    known = region.nodes.get(node)
    if known is not None:
        return [] if known == found else None
    pairs = [(t, a) for t, a in zip((*node.inputs, *node.outputs), (*found.inputs, *found.outputs), strict=True)
             if t is not None and a is not None and not t.is_constant]
    if any(region.axes.get(t, a) != a or t.shape[a] != region.heads for t, a in pairs):
        return None
    region.nodes[node] = found
    fresh = [t for t, a in pairs if t not in region.axes]
    region.axes.update(pairs)
    return list(dict.fromkeys(fresh))


def _pick(maker: Node, tensor: Tensor, axis: int) -> Pick | None:
    """Recognise ``tensor`` as one index of TRANSPOSE(RESHAPE(...)); ``axis`` is that of the heads in it."""
    taken = _one_index(maker, tensor)
    if taken is None:
        return None
    source, stack, item, keeps = taken
    heads = axis + (not keeps and stack <= axis)
    turn = producer(source, ops.Transpose)
    perm = permutation(turn) if turn is not None else tuple(range(len(source.shape)))
    whole = source if turn is None else turn.input(0)
    if perm is None or producer(whole, *RESHAPES) is None or whole.quantization is not None:
        return None
    stack, heads = perm[stack], perm[heads]
    if abs(stack - heads) != 1 or max(stack, heads) + 1 >= len(whole.shape):
        return None
    return Pick(whole, stack, heads, item, drop(perm, [stack, heads]), maker)


def _one_index(maker: Node, tensor: Tensor) -> tuple[Tensor, int, int, bool] | None:
    """(source, axis, index, whether the axis stays) of a node that takes one index of one axis."""
    op, place = maker.op, maker.outputs.index(tensor)
    if isinstance(op, ops.Split):
        source, along = maker.input(1), axis_list(maker.input(0), len(tensor.shape))
        return (source, along[0], place, True) if along and tensor.shape[along[0]] == 1 else None
    if isinstance(op, ops.Unpack):
        source = maker.input(0)
        return source, op.axis % len(source.shape), place, False
    source = maker.input(0)
    if isinstance(op, ops.Gather) and not op.batch_dims and maker.input(1).data is not None:
        index = maker.input(1)
        assert index.data is not None
        axis = op.axis % len(source.shape)
        return (source, axis, int(index.data) % source.shape[axis], False) if index.shape == () else None
    if isinstance(op, ops.Slice | ops.StridedSlice) and maker.input(1).data is not None:
        return _sliced(maker, source, tensor)
    return None


def _sliced(maker: Node, source: Tensor, tensor: Tensor) -> tuple[Tensor, int, int, bool] | None:
    """The same of a SLICE or STRIDED_SLICE by constants."""
    begin, op = maker.input(1).data, maker.op
    if begin is None or len(begin) != len(source.shape):
        return None
    shape, first = tensor.shape, [int(b) for b in begin]
    if isinstance(op, ops.StridedSlice):
        strides, gone = maker.input(3).data, op.shrink_axis_mask.bit_length() - 1
        several = op.shrink_axis_mask & (op.shrink_axis_mask - 1)
        if op.ellipsis_mask or op.new_axis_mask or several or strides is None or (strides != 1).any():
            return None
        first = [0 if op.begin_mask >> i & 1 and i != gone else b for i, b in enumerate(first)]
        shape = shape if gone < 0 else (*shape[:gone], 1, *shape[gone:])
    cut = [i for i, (a, b) in enumerate(zip(source.shape, shape, strict=True)) if a != b]
    if len(cut) != 1 or shape[cut[0]] != 1:
        return None
    return source, cut[0], first[cut[0]] % source.shape[cut[0]], len(tensor.shape) == len(source.shape)
