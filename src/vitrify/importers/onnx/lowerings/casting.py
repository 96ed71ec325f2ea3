"""Casts between all element types, and bits read as another type."""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.elements import SMALL_FLOATS, SMALL_INTEGERS, SmallFloat, graph_dtype
from vitrify.importers.onnx.reading.tensors import DTYPES, NAMES
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import DType, Tensor

_MANTISSA = 24  # bits of a float32's, the leading one included


@lowering("Cast", "CastLike")
def cast(ctx: Context, node: SourceNode) -> None:
    """Another element type; nothing between types that are held as one (int64 and int32, float64 and float32)."""
    name, known = target_type(ctx, node), ctx.array(node, 0)
    if known is not None and name in DTYPES.values():
        return ctx.bind(node, known.astype(name))
    x = ctx.tensor(node, 0)
    if name in SMALL_FLOATS:
        result = round_float(ctx, ctx.cast(x, DType.FLOAT32), SMALL_FLOATS[name], bool(node.integer("saturate", 1)))
    elif name == "float8_e8m0fnu":
        result = _power_of_two(ctx, node, ctx.cast(x, DType.FLOAT32))
    elif name in SMALL_INTEGERS:
        result = _wrapped(ctx, x, name)
    else:
        result = _to(ctx, x, graph_dtype(name))
    return ctx.bind(node, result)


def target_type(ctx: Context, node: SourceNode) -> str:
    """The element type that the node casts to, by its numpy name.

    Raises:
        UnsupportedError: it is none that can be held.
    """
    if node.kind == "CastLike":
        like = ctx.value(node, 1)
        name = ctx.declared.get(node.inputs[1]) or (like.dtype.label if isinstance(like, Tensor) else like.dtype.name)
    else:
        to = node.integer("to")
        name = DTYPES.get(to) or NAMES.get(to) or f"number {to}"
    if name == "string" or name.startswith(("number", "complex")):
        raise node.unsupported(f"a cast to the element type {name}")
    return name


def _to(ctx: Context, x: Tensor, dtype: DType) -> Tensor:
    """The plain cast; the input itself where the types are held as one."""
    if x.dtype is dtype:
        return x
    if x.data is not None:
        return ctx.cast(x, dtype)
    return ctx.emit(ops.Cast(in_data_type=x.dtype.value, out_data_type=dtype.value), [x])


