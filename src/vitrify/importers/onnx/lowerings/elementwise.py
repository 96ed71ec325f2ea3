"""Arithmetic, element by element."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import DType, Operator, Tensor

_BINARY: dict[str, type[Operator]] = {"Add": ops.Add, "Sub": ops.Sub, "Mul": ops.Mul, "Div": ops.Div}
_MANY: dict[str, type[Operator]] = {"Max": ops.Maximum, "Min": ops.Minimum, "Sum": ops.Add}
_UNARY: dict[str, type[Operator]] = {
    "Sqrt": ops.Sqrt,
    "Exp": ops.Exp,
    "Log": ops.Log,
    "Abs": ops.Abs,
    "Neg": ops.Neg,
    "Sin": ops.Sin,
    "Cos": ops.Cos,
    "Floor": ops.Floor,
    "Ceil": ops.Ceil,
    "Round": ops.Round,
    "Sign": ops.Sign,
}


def same_types(ctx: Context, node: SourceNode) -> list[Tensor]:
    """The inputs as tensors of one element type that broadcast against each other.

    Raises:
        ModelError: types or shapes differ.
    """
    inputs = [ctx.tensor(node, i) for i in range(len(node.inputs))]
    shown = " and ".join(str(t.type) for t in inputs)
    if len({t.dtype for t in inputs}) > 1:
        raise node.problem(f"its inputs have different element types: {shown}")
    try:
        np.broadcast_shapes(*(t.shape for t in inputs))
    except ValueError:
        raise node.problem(f"its inputs do not broadcast against each other: {shown}") from None
    return inputs


def _binary(op: type[Operator]) -> Callable[[Context, SourceNode], None]:
    def lower(ctx: Context, node: SourceNode) -> None:
        inputs = same_types(ctx, node)
        if len(inputs) != 2:
            raise node.problem(f"it has {len(inputs)} inputs; it takes 2")
        ctx.bind(node, ctx.emit(op(), inputs))

    return lower


def _many(op: type[Operator]) -> Callable[[Context, SourceNode], None]:
    def lower(ctx: Context, node: SourceNode) -> None:
        result, *others = same_types(ctx, node)
        for other in others:
            result = ctx.emit(op(), [result, other])
        ctx.bind(node, result)

    return lower


def _unary(op: type[Operator]) -> Callable[[Context, SourceNode], None]:
    def lower(ctx: Context, node: SourceNode) -> None:
        ctx.bind(node, ctx.emit(op(), [ctx.tensor(node, 0)]))

    return lower


for _kind, _op in _BINARY.items():
    lowering(_kind)(_binary(_op))
for _kind, _op in _MANY.items():
    lowering(_kind)(_many(_op))
for _kind, _op in _UNARY.items():
    lowering(_kind)(_unary(_op))


@lowering("Mean")
def mean(ctx: Context, node: SourceNode) -> None:
    """The mean of the inputs, element by element."""
    result, *others = same_types(ctx, node)
    for other in others:
        result = ctx.emit(ops.Add(), [result, other], aside=True)
    ctx.bind(node, ctx.emit(ops.Mul(), [result, np.array(1 / (len(others) + 1), np.float32)]))


def cast_op(source: DType, target: DType) -> Operator:
    """CAST between two element types."""
    return ops.Cast(in_data_type=source.value, out_data_type=target.value)
