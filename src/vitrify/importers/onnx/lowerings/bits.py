"""Logic and shifts on the bits of integers. TFLite has BITWISE_XOR and RIGHT_SHIFT; the rest is arithmetic on them.

64-bit integers are int32 in the graph: their results are right as long as they fit.
"""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.elementwise import same_types
from vitrify.importers.onnx.parts.formulas import cast, number, step
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import DType, Tensor

_INTEGERS = {
    DType.INT8: 8, DType.UINT8: 8, DType.INT16: 16, DType.UINT16: 16, DType.INT32: 32, DType.UINT32: 32,
}  # and their bits
_WIDTH = 32


def _integers(ctx: Context, node: SourceNode) -> list[Tensor]:
    inputs = same_types(ctx, node)
    if inputs[0].dtype not in _INTEGERS:
        raise node.problem(f"its inputs are {inputs[0].dtype.label}; it takes integers")
    return inputs


def _wide(ctx: Context, x: Tensor) -> Tensor:
    """``x`` as int32: a value of a narrower type stays what it is."""
    return ctx.constant(x.data.astype(np.int32)) if x.data is not None else cast(ctx, x, DType.INT32)


def _narrow(ctx: Context, x: Tensor, dtype: DType) -> Tensor:
    """Back to the node's own type; bits above it are cut off."""
    if dtype is DType.INT32:
        return x
    return ctx.emit(ops.Cast(in_data_type=x.dtype.value, out_data_type=dtype.value), [x])


@lowering("BitwiseXor")
def bitwise_xor(ctx: Context, node: SourceNode) -> None:
    """Bits that differ."""
    ctx.bind(node, ctx.emit(ops.BitwiseXor(), _integers(ctx, node)))


@lowering("BitwiseNot")
def bitwise_not(ctx: Context, node: SourceNode) -> None:
    """All bits turned: the difference from all ones."""
    (x,) = _integers(ctx, node)
    numpy_type = x.dtype.numpy
    assert numpy_type is not None
    ones = np.array(-1, np.int64).astype(numpy_type)
    ctx.bind(node, ctx.emit(ops.BitwiseXor(), [x, ones.reshape((1,) * len(x.shape))]))


def _common_bits(ctx: Context, a: Tensor, b: Tensor) -> Tensor:
    """a & b of int32, from a + b = (a ^ b) + 2 * (a & b) on the upper 31 bits, and a product for the lowest one."""
    upper_a, upper_b = (step(ctx, ops.RightShift, v, np.ones((1,) * len(v.shape), np.int32)) for v in (a, b))
    total = step(ctx, ops.Sub, step(ctx, ops.Add, upper_a, upper_b), step(ctx, ops.BitwiseXor, upper_a, upper_b))
    low_a, low_b = (
        step(ctx, ops.Sub, v, step(ctx, ops.Mul, upper, 2)) for v, upper in ((a, upper_a), (b, upper_b))
    )
    return ctx.emit(ops.Add(), [total, step(ctx, ops.Mul, low_a, low_b)])


def _low_mask(x: Tensor) -> int | None:
    """The power of two that the constant ``x`` is one less than, below 2**31."""
    if x.data is None or x.size != 1:
        return None
    value = int(x.data.reshape(())) + 1
    return value if 1 < value < 2**31 and value & (value - 1) == 0 else None


@lowering("BitwiseAnd")
def bitwise_and(ctx: Context, node: SourceNode) -> None:
    """Bits that are set in both; the lowest bits alone are the rest of a division."""
    a, b = inputs = _integers(ctx, node)
    dtype = a.dtype
    a, b = (_wide(ctx, v) for v in inputs)
    if _low_mask(a):
        a, b = b, a
    modulus = _low_mask(b)
    if modulus and len(b.shape) <= len(a.shape):
        return ctx.bind(node, _narrow(ctx, ctx.emit(ops.FloorMod(), [a, number(modulus, DType.INT32)]), dtype))
    return ctx.bind(node, _narrow(ctx, _common_bits(ctx, a, b), dtype))


@lowering("BitwiseOr")
def bitwise_or(ctx: Context, node: SourceNode) -> None:
    """Bits that are set in one of both: those in common and those that differ."""
    inputs = _integers(ctx, node)
    a, b = (_wide(ctx, v) for v in inputs)
    y = ctx.emit(ops.Add(), [_common_bits(ctx, a, b), step(ctx, ops.BitwiseXor, a, b)])
    ctx.bind(node, _narrow(ctx, y, inputs[0].dtype))


@lowering("BitShift")
def bit_shift(ctx: Context, node: SourceNode) -> None:
    """Shift by any amounts; those below zero or of the whole width and more leave nothing but the sign.

    Source: ONNX operator reference, BitShift-28.
    """
    direction = node.string("direction")
    if direction not in ("LEFT", "RIGHT"):
        raise node.problem(f"its direction is '{direction}'; it is LEFT or RIGHT")
    inputs = _integers(ctx, node)
    if len(inputs) != 2:
        raise node.problem(f"it has {len(inputs)} inputs; it takes 2")
    dtype = inputs[0].dtype
    x, amounts = (_wide(ctx, v) for v in inputs)
    y = _left(ctx, x, amounts, _INTEGERS[dtype]) if direction == "LEFT" else _right(ctx, x, amounts)
    ctx.bind(node, _narrow(ctx, y, dtype))


def _left(ctx: Context, x: Tensor, amounts: Tensor, bits: int) -> Tensor:
    """A product with a power of two, from a table where the amounts are computed."""
    table: Array = np.concatenate([[0], 1 << np.arange(bits, dtype=np.int64), [0]]).astype(np.uint32).view(np.int32)
    if amounts.data is not None:
        return ctx.emit(ops.Mul(), [x, table[np.clip(amounts.data, -1, bits) + 1]])
    inside = step(ctx, ops.Minimum, step(ctx, ops.Maximum, amounts, -1), bits)
    factors = ctx.emit(ops.Gather(axis=0), [table, step(ctx, ops.Add, inside, 1)], aside=True)
    return ctx.emit(ops.Mul(), [x, factors])


def _right(ctx: Context, x: Tensor, amounts: Tensor) -> Tensor:
    """RIGHT_SHIFT, which takes amounts beyond the width for the width less one, and those below zero for zero."""
    most = _WIDTH - 1
    if amounts.data is not None:
        held: Tensor | Array = np.where(amounts.data < 0, most, np.minimum(amounts.data, most)).astype(np.int32)
    else:
        negative = step(ctx, ops.Less, amounts, 0)
        held = ctx.emit(ops.SelectV2(), [negative, number(most, DType.INT32), amounts], aside=True)
    return ctx.emit(ops.RightShift(), [x, held])