def _wrapped(ctx: Context, x: Tensor, name: str) -> Tensor:
    """To an integer of a few bits: the higher ones are dropped."""
    count = np.int32(2 ** SMALL_INTEGERS[name])
    offset = np.array(0 if name.startswith("u") else count // 2, np.int32)
    whole = ctx.cast(x, DType.INT32)
    if offset:
        whole = ctx.emit(ops.Add(), [whole, offset], aside=True)
    whole = ctx.emit(ops.FloorMod(), [whole, np.array(count, np.int32)], aside=True)
    if offset:
        whole = ctx.emit(ops.Sub(), [whole, offset], aside=True)
    return _to(ctx, whole, graph_dtype(name))


def round_float(ctx: Context, x: Tensor, kind: SmallFloat, saturate: bool = True) -> Tensor:
    """A float32 ``x`` rounded to the nearest value of ``kind``, ties to even, still float32.

    What is not smaller than the least normal number loses the low bits of its mantissa in a product that shifts them
    out (x * (2**s + 1), Dekker's split); below, a large number added and taken away does it. Both are exact.
    """

    def number(value: float) -> np.ndarray[tuple[()], np.dtype[np.float32]]:
        return np.array(value, np.float32)

    def clamped(y: Tensor, most: float) -> Tensor:
        y = ctx.emit(ops.Minimum(), [y, number(most)], aside=True)
        return ctx.emit(ops.Maximum(), [y, number(-most)], aside=True)

    near = clamped(x, 2 * kind.most)  # far enough to be known as too large, near enough not to overflow
    wide = ctx.emit(ops.Mul(), [near, number(2.0 ** (_MANTISSA - kind.digits) + 1)], aside=True)
    normal = ctx.emit(ops.Sub(), [wide, ctx.emit(ops.Sub(), [wide, near], aside=True)], aside=True)
    grid = number(1.5 * 2.0 ** (_MANTISSA - 1) * kind.step)
    small = ctx.emit(ops.Sub(), [ctx.emit(ops.Add(), [near, grid], aside=True), grid], aside=True)
    size = ctx.emit(ops.Abs(), [near], aside=True)
    is_small = ctx.emit(ops.Less(), [size, number(2.0**kind.least)], aside=True)
    rounded = ctx.emit(ops.SelectV2(), [is_small, small, normal], aside=True)
    if saturate:
        rounded = clamped(rounded, kind.most)
    else:
        size = ctx.emit(ops.Abs(), [rounded], aside=True)
        fits = ctx.emit(ops.LessEqual(), [size, number(kind.most)], aside=True)
        beyond = ctx.emit(ops.Mul(), [rounded, number(np.inf if kind.infinite else np.nan)], aside=True)
        rounded = ctx.emit(ops.SelectV2(), [fits, rounded, beyond], aside=True)
    is_number = ctx.emit(ops.Equal(), [x, x], aside=True)
    return ctx.emit(ops.SelectV2(), [is_number, rounded, x])


def _power_of_two(ctx: Context, node: SourceNode, x: Tensor) -> Tensor:
    """A positive float32 ``x`` as a power of two: what is added to its bits decides which, then the mantissa goes."""
    mode = node.string("round_mode", "up")
    added = {"up": 2**23 - 1, "nearest": 2**22, "down": 0}.get(mode)
    if added is None:
        raise node.problem(f"round_mode '{mode}' is none of up, down, nearest")
    if not node.integer("saturate", 1):
        raise node.unsupported("a cast to float8_e8m0fnu with saturate=0")
    near = ctx.emit(ops.Minimum(), [x, np.array(2.0**127, np.float32)], aside=True)
    near = ctx.emit(ops.Maximum(), [near, np.array(2.0**-126, np.float32)], aside=True)
    bits = reread(ctx, near, DType.INT32)
    if added:
        bits = ctx.emit(ops.Add(), [bits, np.array(added, np.int32)], aside=True)
    bits = ctx.emit(ops.RightShift(), [bits, np.full(bits.shape, 23, np.int32)], aside=True)
    bits = ctx.emit(ops.Mul(), [bits, np.array(2**23, np.int32)], aside=True)
    is_number = ctx.emit(ops.Equal(), [x, x], aside=True)
    return ctx.emit(ops.SelectV2(), [is_number, reread(ctx, bits, DType.FLOAT32), x])


def reread(ctx: Context, x: Tensor, dtype: DType) -> Tensor:
    """The same bits as an element type of the same width."""
    if x.data is not None and dtype.numpy is not None:
        return ctx.constant(np.asarray(x.data).view(dtype.numpy))
    y = ctx.emit(ops.Bitcast(), [x], aside=True)
    y.dtype = dtype
    return y


@lowering("BitCast")
def bit_cast(ctx: Context, node: SourceNode) -> None:
    """The same bits as another type; integers of one width wrap into each other."""
    x, name = ctx.tensor(node, 0), target_type(ctx, node)
    source = ctx.declared.get(node.inputs[0], x.dtype.label)
    if any(kind in SMALL_FLOATS or kind in ("float16", "bfloat16", "float64", "float8_e8m0fnu")
           for kind in (source, name)):  # fmt: skip
        raise node.unsupported(f"from {source} to {name}: floats are held as float32, whose bits are others")
    target = graph_dtype(name)
    if x.dtype.bits != target.bits:
        raise node.problem(f"the bits of {x.type} cannot be read as {name}")
    whole = DType.FLOAT32 not in (x.dtype, target)
    ctx.bind(node, _to(ctx, x, target) if whole else x if x.dtype is target else reread(ctx, x, target))
