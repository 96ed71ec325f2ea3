"""Finding joins: outputs that are concatenations, possibly moved around after it, and how to group their members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vitrify.ir import Node, Tensor
from vitrify.ops import Concatenation, ExpandDims, Reshape, Squeeze, Transpose
from vitrify.quant.calibration.statistics import Range
from vitrify.quant.rules import is_real
from vitrify.quant.scales import levels_left

SAME_PART_LEVELS = 64
"""Neighbours stay in one part when each keeps at least this many levels there."""


@dataclass(frozen=True)
class Join:
    """An output that is a concatenation, possibly reshaped or transposed after it."""

    output: Tensor
    node: Node
    members: tuple[Tensor, ...]
    axis: int
    chain: tuple[Node, ...]        # what moves the values from the concatenation to the output, in order
    output_axis: int               # where the axis of the concatenation ends up


def find_join(output: Tensor) -> Join | None:
    """Follow an output back through nodes that only move values to a concatenation; None when there is none."""
    chain: list[Node] = []
    tensor = output
    while tensor.producer is not None and isinstance(tensor.producer.op, (Transpose, Reshape, Squeeze, ExpandDims)):
        chain.insert(0, tensor.producer)
        tensor = tensor.producer.input(0)
    node = tensor.producer
    if node is None or not isinstance(node.op, Concatenation):
        return None
    members = [node.input(i) for i in range(len(node.inputs))]
    if any(m.is_constant or not is_real(m) or m.producer is None for m in members):
        return None
    axis = node.op.axis % len(tensor.shape)
    members = _flattened(members, axis, len(tensor.shape))
    end: int | None = axis
    for step in chain:
        end = axis_after(step, end) if end is not None else None
    return Join(output, node, tuple(members), axis, tuple(chain), end) if end is not None else None


def _flattened(members: Sequence[Tensor], axis: int, rank: int) -> list[Tensor]:
    """Replace members that are concatenations along the same axis by what they join."""
    found: list[Tensor] = []
    for member in members:
        inner = member.producer
        if inner is not None and isinstance(inner.op, Concatenation) and inner.op.axis % rank == axis \
                and all(t is not None and not t.is_constant and t.producer is not None for t in inner.inputs):
            found += _flattened([inner.input(i) for i in range(len(inner.inputs))], axis, rank)
        else:
            found.append(member)
    return found


def axis_after(node: Node, axis: int) -> int | None:
    """Return where ``axis`` is after a node of the chain; None when it does not stay an axis of its own."""
    source = node.input(0)
    if isinstance(node.op, Transpose):
        perm = node.input(1).data
        return None if perm is None else [int(p) for p in perm].index(axis)
    return reshaped_axis(source.shape, node.output.shape, axis)


def reshaped_axis(source: Sequence[int], target: Sequence[int], axis: int) -> int | None:
    """The axis of ``target`` that holds exactly ``axis`` of ``source``; None when the reshape cuts or merges it."""
    before = int(np.prod(source[:axis], dtype=np.int64))
    for position, extent in enumerate(target):
        if extent == source[axis] and int(np.prod(target[:position], dtype=np.int64)) == before:
            return position
    return None


def parts_of(ranges: Sequence[Range]) -> list[slice]:
    """Group neighbours of similar range: slices over the members, each of which can share one scale."""
    parts: list[slice] = []
    start = 0
    for end in range(1, len(ranges) + 1):
        if end == len(ranges) or fewest_levels(ranges[start:end + 1]) < SAME_PART_LEVELS:
            parts.append(slice(start, end))
            start = end
    return parts


def fewest_levels(ranges: Sequence[Range]) -> float:
    """The levels that the poorest of several ranges keeps when all share one scale."""
    whole = whole_range(ranges)
    return min(levels_left(r.with_zero(), whole) for r in ranges)


def whole_range(ranges: Sequence[Range]) -> Range:
    """The range that holds all of them."""
    whole = ranges[0]
    for other in ranges[1:]:
        whole = whole.join(other)
    return whole
