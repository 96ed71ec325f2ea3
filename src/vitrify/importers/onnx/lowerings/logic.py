"""Comparisons, logic, and choosing between two tensors."""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.elementwise import same_types
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import DType, Operator, Tensor

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
    tensors, kind = same_types(ctx, node), _COMPARISONS[node.kind]
    inputs: list[Tensor | Array] = [*tensors]
    if kind is ops.Equal and len(tensors) == 2:
        kind, inputs = _infinite(tensors)
    ctx.bind(node, ctx.emit(kind(), inputs))


def _infinite(inputs: list[Tensor]) -> tuple[type[Operator], list[Tensor | Array]]:
    """Equality with an infinity as a comparison with the largest number: kernels of sums do not go beyond that.

    Source: TFLite kernels/add.cc, which clamps to the range of an absent activation.
    """
    for x, bound in (inputs, inputs[::-1]):
        if bound.data is None or bound.dtype is not DType.FLOAT32 or not np.isinf(bound.data).all():
            continue
        limits = np.finfo(np.float32)
        if (bound.data < 0).all():
            return ops.LessEqual, [x, np.full(bound.shape, limits.min, np.float32)]
        if (bound.data > 0).all():
            return ops.GreaterEqual, [x, np.full(bound.shape, limits.max, np.float32)]
    return ops.Equal, [*inputs]


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
