"""Comparisons, logic, and choosing between two tensors."""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.elementwise import same_types
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import DType, Operator

_COMPARISONS: dict[str, type[Operator]] = {
    "Equal": ops.Equal,
    "Greater": ops.Greater,
    "GreaterOrEqual": ops.GreaterEqual,
    "Less": ops.Less,
    "LessOrEqual": ops.LessEqual,
    "And": ops.LogicalAnd,
    "Or": ops.LogicalOr,
    "Xor": ops.NotEqual,
}


@lowering(*_COMPARISONS)
def compare(ctx: Context, node: SourceNode) -> None:
    """Element by element, to bool."""
    ctx.bind(node, ctx.emit(_COMPARISONS[node.kind](), same_types(ctx, node)))


@lowering("Not")
def invert(ctx: Context, node: SourceNode) -> None:
    """The opposite."""
    ctx.bind(node, ctx.emit(ops.LogicalNot(), [ctx.tensor(node, 0)]))


@lowering("Where")
def where(ctx: Context, node: SourceNode) -> None:
    """The second input where the first is true, else the third."""
    condition, a, b = (ctx.tensor(node, i) for i in range(3))
    if condition.dtype is not DType.BOOL or a.dtype is not b.dtype:
        raise node.problem(f"a condition {condition.type} between {a.type} and {b.type}")
    try:
        np.broadcast_shapes(condition.shape, a.shape, b.shape)
    except ValueError:
        raise node.problem(f"{condition.type}, {a.type} and {b.type} do not broadcast") from None
    ctx.bind(node, ctx.emit(ops.SelectV2(), [condition, a, b]))
