"""Matrix products: FULLY_CONNECTED with constant weights, BATCH_MATMUL otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context, Value
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.parts.formulas import named
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import Tensor

MOST_PRODUCTS = 2**22
"""Of a product of integers: they are all there at once."""


def dense(ctx: Context, x: Tensor, weights: Array, bias: Array | None, name: str = "") -> Tensor:
    """x @ weights.T + bias on the last axis of ``x``; rows are flattened, as NPUs take two dimensions only."""
    rows = ctx.reshape(x, (x.size // x.shape[-1], x.shape[-1]))
    if bias is None:
        bias = np.zeros(weights.shape[0], np.float32)
    y = ctx.emit(ops.FullyConnected(), [rows, ctx.constant(weights, name), bias])
    return ctx.reshape(y, (*x.shape[:-1], weights.shape[0]))


@lowering("MatMul")
def matmul(ctx: Context, node: SourceNode) -> None:
    """numpy's matmul."""
    a, b = ctx.tensor(node, 0), ctx.value(node, 1)
    _fits(node, a.shape, b.shape)
    if not a.dtype.is_float:
        return ctx.bind(node, _by_sums(ctx, node, a, ctx.tensor(node, 1)))
    float_input(ctx, node, 1)
    return ctx.bind(node, multiplied(ctx, a, b, node.inputs[1]))


def _fits(node: SourceNode, a: Sequence[int], b: Sequence[int]) -> None:
    if not a or not b or a[-1] != (b[-2] if len(b) > 1 else b[0]):
        raise node.problem(f"shapes {list(a)} and {list(b)} do not fit each other")


def multiplied(ctx: Context, a: Tensor, b: Value, name: str = "") -> Tensor:
    """The product of floats; ``name`` is that of a constant ``b``."""
    if len(a.shape) == len(b.shape) == 1:
        products = ctx.emit(ops.Mul(), [a, named(ctx, b, name)], aside=True)
        return ctx.emit(ops.Sum(keep_dims=False), [products, np.zeros(1, np.int32)])
    if isinstance(b, np.ndarray) and b.ndim <= 2 and a.data is None:
        matrix = b if b.ndim == 2 else b[:, None]
        y = dense(ctx, a, matrix.T, None, name)
        return y if b.ndim == 2 else ctx.reshape(y, a.shape[:-1])
    return _batched(ctx, a, named(ctx, b, name))


def _by_sums(ctx: Context, node: SourceNode, a: Tensor, b: Tensor) -> Tensor:
    """The product of integers, exactly: all single products, then their sums, as no matrix kernel takes int32."""
    left = ctx.reshape(a, (*a.shape, 1) if len(a.shape) > 1 else (1, *a.shape, 1))
    right = ctx.reshape(b, (*b.shape[:-2], 1, *b.shape[-2:]) if len(b.shape) > 1 else (1, *b.shape, 1))
    shape = np.broadcast_shapes(left.shape, right.shape)
    if np.prod(shape, dtype=np.float64) > MOST_PRODUCTS:
        raise node.unsupported(
            f"a product of integers in {int(np.prod(shape, dtype=np.float64))} multiplications; up to {MOST_PRODUCTS} "
            "are converted",
            "let the model compute it in float32",
        )
    products = ctx.emit(ops.Mul(), [left, right], aside=True)
    y = ctx.emit(ops.Sum(keep_dims=False), [products, np.array([len(shape) - 2], np.int32)])
    return ctx.reshape(y, np.matmul(np.empty(a.shape, bool), np.empty(b.shape, bool)).shape)


def _batched(ctx: Context, a: Tensor, b: Tensor) -> Tensor:
    """BATCH_MATMUL, with vectors as matrices for the time being."""
    left = ctx.reshape(a, (1, *a.shape)) if len(a.shape) == 1 else a
    right = ctx.reshape(b, (*b.shape, 1)) if len(b.shape) == 1 else b
    y = ctx.emit(ops.BatchMatMul(), [left, right])
    shape = list(y.shape)
    if len(b.shape) == 1:
        del shape[-1]
    if len(a.shape) == 1:
        del shape[-2]
    return ctx.reshape(y, shape)


@lowering("Gemm")
def gemm(ctx: Context, node: SourceNode) -> None:
    """alpha * A' @ B' + beta * C, where ' is an optional transpose."""
    a, b = float_input(ctx, node, 0, (2,)), ctx.array(node, 1)
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    if node.integer("transA"):
        a = ctx.transpose(a, (1, 0))
    c = ctx.array(node, 2)
    if b is None or b.ndim != 2:
        product = _product(ctx, node, a, alpha)
        return ctx.bind(node, _plus(ctx, node, product, beta))
    weights = b if node.integer("transB") else b.T
    if a.shape[1] != weights.shape[1]:
        raise node.problem(f"A has {a.shape[1]} columns, B {weights.shape[1]} rows")
    scaled = weights * np.float32(alpha) if alpha != 1.0 else weights
    outputs = scaled.shape[0]
    if (
        c is not None
        and c.size in (1, outputs)
        and (c.ndim < 2 or c.shape[-1] in (outputs, c.size))
        and c.shape[:-1] in ((), (1,))
    ):
        bias = np.broadcast_to(c.reshape(-1) * np.float32(beta) if beta != 1.0 else c.reshape(-1), (outputs,))
        return ctx.bind(node, dense(ctx, a, scaled, bias, node.inputs[1]))
    return ctx.bind(node, _plus(ctx, node, dense(ctx, a, scaled, None, node.inputs[1]), beta))


def _product(ctx: Context, node: SourceNode, a: Tensor, alpha: float) -> Tensor:
    b = float_input(ctx, node, 1, (2,))
    y = ctx.emit(ops.BatchMatMul(adj_y=bool(node.integer("transB"))), [a, b])
    return y if alpha == 1.0 else ctx.emit(ops.Mul(), [y, np.array(alpha, np.float32)])


def _plus(ctx: Context, node: SourceNode, y: Tensor, beta: float) -> Tensor:
    if not ctx.present(node, 2):
        return y
    c = float_input(ctx, node, 2)
    if beta != 1.0:
        c = ctx.emit(ops.Mul(), [c, np.array(beta, np.float32)], aside=True)
    return ctx.emit(ops.Add(), [y, c])
