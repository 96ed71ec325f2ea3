"""Range conflicts: parts of one tensor that would be left with few of its 256 levels."""

from __future__ import annotations

from collections.abc import Mapping

from vitrify.ir import Node, Tensor
from vitrify.ops import Add, Concatenation, Pack, Sub
from vitrify.quant.calibration.ranges import constant_range
from vitrify.quant.calibration.statistics import Range
from vitrify.quant.outputs.joins import whole_range
from vitrify.quant.outputs.tails import Tail
from vitrify.quant.rules import is_real
from vitrify.quant.scales import levels_left

SUM_LEVELS = 64
"""A term of a sum should keep this many levels in it: with fewer, rounding the sum costs over 12 dB of the term."""


def collisions(tail: Tail, ranges: Mapping[Tensor, Range], join_levels: int) -> list[tuple[Node, Tensor, float]]:
    """List where a joined part or a term of a sum would lose its levels: node, tensor, levels left."""
    found: list[tuple[Node, Tensor, float]] = []
    for node in tail.nodes:
        members = [t for t in node.inputs if is_real(t) and t is not None]
        known = {t: ranges[t] if t in ranges else constant_range(t) for t in members if t in ranges or t.is_constant}
        if len(known) < 2:
            continue
        if isinstance(node.op, Concatenation | Pack):
            whole, limit = whole_range(list(known.values())), float(join_levels)
        elif isinstance(node.op, Add | Sub) and node.output in ranges:
            whole, limit = ranges[node.output], float(SUM_LEVELS)
        else:
            continue
        for tensor, own in known.items():
            left = levels_left(own.with_zero(), whole)
            if left < limit and not tensor.is_constant:
                found.append((node, tensor, left))
    return found
