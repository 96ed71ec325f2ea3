"""Trigonometric and hyperbolic functions, through SIN, COS, ATAN2, EXP, ELU and LOG."""

from __future__ import annotations

from collections.abc import Callable

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.parts.formulas import number, step
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import Tensor

Formula = Callable[[Context, Tensor], Tensor]


def _formula(*kinds: str) -> Callable[[Formula], Formula]:
    """Register a function of one float tensor as the lowering of ``kinds``."""

    def register(formula: Formula) -> Formula:
        @lowering(*kinds)
        def lower(ctx: Context, node: SourceNode) -> None:
            ctx.bind(node, formula(ctx, float_input(ctx, node, 0)))

        return formula

    return register


@_formula("Tan")
def tan(ctx: Context, x: Tensor) -> Tensor:
    """sin(x) / cos(x)."""
    return ctx.emit(ops.Div(), [step(ctx, ops.Sin, x), step(ctx, ops.Cos, x)])


@_formula("Atan")
def atan(ctx: Context, x: Tensor) -> Tensor:
    """The angle of the point (1, x). ATAN2 does not broadcast, so that the 1 is made of x by a clamp."""
    ones = step(ctx, ops.Minimum, step(ctx, ops.Maximum, x, 1.0), 1.0)
    return ctx.emit(ops.Atan2(), [x, ones])


def _cathetus(ctx: Context, x: Tensor) -> Tensor:
    """sqrt(1 - x * x), as a product that keeps its digits near 1 and -1."""
    product = step(ctx, ops.Mul, step(ctx, ops.Sub, number(1), x), step(ctx, ops.Add, x, 1.0))
    return step(ctx, ops.Sqrt, product)


@_formula("Asin")
def asin(ctx: Context, x: Tensor) -> Tensor:
    """The angle of the point (sqrt(1 - x * x), x)."""
    return ctx.emit(ops.Atan2(), [x, _cathetus(ctx, x)])


@_formula("Acos")
def acos(ctx: Context, x: Tensor) -> Tensor:
    """The angle of the point (x, sqrt(1 - x * x))."""
    return ctx.emit(ops.Atan2(), [_cathetus(ctx, x), x])


@_formula("Sinh")
def sinh(ctx: Context, x: Tensor) -> Tensor:
    """sign(x) * (1 - exp(-a)) * (exp(a) + 1) / 2 with a = |x|; ELU gives the first factor with all its digits."""
    size = step(ctx, ops.Abs, x)
    falling = step(ctx, ops.Elu, step(ctx, ops.Neg, size))
    rising = step(ctx, ops.Add, step(ctx, ops.Exp, size), 1.0)
    half = step(ctx, ops.Mul, step(ctx, ops.Sign, x), -0.5)
    return ctx.emit(ops.Mul(), [step(ctx, ops.Mul, falling, half), rising])


@_formula("Cosh")
def cosh(ctx: Context, x: Tensor) -> Tensor:
    """(exp(x) + exp(-x)) / 2."""
    both = step(ctx, ops.Add, step(ctx, ops.Exp, x), step(ctx, ops.Exp, step(ctx, ops.Neg, x)))
    return ctx.emit(ops.Mul(), [both, number(0.5)])


@_formula("Asinh")
def asinh(ctx: Context, x: Tensor) -> Tensor:
    """sign(x) * log(a + sqrt(a * a + 1)) with a = |x|; absolute error 1e-7 near 0, infinite from 1.8e19 on."""
    size = step(ctx, ops.Abs, x)
    root = step(ctx, ops.Sqrt, step(ctx, ops.Add, step(ctx, ops.Mul, x, x), 1.0))
    return ctx.emit(ops.Mul(), [step(ctx, ops.Log, step(ctx, ops.Add, size, root)), step(ctx, ops.Sign, x)])


@_formula("Acosh")
def acosh(ctx: Context, x: Tensor) -> Tensor:
    """log(x + sqrt((x - 1) * (x + 1)))."""
    product = step(ctx, ops.Mul, step(ctx, ops.Sub, x, 1.0), step(ctx, ops.Add, x, 1.0))
    return ctx.emit(ops.Log(), [step(ctx, ops.Add, x, step(ctx, ops.Sqrt, product))])


@_formula("Atanh")
def atanh(ctx: Context, x: Tensor) -> Tensor:
    """(log(1 + x) - log(1 - x)) / 2."""
    upper = step(ctx, ops.Log, step(ctx, ops.Add, x, 1.0))
    lower = step(ctx, ops.Log, step(ctx, ops.Sub, number(1), x))
    return ctx.emit(ops.Mul(), [step(ctx, ops.Sub, upper, lower), number(0.5)])
