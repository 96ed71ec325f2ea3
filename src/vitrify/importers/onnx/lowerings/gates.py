"""Gates: a value times the sigmoid of a value."""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import Tensor


def swish_of(ctx: Context, x: Tensor, alpha: float = 1.0) -> Tensor:
    """X * sigmoid(alpha * x): LOGISTIC and MUL, which every runtime has and NPUs run as a table and a product."""
    inner = x if alpha == 1.0 else ctx.emit(ops.Mul(), [x, np.array(alpha, np.float32)], aside=True)
    return ctx.emit(ops.Mul(), [x, ctx.emit(ops.Logistic(), [inner], aside=True)])


@lowering("Swish")
def swish(ctx: Context, node: SourceNode) -> None:
    """x * sigmoid(alpha * x)."""
    ctx.bind(node, swish_of(ctx, float_input(ctx, node, 0), node.number("alpha", 1.0)))


@lowering("SwiGLU")
def swiglu(ctx: Context, node: SourceNode) -> None:
    """Swish of the first input times the second, of the same shape."""
    gate, x = float_input(ctx, node, 0), float_input(ctx, node, 1)
    if gate.shape != x.shape:
        raise node.problem(f"a gate {gate.type} for {x.type}; the shapes must be equal")
    ctx.bind(node, ctx.emit(ops.Mul(), [swish_of(ctx, gate, node.number("alpha", 1.0)), x]))


@lowering("Mish")
def mish(ctx: Context, node: SourceNode) -> None:
    """x * tanh(softplus(x)), by one sigmoid.

    With t = sigmoid(x) and u = t * (2 - t) it is x * u / (2 - u), exactly. A softplus written out needs an exponential
    and a logarithm, seven nodes whose ranges differ widely; here everything between is within 0 and 2. The quotient is
    a product with the square of RSQRT, as 2 - u is 1 at least and NPUs have no DIV.
    """
    x, two = float_input(ctx, node, 0), np.array(2, np.float32)
    t = ctx.emit(ops.Logistic(), [x], aside=True)
    u = ctx.emit(ops.Mul(), [t, ctx.emit(ops.Sub(), [two, t], aside=True)], aside=True)
    root = ctx.emit(ops.Rsqrt(), [ctx.emit(ops.Sub(), [two, u], aside=True)], aside=True)
    factor = ctx.emit(ops.Mul(), [u, ctx.emit(ops.Mul(), [root, root], aside=True)], aside=True)
    ctx.bind(node, ctx.emit(ops.Mul(), [x, factor]))
