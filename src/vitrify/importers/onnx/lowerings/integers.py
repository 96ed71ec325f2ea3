"""Products of 8-bit integers with int32 sums, computed in float: exact, as every partial sum stays below 2**24.

Where a sum could be larger, the input is cut into its upper and lower four bits; the two results join in int32.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context, Value
from vitrify.importers.onnx.lowerings.convolution import convolved
from vitrify.importers.onnx.lowerings.matmul import multiplied
from vitrify.importers.onnx.parts.formulas import cast, shaped, step
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import DType, Tensor

_EXACT = 2**24  # up to here, float32 holds every integer
_LARGEST = 255  # of the difference of two 8-bit numbers
_HALF = 16


@lowering("MatMulInteger")
def matmul_integer(ctx: Context, node: SourceNode) -> None:
    """(A - its zero points) @ (B - its zero points); zero points per row of A, per column of B."""
    a, b = ctx.tensor(node, 0), ctx.value(node, 1)
    if not a.shape or not b.shape or a.shape[-1] != b.shape[-2 if len(b.shape) > 1 else 0]:
        raise node.problem(f"shapes {list(a.shape)} and {list(b.shape)} do not fit each other")
    points = ctx.value(node, 2) if ctx.present(node, 2) else None
    if points is not None and len(points.shape) == 1 and points.size > 1:
        points = shaped(ctx, points, (points.size, 1))
    left = _centred(ctx, ctx.value(node, 0), points)
    right = _centred(ctx, b, ctx.value(node, 3) if ctx.present(node, 3) else None)
    tensor = ctx.constant(left) if isinstance(left, np.ndarray) else left
    largest = np.abs(right).sum(-2 if right.ndim > 1 else 0).max() if isinstance(right, np.ndarray) else None
    sums = float(largest) if largest is not None else float(_LARGEST * a.shape[-1])
    ctx.bind(node, _exact(ctx, node, tensor, sums, lambda x: multiplied(ctx, x, right, node.inputs[1])))


@lowering("ConvInteger")
def conv_integer(ctx: Context, node: SourceNode) -> None:
    """The convolution of x - its zero point with w - its zero points; zero points per output channel of w."""
    weights = ctx.value(node, 1)
    points = ctx.value(node, 3) if ctx.present(node, 3) else None
    if points is not None and points.size > 1:
        points = shaped(ctx, points, (points.size, *(1,) * (len(weights.shape) - 1)))
    centred = _centred(ctx, weights, points)
    x = _centred(ctx, ctx.value(node, 0), ctx.value(node, 2) if ctx.present(node, 2) else None)
    tensor = ctx.constant(x) if isinstance(x, np.ndarray) else x
    if len(tensor.shape) not in (3, 4, 5):
        raise node.problem(f"an input of {len(tensor.shape)} dimensions")
    if isinstance(centred, np.ndarray):
        sums = float(np.abs(centred).reshape(len(centred), -1).sum(1).max())
    else:
        sums = float(_LARGEST * np.prod(weights.shape[1:]))
    bias = np.zeros(weights.shape[0], np.float32)
    ctx.bind(node, _exact(ctx, node, tensor, sums, lambda part: convolved(ctx, node, part, centred, bias)))


def _centred(ctx: Context, value: Value, points: Value | None) -> Value:
    """The value less its zero points, as float."""
    if isinstance(value, np.ndarray) and (points is None or isinstance(points, np.ndarray)):
        return np.asarray(value.astype(np.float32) - (0 if points is None else points.astype(np.float32)), np.float32)
    x = _float(ctx, value)
    if points is None or (isinstance(points, np.ndarray) and not points.any()):
        return x
    return step(ctx, ops.Sub, x, _float(ctx, points))


def _float(ctx: Context, value: Value) -> Tensor:
    if isinstance(value, np.ndarray):
        return ctx.constant(value.astype(np.float32))
    return cast(ctx, value, DType.FLOAT32)


def _exact(
    ctx: Context, node: SourceNode, x: Tensor, sums: float, product: Callable[[Tensor], Tensor]
) -> Tensor:
    """A product that is linear in ``x``, as int32; ``sums`` bounds the sum of the other side's absolute values."""
    to_int = ops.Cast(in_data_type=DType.FLOAT32.value, out_data_type=DType.INT32.value)
    if sums * _LARGEST < _EXACT:
        return ctx.emit(to_int, [product(x)])
    if sums * _HALF >= _EXACT:
        raise node.unsupported(
            f"sums of up to {int(sums * _LARGEST)}; up to {_EXACT * _LARGEST // _HALF}, float arithmetic is exact",
            "give the float model: Vitrify quantizes it itself",
        )
    upper = step(ctx, ops.Floor, step(ctx, ops.Mul, x, 1 / _HALF))
    lower = step(ctx, ops.Sub, x, step(ctx, ops.Mul, upper, float(_HALF)))
    high, low = (ctx.emit(to_int, [product(part)], aside=True) for part in (upper, lower))
    return ctx.emit(ops.Add(), [step(ctx, ops.Mul, high, _HALF), low])
