"""Spreading a permutation from one tensor as far as the rules allow."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from vitrify import ops
from vitrify.ir import Node, Tensor
from vitrify.passes.layout import (
    rules_axes,
    rules_elementwise,
    rules_extents,
    rules_reshape,
    rules_sequences,
    rules_windows,
)
from vitrify.passes.layout.perms import Perm, inverse, is_identity, then
from vitrify.passes.layout.rule import RULES, Anchor, Layouts

__all__ = ["Region", "flood", "rules_axes", "rules_elementwise", "rules_extents", "rules_reshape",
           "rules_sequences", "rules_windows"]


@dataclass
class Region:
    """The tensors that would be stored permuted, and the nodes that can work on them so.

    A node beside the region that is not in ``layouts`` needs the tensors as they are.
    """

    perms: dict[Tensor, Perm] = field(default_factory=dict)
    layouts: dict[Node, Layouts] = field(default_factory=dict)
    refused: set[Node] = field(default_factory=set)


def flood(seed: Tensor, perm: Perm) -> Region:
    """Give ``seed`` a permutation and follow it through all nodes that make or read permuted tensors."""
    region = Region({seed: perm})
    waiting = deque([seed])
    while waiting:
        tensor = waiting.popleft()
        reached = [(user, Anchor(False, index, region.perms[tensor])) for user, index in tensor.uses]
        if tensor.producer is not None and tensor.producer not in region.refused:
            place = tensor.producer.outputs.index(tensor)
            reached.append((tensor.producer, Anchor(True, place, region.perms[tensor])))
        for node, anchor in reached:
            waiting.extend(_reach(region, node, anchor))
    return region


def _reach(region: Region, node: Node, anchor: Anchor) -> list[Tensor]:
    """Take a node into the region if it fits what is known already; returns the tensors newly permuted."""
    if node in region.refused:
        return []
    known = region.layouts.get(node)
    if known is not None and _perm_at(known, anchor) == anchor.perm:
        return []
    found = spread(node, anchor)
    if found is not None and known is not None:
        found = _merged(known, found)
    if found is None or not _fits(region, node, found):
        if known is None:
            region.refused.add(node)
        return [] if known is None else _give_up(region, node)
    region.layouts[node] = found
    fresh = []
    for tensor, perm in _pairs(node, found):
        if tensor not in region.perms and not is_identity(perm) and not tensor.is_constant:
            region.perms[tensor] = perm
            fresh.append(tensor)
    return fresh


def _give_up(region: Region, node: Node) -> list[Tensor]:
    """Leave a node out after all: two of its tensors ask for different things."""
    del region.layouts[node]
    region.refused.add(node)
    return []


def _perm_at(layouts: Layouts, anchor: Anchor) -> Perm | None:
    return layouts.outputs[anchor.place] if anchor.is_output else layouts.inputs[anchor.place]


def _merged(known: Layouts, found: Layouts) -> Layouts | None:
    """Join what two operands ask for where each leaves the other open; None when they contradict."""
    if known.outputs != found.outputs or any(a is not None and b is not None and a != b
                                             for a, b in zip(known.inputs, found.inputs, strict=True)):
        return None
    return Layouts(tuple(a if a is not None else b for a, b in zip(known.inputs, found.inputs, strict=True)),
                   known.outputs)


def _fits(region: Region, node: Node, layouts: Layouts) -> bool:
    """True when the layouts contradict no permutation that is fixed already."""
    for tensor, perm in _pairs(node, layouts):
        if tensor.is_constant:
            if tensor.data is None or tensor.data.shape != tensor.shape:      # sparse or packed
                return False
            continue
        if tensor.is_variable or len(perm) != len(tensor.shape):
            return False
        if tensor in region.perms and region.perms[tensor] != perm:
            return False
        quantization = tensor.quantization
        if quantization is not None and quantization.is_per_axis:
            return False
    return True


def _pairs(node: Node, layouts: Layouts) -> list[tuple[Tensor, Perm]]:
    pairs = [(t, p) for t, p in zip(node.inputs, layouts.inputs, strict=True) if t is not None and p is not None]
    return [*pairs, *zip(node.outputs, layouts.outputs, strict=True)]


def spread(node: Node, anchor: Anchor) -> Layouts | None:
    """Ask the node's rule; a TRANSPOSE by a constant permutation takes anything and vanishes."""
    if isinstance(node.op, ops.Transpose):
        turn = permutation(node)
        if turn is None:
            return None
        if anchor.is_output:
            return Layouts((then(turn, anchor.perm), None), (anchor.perm,))
        return Layouts((anchor.perm, None), (then(inverse(turn), anchor.perm),))
    found = RULES.get(type(node.op))
    if found is None or node.graph is None:
        return None
    return found.spread(node, anchor)


def permutation(node: Node) -> Perm | None:
    """The permutation of a TRANSPOSE, None when it is not constant."""
    perm = node.input(1).data
    return None if perm is None else tuple(int(p) % len(perm) for p in perm)
