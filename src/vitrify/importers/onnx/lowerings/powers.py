"""Powers and remainders of every mix of element types."""

from __future__ import annotations

from collections.abc import Sequence

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.elementwise import same_types
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.parts.formulas import cast, number, step
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import DType, Tensor


@lowering("Reciprocal")
def reciprocal(ctx: Context, node: SourceNode) -> None:
    """1 / x."""
    ctx.bind(node, ctx.emit(ops.Div(), [number(1), float_input(ctx, node, 0)]))


@lowering("Pow")
def power(ctx: Context, node: SourceNode) -> None:
    """x ** y in x's type; the common constant exponents become cheaper operators."""
    x = ctx.tensor(node, 0)
    exponent = ctx.array(node, 1)
    if exponent is not None and exponent.size and (exponent == exponent.flat[0]).all() and _fits(x, exponent.shape):
        short = _shortcut(ctx, x, float(exponent.flat[0]))
        if short is not None:
            return ctx.bind(node, short)
    y = ctx.tensor(node, 1)
    if x.dtype.is_float or y.dtype.is_float:
        y = _float(ctx, y)
        if x.dtype.is_float:
            return ctx.bind(node, ctx.emit(ops.Pow(), [x, y]))
        return ctx.bind(node, _back(ctx, step(ctx, ops.Pow, _float(ctx, x), y), x.dtype))
    if x.dtype is DType.INT32:
        return ctx.bind(node, ctx.emit(ops.Pow(), [x, cast(ctx, y, DType.INT32)]))
    wide = step(ctx, ops.Pow, cast(ctx, x, DType.INT32), cast(ctx, y, DType.INT32))
    return ctx.bind(node, _back(ctx, wide, x.dtype))


def _fits(x: Tensor, shape: Sequence[int]) -> bool:
    """True when a tensor of ``shape`` broadcasts to that of ``x``."""
    return len(shape) <= len(x.shape) and all(a in (1, b) for a, b in zip(shape[::-1], x.shape[::-1], strict=False))


def _shortcut(ctx: Context, x: Tensor, exponent: float) -> Tensor | None:
    """x to the power of a constant without POW, None where it needs that."""
    if exponent == 1.0:
        return x
    if exponent == 2.0:
        return ctx.emit(ops.Mul(), [x, x])
    if exponent == 3.0:
        return ctx.emit(ops.Mul(), [step(ctx, ops.Mul, x, x), x])
    if not x.dtype.is_float:
        return None
    if exponent == 4.0:
        square = step(ctx, ops.Mul, x, x)
        return ctx.emit(ops.Mul(), [square, square])
    if exponent == 0.5:
        return ctx.emit(ops.Sqrt(), [x])
    if exponent == -0.5:
        return ctx.emit(ops.Rsqrt(), [x])
    if exponent == -1.0:
        return ctx.emit(ops.Div(), [number(1), x])
    return None


def _float(ctx: Context, x: Tensor) -> Tensor:
    return x if x.dtype.is_float else cast(ctx, x, DType.FLOAT32)


def _back(ctx: Context, x: Tensor, dtype: DType) -> Tensor:
    return ctx.emit(ops.Cast(in_data_type=x.dtype.value, out_data_type=dtype.value), [x])


@lowering("Mod")
def modulo(ctx: Context, node: SourceNode) -> None:
    """The remainder: with the divisor's sign, or with the dividend's when ``fmod`` is set.

    FLOOR_MOD works with C's fmod on floats, which is exact; so are the forms here.
    """
    a, b = inputs = same_types(ctx, node)
    if not node.integer("fmod"):
        return ctx.bind(node, ctx.emit(ops.FloorMod(), inputs))
    if a.dtype.is_float:
        rest = step(ctx, ops.FloorMod, step(ctx, ops.Abs, a), step(ctx, ops.Abs, b))
        return ctx.bind(node, ctx.emit(ops.Mul(), [rest, step(ctx, ops.Sign, a)]))
    whole = step(ctx, ops.Mul, step(ctx, ops.Div, a, b), b)  # DIV goes towards zero
    return ctx.bind(node, ctx.emit(ops.Sub(), [a, whole]))
