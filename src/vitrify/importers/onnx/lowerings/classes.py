"""Which numbers are infinite, and which are none."""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.parts.formulas import number, step
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.rules import limit
from vitrify.importers.onnx.source import SourceNode


@lowering("IsNaN")
def is_nan(ctx: Context, node: SourceNode) -> None:
    """NaN is what differs from itself."""
    x = float_input(ctx, node, 0)
    ctx.bind(node, ctx.emit(ops.NotEqual(), [x, x]))


@lowering("IsInf")
def is_inf(ctx: Context, node: SourceNode) -> None:
    """Infinity of the signs that are asked for."""
    x = float_input(ctx, node, 0)
    positive, negative = bool(node.integer("detect_positive", 1)), bool(node.integer("detect_negative", 1))
    if not positive and not negative:
        return ctx.bind(node, np.zeros(limit(node, x.shape), bool))
    if positive and negative:
        return ctx.bind(node, ctx.emit(ops.Equal(), [step(ctx, ops.Abs, x), number(np.inf)]))
    return ctx.bind(node, ctx.emit(ops.Equal(), [x, number(np.inf if positive else -np.inf)]))
