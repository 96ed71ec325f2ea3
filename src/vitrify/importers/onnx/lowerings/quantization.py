"""Between real values and steps: QUANTIZE and DEQUANTIZE, or their arithmetic where TFLite has no such scale.

QUANTIZE rounds halves away from zero where ONNX rounds them to even: one step, on exact ties only.
Source: ONNX operator reference, QuantizeLinear-25 and DequantizeLinear-25; TFLite kernels/quantize.cc, dequantize.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.elements import SMALL_FLOATS, graph_dtype
from vitrify.importers.onnx.lowerings.casting import round_float
from vitrify.importers.onnx.registry import axis_of, lowering
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import DType, Quantization, Tensor

LIMITS = {"int2": (-2, 1), "uint2": (0, 3), "int4": (-8, 7), "uint4": (0, 15), "int8": (-128, 127), "uint8": (0, 255),
          "int16": (-32768, 32767), "uint16": (0, 65535), "int32": (-(2**31), 2**31 - 1)}
"""Least and greatest step of each element type."""
_NUMBERS = {2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 21: "uint4", 22: "int4", 25: "uint2",
            26: "int2"}
"""Element types by their number in ONNX's attributes. Source: onnx.proto, TensorProto.DataType."""


class _Steps:
    """The scale and zero point of a node, spread to what broadcasts against its input."""

    def __init__(self, ctx: Context, node: SourceNode, shape: tuple[int, ...], kind: str) -> None:
        self.node, self.kind = node, kind
        scale = ctx.known(node, 1, "the scale")
        zero = ctx.known(node, 2, "the zero point") if ctx.present(node, 2) else np.zeros(scale.shape, np.int64)
        if not np.all(np.isfinite(scale)) or np.any(scale <= 0):
            raise node.problem(f"a scale of {float(np.min(scale)):g}; scales are positive")
        if zero.size not in (1, scale.size):
            raise node.problem(f"{scale.size} scales and {zero.size} zero points")
        self.flat_scale, self.flat_zero = scale.astype(np.float32), zero.astype(np.int64)
        self.axis = axis_of(node, node.integer("axis", 1), len(shape)) if scale.size > 1 else None
        self.block = node.integer("block_size")
        self.scale, self.zero = self._spread(self.flat_scale, shape), self._spread(self.flat_zero, shape)

    def _spread(self, values: Array, shape: tuple[int, ...]) -> Array:
        if values.size == 1:
            return values.reshape(())
        axis = self.axis
        assert axis is not None
        if self.block:
            if values.ndim != len(shape):
                raise self.node.problem(f"scales {list(values.shape)} per block for a tensor {list(shape)}")
            if self.block < 1 or (shape[axis] - 1) // self.block >= values.shape[axis]:
                raise self.node.problem(f"blocks of {self.block} with scales {list(values.shape)} for {list(shape)}")
            return np.take(values, np.arange(shape[axis]) // self.block, axis)
        if values.size != shape[axis]:
            raise self.node.problem(f"{values.size} scales for {shape[axis]} indices of axis {axis}")
        spread = [1] * len(shape)
        spread[axis] = -1
        return values.reshape(spread)

    @property
    def quantization(self) -> Quantization | None:
        """As TFLite says it, None for blocks."""
        if self.flat_scale.size == 1:
            return Quantization.per_tensor(float(self.flat_scale.reshape(-1)[0]), int(self.flat_zero.reshape(-1)[0]))
        if self.block or self.axis is None:
            return None
        zero = np.broadcast_to(self.flat_zero.reshape(-1), (self.flat_scale.size,)).copy()
        return Quantization.per_axis(self.flat_scale.reshape(-1), self.axis, zero)

    @property
    def has_operator(self) -> bool:
        """True when QUANTIZE and DEQUANTIZE take it: one scale, 16-bit steps symmetric."""
        if self.flat_scale.size != 1:
            return False
        return self.kind in ("int8", "uint8") or (self.kind == "int16" and not self.flat_zero.any())


@lowering("QuantizeLinear")
def quantize_linear(ctx: Context, node: SourceNode) -> None:
    """round(x / scale) + zero point, saturated to the type of the zero point."""
    x = ctx.value(node, 0)
    if _is_open(ctx, node):
        return _by_arithmetic(ctx, node)
    kind = _kind(ctx, node)
    steps = _Steps(ctx, node, x.shape, kind)
    if kind in SMALL_FLOATS:
        divided = ctx.emit(ops.Div(), [ctx.cast(ctx.tensor(node, 0), DType.FLOAT32), steps.scale], aside=True)
        return ctx.bind(node, round_float(ctx, divided, SMALL_FLOATS[kind], bool(node.integer("saturate", 1))))
    held = _numpy(node, steps.kind)
    low, high = LIMITS[steps.kind]
    if isinstance(x, np.ndarray):
        rounded = np.rint(x.astype(np.float32) / steps.scale) + steps.zero
        return ctx.bind(node, np.asarray(np.clip(rounded, low, high), held))
    if steps.has_operator and x.dtype.is_float:
        y = ctx.emit(ops.Quantize(), [x])
        y.dtype, y.quantization = graph_dtype(steps.kind), steps.quantization
        return ctx.bind(node, y)
    real = x if x.dtype.is_float else _cast(ctx, x, DType.FLOAT32)
    divided = ctx.emit(ops.Div(), [real, steps.scale], aside=True)
    scaled = ctx.emit(ops.Round(), [divided], aside=True)
    if steps.zero.any():
        scaled = ctx.emit(ops.Add(), [scaled, steps.zero.astype(np.float32)], aside=True)
    bounded = ctx.emit(ops.Maximum(), [scaled, np.array(low, np.float32)], aside=True)
    bounded = ctx.emit(ops.Minimum(), [bounded, np.array(high, np.float32)], aside=True)
    return ctx.bind(node, _cast(ctx, bounded, DType.of(np.dtype(held))))


@lowering("DequantizeLinear")
def dequantize_linear(ctx: Context, node: SourceNode) -> None:
    """(q - zero point) * scale; constants are computed now, their scale is remembered for the quantized form."""
    q = ctx.value(node, 0)
    if _is_open(ctx, node):
        return _back_by_arithmetic(ctx, node)
    kind = q.dtype.name if isinstance(q, np.ndarray) else q.dtype.label
    steps = _Steps(ctx, node, q.shape, kind)
    if isinstance(q, np.ndarray):
        real = np.asarray((q.astype(np.int64) - steps.zero).astype(np.float32) * steps.scale)
        if steps.quantization is not None and node.outputs:
            ctx.steps[node.outputs[0]] = steps.quantization
            ctx.remember(node.outputs[0], real)
        return ctx.bind(node, real)
    if steps.has_operator and _carries(ctx, q, steps):
        return ctx.bind(node, ctx.emit(ops.Dequantize(), [q]))
    moved = _cast(ctx, q, DType.FLOAT32)
    if steps.zero.any():
        moved = ctx.emit(ops.Sub(), [moved, steps.zero.astype(np.float32)], aside=True)
    return ctx.bind(node, ctx.emit(ops.Mul(), [moved, steps.scale.astype(np.float32)]))


def _is_open(ctx: Context, node: SourceNode) -> bool:
    """True when scale or zero point are computed at run time."""
    return any(ctx.present(node, i) and isinstance(ctx.value(node, i), Tensor) for i in (1, 2))


def _by_arithmetic(ctx: Context, node: SourceNode) -> None:
    """The definition, with a scale or zero point that is computed at run time."""
    x, kind = ctx.tensor(node, 0), _kind(ctx, node)
    held, (low, high) = _numpy(node, kind), LIMITS[kind]
    real = x if x.dtype.is_float else _cast(ctx, x, DType.FLOAT32)
    divided = ctx.emit(ops.Div(), [real, _spread(ctx, node, 1, x.shape)], aside=True)
    scaled = ctx.emit(ops.Round(), [divided], aside=True)
    if ctx.present(node, 2):
        scaled = ctx.emit(ops.Add(), [scaled, _spread(ctx, node, 2, x.shape)], aside=True)
    bounded = ctx.emit(ops.Maximum(), [scaled, np.array(low, np.float32)], aside=True)
    bounded = ctx.emit(ops.Minimum(), [bounded, np.array(high, np.float32)], aside=True)
    ctx.bind(node, _cast(ctx, bounded, DType.of(np.dtype(held))))


def _back_by_arithmetic(ctx: Context, node: SourceNode) -> None:
    q = ctx.tensor(node, 0)
    real = _cast(ctx, q, DType.FLOAT32)
    if ctx.present(node, 2):
        real = ctx.emit(ops.Sub(), [real, _spread(ctx, node, 2, q.shape)], aside=True)
    ctx.bind(node, ctx.emit(ops.Mul(), [real, _spread(ctx, node, 1, q.shape)]))


def _spread(ctx: Context, node: SourceNode, index: int, shape: tuple[int, ...]) -> Tensor:
    """A scale or zero point as real values that broadcast against a tensor of ``shape``."""
    values = ctx.tensor(node, index)
    if not values.dtype.is_float:
        values = ctx.constant(values.data.astype(np.float32)) if values.data is not None else _cast(
            ctx, values, DType.FLOAT32)
    if values.size == 1:
        return ctx.reshape(values, ())
    axis, block = axis_of(node, node.integer("axis", 1), len(shape)), node.integer("block_size")
    if block:
        if len(values.shape) != len(shape):
            raise node.problem(f"scales {list(values.shape)} per block for a tensor {list(shape)}")
        return ctx.emit(ops.Gather(axis=axis), [values, np.arange(shape[axis], dtype=np.int32) // block], aside=True)
    if values.size != shape[axis]:
        raise node.problem(f"{values.size} scales for {shape[axis]} indices of axis {axis}")
    return ctx.reshape(values, [shape[axis] if a == axis else 1 for a in range(len(shape))])


def _carries(ctx: Context, q: Tensor, steps: _Steps) -> bool:
    """Give ``q`` the scale that a node says it has; False when it has another one already."""
    if q.quantization is None and (q.producer is not None or q in ctx.graph.inputs):
        q.quantization = steps.quantization
    return q.quantization == steps.quantization


def _kind(ctx: Context, node: SourceNode) -> str:
    """The element type of the steps: that of the zero point, else what the attribute says, else uint8."""
    if ctx.present(node, 2):
        zero, declared = ctx.value(node, 2), ctx.declared.get(node.inputs[2])
        if declared:
            return declared
        return zero.dtype.name if isinstance(zero, np.ndarray) else zero.dtype.label
    number = node.integer("output_dtype")
    if number and number not in _NUMBERS:
        raise node.unsupported(f"steps of ONNX's element type number {number}; integers of 2 to 32 bits are converted")
    return _NUMBERS.get(number, "uint8")


def _numpy(node: SourceNode, kind: str) -> type[np.integer[Any]]:
    """The numpy type that holds steps; those of less than 8 bits stand in 8."""
    if kind not in LIMITS:
        raise node.unsupported(f"steps of type {kind}; integers of 2 to 32 bits are converted")
    low, high = LIMITS[kind]
    if high - low < 256:
        return np.int8 if low else np.uint8
    found: type[np.integer[Any]] = np.dtype(kind).type
    return found


def _cast(ctx: Context, x: Tensor, dtype: DType) -> Tensor:
    return ctx.emit(ops.Cast(in_data_type=x.dtype.value, out_data_type=dtype.value), [x])
