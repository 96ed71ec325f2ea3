"""Attention as two matrix products around a softmax.

The form: the queries are scaled (a smaller tensor than the scores, and beside the projection that made them, into whose
weights the factor goes), keys enter BATCH_MATMUL transposed by its own flag, and heads that share keys are joined into
one matrix by a RESHAPE instead of repeating the keys.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.parts.masks import Mask
from vitrify.ir import Tensor

RAW, CAPPED, MASKED, WEIGHTS = 0, 1, 2, 3
"""What may be looked at on the way: scores, after the cap, with the mask, after the softmax."""


@dataclass(frozen=True)
class Attended:
    """The result [batch, heads, queries, size], and what was asked for on the way."""

    y: Tensor
    seen: Tensor | None = None


def scaled(ctx: Context, x: Tensor, factor: float) -> Tensor:
    """``x`` times a number."""
    return x if factor == 1.0 else ctx.emit(ops.Mul(), [x, np.array(factor, np.float32)], aside=True)


def split_heads(ctx: Context, x: Tensor, heads: int) -> Tensor:
    """[batch, length, heads * size] as [batch, heads, length, size]."""
    batch, length, width = x.shape
    return ctx.transpose(ctx.reshape(x, (batch, length, heads, width // heads)), (0, 2, 1, 3))


def join_heads(ctx: Context, x: Tensor) -> Tensor:
    """[batch, heads, length, size] as [batch, length, heads * size]."""
    batch, heads, length, size = x.shape
    return ctx.reshape(ctx.transpose(x, (0, 2, 1, 3)), (batch, length, heads * size))


def attend(
    ctx: Context, q: Tensor, k: Tensor, v: Tensor, mask: Mask, *, softcap: float = 0.0, seen: int | None = None
) -> Attended:
    """softmax(q k' + mask) v for q [batch, heads, queries, size], already scaled, and k, v of as many heads or fewer.

    ``seen`` names what else to give out.
    """
    scores = _grouped(ctx, q, k, transposed=True)
    looked = scores
    if softcap:
        scores = scaled(ctx, ctx.emit(ops.Tanh(), [scaled(ctx, scores, 1 / softcap)], aside=True), softcap)
    looked = scores if seen == CAPPED else looked
    if seen == MASKED:
        looked = mask.infinite(ctx, scores)
    weights = ctx.emit(ops.Softmax(beta=1.0), [mask.added(ctx, scores)])
    seeing = mask.seeing(ctx)
    if seeing is not None and seen == WEIGHTS:
        weights = ctx.emit(ops.Mul(), [weights, seeing], aside=True)
    y = _grouped(ctx, weights, v, transposed=False)
    if seeing is not None and seen != WEIGHTS:
        y = ctx.emit(ops.Mul(), [y, seeing], aside=True)
    return Attended(y, weights if seen == WEIGHTS else looked if seen is not None else None)


def _grouped(ctx: Context, x: Tensor, y: Tensor, transposed: bool) -> Tensor:
    """The products of x [batch, heads, rows, K] with y of as many heads, or of fewer that neighbours share."""
    batch, heads, rows, inner = x.shape
    shared = y.shape[1]
    stacked = ctx.reshape(x, (batch, shared, heads // shared * rows, inner))
    product = ctx.emit(ops.BatchMatMul(adj_y=transposed), [stacked, y])
    return ctx.reshape(product, (batch, heads, rows, product.shape[-1]))
