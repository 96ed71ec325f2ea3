"""Sequence operators that carry a state: a causal convolution, and linear attention.

Source: ONNX operator reference, CausalConvWithState-27 and LinearAttention-27.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context, Value
from vitrify.importers.onnx.lowerings.gates import swish_of
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.parts.attending import scaled, split_heads
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import Tensor

LONGEST = 256
"""Steps that are written out one by one; each is about ten operators."""
LONGEST_AT_ONCE = 4096
"""Steps of one product, whose causal mask has the square of it."""


@lowering("CausalConvWithState")
def causal_conv(ctx: Context, node: SourceNode) -> None:
    """A depthwise convolution over what was before and is now; the last values are the next state."""
    x, kernel = float_input(ctx, node, 0, (3,)), ctx.value(node, 1)
    batch, channels, length = x.shape
    taps = kernel.shape[-1]
    if kernel.shape != (channels, 1, taps):
        raise node.problem(f"a kernel of shape {list(kernel.shape)} for {channels} channels")
    row = ctx.channel_last(x)
    if taps > 1:
        past = (
            ctx.channel_last(ctx.tensor(node, 3))
            if ctx.present(node, 3)
            else ctx.constant(np.zeros((batch, taps - 1, channels), np.float32))
        )
        row = ctx.emit(ops.Concatenation(axis=1), [past, row], aside=True)
    bias = ctx.value(node, 2) if ctx.present(node, 2) else np.zeros(channels, np.float32)
    picture = ctx.reshape(row, (batch, 1, row.shape[1], channels))
    y = ctx.emit(ops.DepthwiseConv2D(padding=ops.Padding.VALID), [picture, _taps_first(ctx, kernel), bias])
    activation = node.string("activation", "none")
    if activation in ("silu", "swish"):
        y = swish_of(ctx, y)
    elif activation != "none":
        raise node.problem(f"activation '{activation}'; it is none, silu or swish")
    y = ctx.channel_first(ctx.reshape(y, (batch, length, channels)))
    if len(node.outputs) < 2 or not node.outputs[1]:
        return ctx.bind(node, y)
    if taps == 1:
        raise node.unsupported(
            "the state of a kernel with one tap is an empty tensor, which LiteRT does not take", "leave that output out"
        )
    return ctx.bind(node, y, _state(ctx, row, taps - 1))


def _taps_first(ctx: Context, kernel: Value) -> Value:
    """[channels, 1, taps] as DEPTHWISE_CONV_2D takes it: [1, 1, taps, channels]."""
    if isinstance(kernel, np.ndarray):
        return kernel.transpose(1, 2, 0)[None]
    channels, _, taps = kernel.shape
    return ctx.reshape(ctx.transpose(ctx.reshape(kernel, (channels, taps)), (1, 0)), (1, 1, taps, channels))


def _state(ctx: Context, row: Tensor, kept: int) -> Tensor:
    batch, length, channels = row.shape
    begin, size = np.array([0, length - kept, 0], np.int32), np.array([batch, kept, channels], np.int32)
    return ctx.channel_first(ctx.emit(ops.Slice(), [row, begin, size], aside=True))


@dataclass(frozen=True)
class _Heads:
    """Queries share states: ``shared`` of them for ``queries`` heads."""

    queries: int
    shared: int
    keys: int
    values: int


@lowering("LinearAttention")
def linear_attention(ctx: Context, node: SourceNode) -> None:
    """A state per head that each step adds its key and value to, and its query reads."""
    q, k, v = (float_input(ctx, node, i, (3,)) for i in range(3))
    queries, shared = node.integer("q_num_heads"), node.integer("kv_num_heads")
    if shared < 1 or queries < 1 or queries % shared or q.shape[2] % queries or k.shape[2] % shared or (
            v.shape[2] % shared):
        raise node.problem(f"{queries} and {shared} heads do not fit {q.type}, {k.type} and {v.type}")
    heads = _Heads(queries, shared, k.shape[2] // shared, v.shape[2] // shared)
    q = scaled(ctx, q, node.number("scale") or 1 / math.sqrt(q.shape[2] // queries))
    state = float_input(ctx, node, 3) if ctx.present(node, 3) else None
    rule = node.string("update_rule", "gated_delta")
    longest = LONGEST_AT_ONCE if rule == "linear" else LONGEST
    if q.shape[1] > longest:
        raise node.unsupported(
            f"{q.shape[1]} steps; at most {longest} are converted", "fix a shorter sequence with --shape"
        )
    if rule == "linear":
        return ctx.bind(node, *_at_once(ctx, q, k, v, state, heads))
    if rule not in ("gated", "delta", "gated_delta"):
        raise node.problem(f"update_rule '{rule}'; it is linear, gated, delta or gated_delta")
    decay = ctx.emit(ops.Exp(), [ctx.tensor(node, 4)], aside=True) if "gated" in rule else None
    beta = ctx.tensor(node, 5) if "delta" in rule else None
    return ctx.bind(node, *_stepwise(ctx, (q, k, v), decay, beta, state, heads))


def _at_once(
    ctx: Context, q: Tensor, k: Tensor, v: Tensor, state: Tensor | None, heads: _Heads
) -> tuple[Tensor, Tensor]:
    """Without a decay all steps are one: a causal product of queries, keys and values."""
    batch, steps = q.shape[:2]
    group = heads.queries // heads.shared
    rows = ctx.reshape(split_heads(ctx, q, heads.queries), (batch, heads.shared, group * steps, heads.keys))
    keys, values = split_heads(ctx, k, heads.shared), split_heads(ctx, v, heads.shared)
    seen = np.tile(np.tril(np.ones((steps, steps), np.float32)), (group, 1))
    scores = ctx.emit(ops.BatchMatMul(adj_y=True), [rows, keys], aside=True)
    y = ctx.emit(ops.BatchMatMul(), [ctx.emit(ops.Mul(), [scores, seen], aside=True), values])
    total = ctx.emit(ops.BatchMatMul(adj_x=True), [keys, values], aside=True)
    if state is not None:
        y = ctx.emit(ops.Add(), [y, ctx.emit(ops.BatchMatMul(), [rows, state], aside=True)])
        total = ctx.emit(ops.Add(), [state, total], aside=True)
    apart = ctx.transpose(ctx.reshape(y, (batch, heads.queries, steps, heads.values)), (0, 2, 1, 3))
    return ctx.reshape(apart, (batch, steps, heads.queries * heads.values)), total


def _stepwise(
    ctx: Context,
    inputs: tuple[Tensor, Tensor, Tensor],
    decay: Tensor | None,
    beta: Tensor | None,
    state: Tensor | None,
    heads: _Heads,
) -> tuple[Tensor, Tensor]:
    """Step after step; the packed rows are cut by time, so that heads come apart by RESHAPE alone."""
    batch, steps = inputs[0].shape[:2]
    queries, keys, values = (_steps(ctx, x) for x in inputs)
    decays = [None] * steps if decay is None else _steps(ctx, decay)
    rates = [None] * steps if beta is None else _steps(ctx, beta)
    found = []
    for q, k, v, factor, rate in zip(queries, keys, values, decays, rates, strict=True):
        key = ctx.reshape(k, (batch, heads.shared, 1, heads.keys))
        change = ctx.reshape(v, (batch, heads.shared, 1, heads.values))
        if factor is not None and state is not None:
            factor = ctx.reshape(factor, (batch, heads.shared, factor.shape[-1] // heads.shared, 1))
            state = ctx.emit(ops.Mul(), [state, factor], aside=True)
        if rate is not None:
            change = _corrected(ctx, key, change, state, ctx.reshape(rate, (batch, rate.shape[-1], 1, 1)))
        added = ctx.emit(ops.BatchMatMul(adj_x=True), [key, change], aside=True)
        state = added if state is None else ctx.emit(ops.Add(), [state, added], aside=True)
        query = ctx.reshape(q, (batch, heads.shared, heads.queries // heads.shared, heads.keys))
        y = ctx.emit(ops.BatchMatMul(), [query, state], aside=True)
        found.append(ctx.reshape(y, (batch, 1, heads.queries * heads.values)))
    assert state is not None
    return (found[0] if steps == 1 else ctx.emit(ops.Concatenation(axis=1), found)), state


def _corrected(ctx: Context, key: Tensor, value: Tensor, state: Tensor | None, rate: Tensor) -> Tensor:
    """What a delta rule adds under a key: the value less what the state gives for the key, times the rate."""
    if state is not None:
        value = ctx.emit(ops.Sub(), [value, ctx.emit(ops.BatchMatMul(), [key, state], aside=True)], aside=True)
    return ctx.emit(ops.Mul(), [value, rate], aside=True)


def _steps(ctx: Context, x: Tensor) -> list[Tensor]:
    if x.shape[1] == 1:
        return [x]
    return list(ctx.emit_all(ops.Split(num_splits=x.shape[1]), [np.array(1, np.int32), x], aside=True))
