"""Rotary position embedding: pairs of a row turned by the angles of its place.

The form: y = x * c + swapped(x) * s, where the partners of each pair change places, c holds the cosine for both and s
the sine with the sign of each. Two products and a sum, against four products, a difference and a sum of halves; the
part of a row that is not turned has c = 1 and s = 0, so that nothing needs to be cut off.
"""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context, Value
from vitrify.ir import Tensor


def rotated(ctx: Context, x: Tensor, c: Value, s: Value, turned: int, interleaved: bool) -> Tensor:
    """Turn the first ``turned`` elements of each row of ``x``; ``c`` and ``s`` broadcast to it."""
    straight = ctx.emit(ops.Mul(), [x, c], aside=True)
    crossed = ctx.emit(ops.Mul(), [_swapped(ctx, x, turned, interleaved), s], aside=True)
    return ctx.emit(ops.Add(), [straight, crossed])


def cosines(ctx: Context, cos: Value, size: int, interleaved: bool) -> Value:
    """One factor for each element of a row of ``size``, from one cosine for each pair."""
    return _per_element(ctx, cos, cos, size, interleaved, 1.0)


def sines(ctx: Context, sin: Value, size: int, interleaved: bool) -> Value:
    """One factor for each element of a row of ``size``, from one sine for each pair."""
    negative = -sin if isinstance(sin, np.ndarray) else ctx.emit(ops.Neg(), [sin], aside=True)
    return _per_element(ctx, negative, sin, size, interleaved, 0.0)


def _per_element(ctx: Context, first: Value, second: Value, size: int, interleaved: bool, rest: float) -> Value:
    *outer, half = first.shape
    padding = np.full((*outer, size - 2 * half), rest, np.float32)
    last = len(outer)
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        pairs = np.stack([first, second], -1 if interleaved else -2).reshape(*outer, 2 * half)
        return np.concatenate([pairs.astype(np.float32), padding], -1)
    if interleaved:
        columns = [_column(ctx, v) for v in (first, second)]
        both = ctx.reshape(ctx.emit(ops.Concatenation(axis=last + 1), columns, aside=True), (*outer, 2 * half))
    else:
        both = ctx.emit(ops.Concatenation(axis=last), [first, second], aside=True)
    return ctx.emit(ops.Concatenation(axis=last), [both, padding], aside=True) if padding.size else both


def _column(ctx: Context, value: Value) -> Value:
    shape = (*value.shape, 1)
    return value.reshape(shape) if isinstance(value, np.ndarray) else ctx.reshape(value, shape)


def _swapped(ctx: Context, x: Tensor, turned: int, interleaved: bool) -> Tensor:
    """``x`` with the partners of each pair in each other's place; what is behind them may be anything."""
    *outer, size = x.shape
    half = turned // 2
    last = len(outer)
    if not interleaved:
        sizes = [half, half, size - turned] if size > turned else [half, half]
        first, second, *rest = _parts(ctx, x, sizes)
        return ctx.emit(ops.Concatenation(axis=last), [second, first, *rest], aside=True)
    pairs = ctx.reshape(x, (x.size // size, size // 2, 2))
    first, second = _parts(ctx, pairs, [1, 1])
    return ctx.reshape(ctx.emit(ops.Concatenation(axis=2), [second, first], aside=True), x.shape)


def _parts(ctx: Context, x: Tensor, sizes: list[int]) -> tuple[Tensor, ...]:
    axis = np.array(len(x.shape) - 1, np.int32)
    if len(set(sizes)) == 1:
        return ctx.emit_all(ops.Split(num_splits=len(sizes)), [axis, x], aside=True)
    return ctx.emit_all(ops.SplitV(num_splits=len(sizes)), [x, np.array(sizes, np.int32), axis], aside=True)
