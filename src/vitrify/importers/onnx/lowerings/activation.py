"""Activation functions; those without a TFLite operator are written out exactly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context, Value
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.parts.formulas import step
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import Operator, Tensor

_DIRECT: dict[str, type[Operator]] = {
    "Relu": ops.Relu,
    "Sigmoid": ops.Logistic,
    "Tanh": ops.Tanh,
    "HardSwish": ops.HardSwish,
}
_CLIPS: dict[tuple[float, float], type[Operator]] = {
    (0.0, 6.0): ops.Relu6,
    (0.0, np.inf): ops.Relu,
    (-1.0, 1.0): ops.ReluN1To1,
    (0.0, 1.0): ops.Relu0To1,
}
LARGEST = float(np.finfo(np.float32).max)


def _f(value: float) -> Array:
    return np.array(value, np.float32)


def _direct(op: type[Operator]) -> Callable[[Context, SourceNode], None]:
    def lower(ctx: Context, node: SourceNode) -> None:
        ctx.bind(node, ctx.emit(op(), [float_input(ctx, node, 0)]))

    return lower


for _kind, _op in _DIRECT.items():
    lowering(_kind)(_direct(_op))


@lowering("Clip")
def clip(ctx: Context, node: SourceNode) -> None:
    """Bounds from attributes (up to operator set 10) or inputs, known now or computed at run time."""
    x = ctx.tensor(node, 0)
    low, high = _bound(ctx, node, 1, "min"), _bound(ctx, node, 2, "max")
    if x.dtype.is_float and not isinstance(low, Tensor) and not isinstance(high, Tensor):
        bounds = -np.inf if low is None else float(low), np.inf if high is None else float(high)
        if bounds in _CLIPS:
            return ctx.bind(node, ctx.emit(_CLIPS[bounds](), [x]))
    if low is not None:
        x = ctx.emit(ops.Maximum(), [x, low])
    if high is not None:
        x = ctx.emit(ops.Minimum(), [x, high])
    return ctx.bind(node, x)


def _bound(ctx: Context, node: SourceNode, index: int, name: str) -> Value | None:
    """A bound as a scalar of the input's type; None when there is none, or it is the type's own."""
    value = ctx.value(node, index) if ctx.present(node, index) else node.attributes.get(name)
    if value is None:
        return None
    if isinstance(value, (Tensor, np.ndarray)) and value.size != 1:
        raise node.problem(f"a bound of shape {list(value.shape)}; it is a single number")
    if isinstance(value, Tensor):
        return ctx.reshape(value, ())
    dtype = ctx.tensor(node, 0).dtype
    bound = float(np.asarray(value).reshape(()))
    if dtype.is_float:
        nothing = bound <= -LARGEST if name == "min" else bound >= LARGEST
        return None if nothing else _f(bound)
    exact = int(np.asarray(value).reshape(()))
    span = np.iinfo(dtype.numpy)
    nothing = exact <= span.min if name == "min" else exact >= span.max
    return None if nothing else np.array(exact, dtype.numpy)


@lowering("LeakyRelu")
def leaky_relu(ctx: Context, node: SourceNode) -> None:
    """x where x >= 0, else alpha * x."""
    ctx.bind(node, ctx.emit(ops.LeakyRelu(alpha=node.number("alpha", 0.01)), [float_input(ctx, node, 0)]))


@lowering("PRelu")
def prelu(ctx: Context, node: SourceNode) -> None:
    """A slope per channel: PRELU on the channel-last tensor; a single slope is a LEAKY_RELU.

    Slopes that PRELU does not take (computed at run time, or different within a batch) are max(x, 0) + slope *
    min(x, 0).
    """
    x, slope = float_input(ctx, node, 0), ctx.value(node, 1)
    rank = len(x.shape)
    shape = (1,) * (rank - len(slope.shape)) + tuple(slope.shape)
    if len(shape) != rank or any(s not in (1, d) for s, d in zip(shape, x.shape, strict=True)):
        raise node.problem(f"a slope {list(slope.shape)} does not fit the input {x.type}")
    if isinstance(slope, Tensor) or (shape[:1] != (1,) and slope.size > 1):
        below = step(ctx, ops.Mul, step(ctx, ops.Minimum, x, 0.0), slope)
        return ctx.bind(node, ctx.emit(ops.Add(), [step(ctx, ops.Relu, x), below]))
    if slope.size == 1:
        return ctx.bind(node, ctx.emit(ops.LeakyRelu(alpha=float(slope.reshape(()))), [x]))
    if rank < 3:
        return ctx.bind(node, ctx.emit(ops.Prelu(), [x, slope.reshape(shape[1:])]))
    alpha = slope.reshape(shape[1:]).transpose(*range(1, rank - 1), 0)
    return ctx.bind(node, ctx.channel_first(ctx.emit(ops.Prelu(), [ctx.channel_last(x), alpha])))


@lowering("HardSigmoid")
def hard_sigmoid(ctx: Context, node: SourceNode) -> None:
    """max(0, min(1, alpha * x + beta))."""
    x = float_input(ctx, node, 0)
    scaled = ctx.emit(ops.Mul(), [x, _f(node.number("alpha", 0.2))], aside=True)
    shifted = ctx.emit(ops.Add(), [scaled, _f(node.number("beta", 0.5))], aside=True)
    ctx.bind(node, ctx.emit(ops.Relu0To1(), [shifted]))


def softplus_of(ctx: Context, x: Tensor) -> Tensor:
    """log(1 + exp(x)), written so that no x overflows: relu(x) + log(1 + exp(-|x|))."""
    small = ctx.emit(ops.Exp(), [ctx.emit(ops.Neg(), [ctx.emit(ops.Abs(), [x], aside=True)], aside=True)], aside=True)
    log = ctx.emit(ops.Log(), [ctx.emit(ops.Add(), [small, _f(1)], aside=True)], aside=True)
    return ctx.emit(ops.Add(), [ctx.emit(ops.Relu(), [x], aside=True), log])


@lowering("Softplus")
def softplus(ctx: Context, node: SourceNode) -> None:
    """log(1 + exp(x))."""
    ctx.bind(node, softplus_of(ctx, float_input(ctx, node, 0)))


@lowering("Softsign")
def softsign(ctx: Context, node: SourceNode) -> None:
    """x / (1 + |x|)."""
    x = float_input(ctx, node, 0)
    below = ctx.emit(ops.Add(), [ctx.emit(ops.Abs(), [x], aside=True), _f(1)], aside=True)
    ctx.bind(node, ctx.emit(ops.Div(), [x, below]))


def _exponential(ctx: Context, x: Tensor, alpha: float, inner: float = 1.0) -> Tensor:
    """max(x, 0) + alpha * (exp(min(x, 0) / inner) - 1)."""
    if alpha == 1.0 and inner == 1.0:
        return ctx.emit(ops.Elu(), [x])
    low = ctx.emit(ops.Minimum(), [x, _f(0)], aside=True)
    if inner != 1.0:
        low = ctx.emit(ops.Mul(), [low, _f(1 / inner)], aside=True)
    curve = ctx.emit(ops.Mul(), [ctx.emit(ops.Elu(), [low], aside=True), _f(alpha)], aside=True)
    return ctx.emit(ops.Add(), [ctx.emit(ops.Relu(), [x], aside=True), curve])


@lowering("Elu")
def elu(ctx: Context, node: SourceNode) -> None:
    """x where x >= 0, else alpha * (exp(x) - 1)."""
    ctx.bind(node, _exponential(ctx, float_input(ctx, node, 0), node.number("alpha", 1.0)))


@lowering("Celu")
def celu(ctx: Context, node: SourceNode) -> None:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    alpha = node.number("alpha", 1.0)
    ctx.bind(node, _exponential(ctx, float_input(ctx, node, 0), alpha, alpha))


@lowering("Selu")
def selu(ctx: Context, node: SourceNode) -> None:
    """gamma * Elu(x, alpha). Source of the defaults: ONNX specification of Selu."""
    inner = _exponential(ctx, float_input(ctx, node, 0), node.number("alpha", 1.67326319217681884765625))
    ctx.bind(node, ctx.emit(ops.Mul(), [inner, _f(node.number("gamma", 1.05070102214813232421875))]))


@lowering("Gelu")
def gelu(ctx: Context, node: SourceNode) -> None:
    """x times the normal distribution's function at x, exact or by tanh."""
    approximate = node.string("approximate", "none") == "tanh"
    ctx.bind(node, ctx.emit(ops.Gelu(approximate=approximate), [float_input(ctx, node, 0)]))


