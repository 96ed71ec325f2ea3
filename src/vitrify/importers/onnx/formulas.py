"""Helpers for lowerings that are formulas: steps that leave the node's name to the last of them."""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
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
