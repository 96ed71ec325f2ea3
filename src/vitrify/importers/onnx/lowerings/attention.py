"""Attention of ONNX's own domain. Source: ONNX operator reference, Attention-23 to -25."""

from __future__ import annotations

import math

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.parts.attending import attend, join_heads, scaled, split_heads
from vitrify.importers.onnx.parts.masks import Band, Mask
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import Tensor

LARGEST = 2**26
"""Elements of a mask that is made here: 8192 queries and keys."""
QUERY, KEY, VALUE, MASK, PAST_KEY, PAST_VALUE, FILLED = range(7)


@lowering("Attention")
def attention(ctx: Context, node: SourceNode) -> None:
    """Scaled dot product attention, with heads packed in the last axis (3-D) or apart (4-D), and a cache."""
    q, k, v = (float_input(ctx, node, i, (3, 4)) for i in (QUERY, KEY, VALUE))
    packed = len(q.shape) == 3
    heads, shared = (node.integer("q_num_heads"), node.integer("kv_num_heads")) if packed else (q.shape[1], k.shape[1])
    _check(node, q, k, v, heads, shared)
    size = q.shape[-1] // heads if packed else q.shape[-1]
    q = scaled(ctx, q, node.number("scale", 1 / math.sqrt(size)))
    if packed:
        q, k, v = split_heads(ctx, q, heads), split_heads(ctx, k, shared), split_heads(ctx, v, shared)
    past = 0
    if ctx.present(node, PAST_KEY) and ctx.present(node, PAST_VALUE):
        past = ctx.tensor(node, PAST_KEY).shape[2]
        k, v = (
            ctx.emit(ops.Concatenation(axis=2), [ctx.tensor(node, i), new], aside=True)
            for i, new in ((PAST_KEY, k), (PAST_VALUE, v))
        )
    mask = _mask(ctx, node, q.shape[2], k.shape[2], past)
    wanted = node.integer("qk_matmul_output_mode") if len(node.outputs) > 3 and node.outputs[3] else None
    found = attend(ctx, q, k, v, mask, softcap=node.number("softcap"), seen=wanted)
    y = join_heads(ctx, found.y) if packed else found.y
    ctx.bind(node, y, k, v, *([found.seen] if found.seen is not None else []))


def _check(node: SourceNode, q: Tensor, k: Tensor, v: Tensor, heads: int, shared: int) -> None:
    shown = f"{q.type}, {k.type}, {v.type}"
    if not len(q.shape) == len(k.shape) == len(v.shape):
        raise node.problem(f"query, key and value have different ranks: {shown}")
    if heads < 1 or shared < 1 or heads % shared:
        raise node.problem(f"{heads} query heads and {shared} key heads; the first must be a multiple of the second")
    if len(q.shape) == 3 and (q.shape[2] % heads or k.shape[2] % shared or v.shape[2] % shared):
        raise node.problem(f"{shown} do not hold {heads} and {shared} heads")


def _mask(ctx: Context, node: SourceNode, queries: int, keys: int, past: int) -> Mask:
    """Everything that hides a key: the mask given, causality, the window, and keys that are not there."""
    _limit(node, queries, keys)
    mask = Mask(queries, keys)
    if ctx.present(node, MASK):
        mask.apply(ctx, ctx.value(node, MASK))
    left, right = node.integer("left_window_size", -1), node.integer("right_window_size", -1)
    right = 0 if node.integer("is_causal") else right
    band = Band(left if left >= 0 else None, right if right >= 0 else None)
    if not ctx.present(node, FILLED):
        if band != Band():
            mask.allow(band.known(queries, keys, past))
        return mask
    filled = ctx.value(node, FILLED)
    if isinstance(filled, np.ndarray):
        _limit(node, filled.size, queries, keys)
        counts = [int(n) for n in filled.reshape(-1)]
        mask.allow(np.stack([band.known(queries, keys, n - queries) & (np.arange(keys) < n) for n in counts])[:, None])
    else:
        mask.flags += band.flags(ctx, queries, keys, ctx.reshape(filled, (filled.size, 1, 1, 1)))
    return mask


def _limit(node: SourceNode, *shape: int) -> None:
    if math.prod(shape) > LARGEST:
        raise node.unsupported(
            f"a mask of {list(shape)}, {math.prod(shape)} elements; at most {LARGEST} are made", "fix shorter sequences"
        )
