"""If: the branch that is taken, or both where that cannot be known and costs little."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.controls.registry import (
    Walk,
    as_flag,
    control,
    give,
    inner,
    open_condition,
    settled,
    size_of,
)
from vitrify.importers.onnx.source import SourceGraph, SourceNode
from vitrify.ir import Tensor

SMALL_BRANCH = 64
"""Nodes up to which both branches of an If are computed and one of the results is taken."""


@control("If")
def if_(walk: Walk, node: SourceNode) -> None:
    """The branch that a known condition takes; of two small ones both, and a choice between their results."""
    condition = settled(walk.context.value(node, 0), walk.context.budget)
    branches = [node.graph("then_branch"), node.graph("else_branch")]
    if isinstance(condition, np.ndarray):
        taken = branches[0] if as_flag(node, condition, "the condition") else branches[1]
        give(walk, node, inner(walk, taken, {}))
    elif not _selected(walk, node, condition, branches):
        raise open_condition(walk, node, condition, f"its condition '{node.inputs[0]}'")


def _selected(walk: Walk, node: SourceNode, condition: Tensor, branches: Sequence[SourceGraph]) -> bool:
    """Compute both branches and choose; False where they are large, cannot be lowered, or give different shapes."""
    if condition.size != 1 or any(size_of(branch) > SMALL_BRANCH for branch in branches):
        return False
    context, before = walk.context, len(walk.errors)
    sides = [inner(walk, branch, {}) for branch in branches]
    if len(walk.errors) > before:
        del walk.errors[before:]
        return False
    if not all(isinstance(value, Tensor | np.ndarray) for side in sides for value in side):
        return False
    pairs = [
        [context.constant(v) if isinstance(v, np.ndarray) else v for v in pair] for pair in zip(*sides, strict=False)
    ]
    if any(yes.type != no.type for yes, no in pairs):
        return False
    flag = context.reshape(condition, ())
    chosen = [yes if yes is no else context.emit(ops.SelectV2(), [flag, yes, no]) for yes, no in pairs]
    give(walk, node, chosen)
    return True
