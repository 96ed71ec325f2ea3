"""Why each TRANSPOSE that is left could not go."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from vitrify import ops
from vitrify.ir import Model, Node, Tensor
from vitrify.passes.graphs import RESHAPES
from vitrify.passes.layout.perms import Perm, inverse, is_identity
from vitrify.passes.layout.region import Region, flood, permutation
from vitrify.passes.layout.rule import RULES

WALK = 200
"""How many tensors are walked through for the nearest obstacle."""


class Left(NamedTuple):
    """A TRANSPOSE that is left: its node, the neighbours it stands between, why it stays, and the bytes it moves."""

    node: Node
    before: str
    after: str
    reason: str


def left_transposes(model: Model) -> list[Left]:
    """Explain every TRANSPOSE of a model."""
    return [_explained(node) for graph in model.graphs for node in graph.nodes_of(ops.Transpose)]


def _explained(node: Node) -> Left:
    source, result = node.input(0), node.output
    before = _name(source.producer) if source.producer is not None else source.name
    readers = [_name(user) for user in result.users]
    after = readers[0] if readers else result.name
    more = f" and {len(readers) - 1} more" if len(readers) > 1 else ""
    turn = permutation(node)
    if turn is None:
        return Left(node, before, after + more, "its order is computed at run time")
    back, ahead = _obstacle(source, turn, node), _obstacle(result, inverse(turn), node)
    if back and ahead:
        reason = f"before it, {back}; behind it, {ahead}"
    else:
        reason = back or ahead or "moving it elsewhere would move more bytes"
    return Left(node, before, after + more, reason)


def _obstacle(seed: Tensor, perm: Perm, node: Node) -> str:
    """What keeps ``seed`` from being stored by ``perm``: the nearest node or place that wants it as it is."""
    region = flood(seed, perm)
    waiting, seen = deque([seed]), {seed}
    while waiting and len(seen) < WALK:
        tensor = waiting.popleft()
        if tensor.is_output:
            return f"the model gives '{tensor.name}' in this order"
        if tensor.producer is None and tensor.data is None:
            return f"the model takes '{tensor.name}' in this order"
        makers = [tensor.producer] if tensor.producer is not None else []
        for other in (*makers, *tensor.users):
            if other is node:
                continue
            if other not in region.layouts:
                return _why(other, tensor, region)
            for near in (*other.inputs, *other.outputs):
                if near is not None and near in region.perms and near not in seen:
                    seen.add(near)
                    waiting.append(near)
    return ""


def _why(node: Node, tensor: Tensor, region: Region) -> str:
    """Why ``node`` needs ``tensor`` as it is; named by its kind and shapes, so that equal reasons read the same."""
    op, perm = node.op, region.perms[tensor]
    if isinstance(op, RESHAPES):
        before, after = node.input(0).shape, node.output.shape
        does = "splits" if len(after) > len(before) else "joins" if len(after) < len(before) else "mixes"
        return f"a reshape of {list(before)} to {list(after)} {does} axes"
    if isinstance(op, ops.Transpose):
        return "another TRANSPOSE asks for another order"
    if type(op) not in RULES or is_identity(perm):
        return f"{op.kind} has a fixed order"
    return f"{op.kind} does not take its input in the order {list(perm)}"


def _name(node: Node | None) -> str:
    """The user's name of a node, else its own."""
    return "" if node is None else node.origin.sources[-1].name if node.origin.sources else node.name
