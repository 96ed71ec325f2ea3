"""Rotary position embedding of ONNX's own domain. Source: ONNX operator reference, RotaryEmbedding-23."""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context, Value
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.parts.rotating import cosines, rotated, sines
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import SourceNode


@lowering("RotaryEmbedding")
def rotary_embedding(ctx: Context, node: SourceNode) -> None:
    """Heads apart (4-D) or packed in the last axis (3-D); angles per place, or a table of them and the places."""
    x = float_input(ctx, node, 0, (3, 4))
    shape, heads = x.shape, node.integer("num_heads")
    if len(shape) == 3:
        if heads < 1 or shape[2] % heads:
            raise node.problem(f"{x.type} does not hold {heads} heads (attribute num_heads)")
        x = ctx.reshape(x, (*shape[:2], heads, shape[2] // heads))
    size = x.shape[-1]
    turned, interleaved = node.integer("rotary_embedding_dim") or size, bool(node.integer("interleaved"))
    cos, sin = ctx.value(node, 1), ctx.value(node, 2)
    if turned % 2 or turned > size or cos.shape[-1] != turned // 2 or sin.shape != cos.shape:
        raise node.problem(f"{list(cos.shape)} cosines and {list(sin.shape)} sines for {turned} of {size} elements")
    factors = [cosines(ctx, cos, size, interleaved), sines(ctx, sin, size, interleaved)]
    if ctx.present(node, 3):
        factors = [_taken(ctx, f, ctx.value(node, 3)) for f in factors]
    c, s = (_over_heads(ctx, f, len(shape)) for f in factors)
    ctx.bind(node, ctx.reshape(rotated(ctx, x, c, s, turned, interleaved), shape))


def _taken(ctx: Context, table: Value, places: Value) -> Value:
    """The rows of a table for each place."""
    if isinstance(table, np.ndarray) and isinstance(places, np.ndarray):
        return table[places]
    return ctx.emit(ops.Gather(axis=0), [table, places], aside=True)


def _over_heads(ctx: Context, factor: Value, rank: int) -> Value:
    """[batch, length, size] with an axis for the heads where the input has it."""
    batch, length, size = factor.shape
    shape = (batch, length, 1, size) if rank == 3 else (batch, 1, length, size)
    return factor.reshape(shape) if isinstance(factor, np.ndarray) else ctx.reshape(factor, shape)
