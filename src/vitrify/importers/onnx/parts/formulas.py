"""Helpers for lowerings that are formulas: steps that leave the node's name to the last of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context, Value
from vitrify.importers.onnx.source import Array
from vitrify.ir import DType, Operator, Tensor


def number(value: float, dtype: DType = DType.FLOAT32) -> Array:
    """A scalar constant of an element type of the graph."""
    return np.array(value, dtype.numpy)


def step(ctx: Context, kind: type[Operator], *inputs: Tensor | Array | float) -> Tensor:
    """Apply an operator without attributes inside a formula; plain numbers take the type of the first tensor."""
    dtype = next((i.dtype for i in inputs if isinstance(i, Tensor)), DType.FLOAT32)
    given = [number(i, dtype) if isinstance(i, (int, float)) else i for i in inputs]
    return ctx.emit(kind(), given, aside=True)


def power_series(ctx: Context, x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """The polynomial in ``x`` with ``coefficients`` from the constant one on, by Horner's rule."""
    *lower, highest = coefficients
    total: Tensor | float = highest
    for coefficient in reversed(lower):
        total = step(ctx, ops.Add, step(ctx, ops.Mul, x, total), coefficient)
    assert isinstance(total, Tensor)
    return total


def cast(ctx: Context, x: Tensor, dtype: DType) -> Tensor:
    """``x`` with another element type, as a helper."""
    if x.dtype is dtype:
        return x
    return ctx.emit(ops.Cast(in_data_type=x.dtype.value, out_data_type=dtype.value), [x], aside=True)


def shaped(ctx: Context, value: Value, shape: Sequence[int]) -> Value:
    """A value under another shape, known now or computed at run time."""
    return value.reshape(shape) if isinstance(value, np.ndarray) else ctx.reshape(value, shape)


def turned(ctx: Context, value: Value, perm: Sequence[int]) -> Value:
    """A value with its axes permuted, known now or computed at run time."""
    return value.transpose(perm) if isinstance(value, np.ndarray) else ctx.transpose(value, perm)


def named(ctx: Context, value: Value, name: str) -> Tensor:
    """A value as a tensor; a constant is called ``name``."""
    return ctx.constant(value, name) if isinstance(value, np.ndarray) else value


def parts(ctx: Context, value: Value, count: int, axis: int) -> list[Value]:
    """A value cut into equal parts along an axis."""
    if count == 1:
        return [value]
    if isinstance(value, np.ndarray):
        return list(np.split(value, count, axis))
    return list(ctx.emit_all(ops.Split(num_splits=count), [np.array(axis, np.int32), value], aside=True))


def spread(ctx: Context, value: Value, axis: int, distance: int) -> Value:
    """A value with ``distance`` - 1 zeros between its elements along an axis."""
    shape = value.shape
    if distance == 1 or shape[axis] == 1:
        return value
    extent = (shape[axis] - 1) * distance + 1
    if isinstance(value, np.ndarray):
        wide = np.zeros((*shape[:axis], extent, *shape[axis + 1 :]), value.dtype)
        wide[(slice(None),) * axis + (slice(None, None, distance),)] = value
        return wide
    outer, inner = int(np.prod(shape[:axis])), int(np.prod(shape[axis + 1 :]))
    apart = ctx.reshape(value, (outer, shape[axis], 1, inner))
    padded = ctx.emit(ops.Pad(), [apart, np.array([[0, 0], [0, 0], [0, distance - 1], [0, 0]], np.int32)], aside=True)
    joined = ctx.reshape(padded, (outer, shape[axis] * distance, inner))
    size = np.array([outer, extent, inner], np.int32)
    cut = ctx.emit(ops.Slice(), [joined, np.zeros(3, np.int32), size], aside=True)
    return ctx.reshape(cut, (*shape[:axis], extent, *shape[axis + 1 :]))