@lowering("ThresholdedRelu")
def thresholded_relu(ctx: Context, node: SourceNode) -> None:
    """x where x > alpha, else 0."""
    x = float_input(ctx, node, 0)
    above = ctx.emit(ops.Greater(), [x, _f(node.number("alpha", 1.0))], aside=True)
    ctx.bind(node, ctx.emit(ops.SelectV2(), [above, x, _f(0)]))


@lowering("Shrink")
def shrink(ctx: Context, node: SourceNode) -> None:
    """x + bias below -lambd, x - bias above lambd, 0 between."""
    x = ctx.tensor(node, 0)
    bound, bias = node.number("lambd", 0.5), node.number("bias", 0.0)
    if not x.dtype.is_float:
        raise node.unsupported(f"its input is {x.dtype.label}; floats are converted")
    if bias == bound and bound >= 0:
        middle = step(ctx, ops.Maximum, step(ctx, ops.Minimum, x, bound), -bound)
        return ctx.bind(node, ctx.emit(ops.Sub(), [x, middle]))
    moved = x if bias == 0 else step(ctx, ops.Sub, x, step(ctx, ops.Mul, step(ctx, ops.Sign, x), bias))
    outside = step(ctx, ops.Greater, step(ctx, ops.Abs, x), bound)
    return ctx.bind(node, ctx.emit(ops.SelectV2(), [outside, moved, _f(0)]))
