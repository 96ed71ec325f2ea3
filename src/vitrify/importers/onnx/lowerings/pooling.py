"""Pools over windows, and over everything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.window import Window, fitted, float_input, pad_picture, window_of
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import Operator, Tensor
from vitrify.ops import Padding

_NON_NEGATIVE = (ops.Relu, ops.Relu6, ops.Relu0To1, ops.Logistic, ops.Softmax, ops.Abs, ops.Exp)
_KEEPS_SIGN = (ops.MaxPool2D, ops.AveragePool2D, ops.Transpose, ops.Reshape, ops.Pad, ops.Slice, ops.Concatenation)


def _pool(
    ctx: Context,
    node: SourceNode,
    kind: type[ops.MaxPool2D | ops.AveragePool2D],
    x: Tensor,
    window: Window,
    padding: Padding,
) -> Tensor:
    op: Operator = kind(
        padding=padding,
        stride_h=window.strides[0],
        stride_w=window.strides[1],
        filter_height=window.kernel[0],
        filter_width=window.kernel[1],
    )
    return ctx.emit(op, [x])


def _read(ctx: Context, node: SourceNode) -> tuple[Tensor, Tensor, Window]:
    """The input, the input as NHWC, and the window with ceil_mode's last column written as padding."""
    x = float_input(ctx, node, 0, (3, 4))
    kernel = node.ints("kernel_shape")
    if kernel is None or len(kernel) != len(x.shape) - 2:
        raise node.problem(f"kernel_shape {kernel} does not fit the input {x.type}")
    window = window_of(ctx, node, x.shape[2:], kernel)
    if window.dilations != (1, 1):
        raise node.unsupported(f"dilations {list(window.dilations)}; only 1 is converted")
    picture = ctx.as_picture(x)
    if node.integer("ceil_mode") and node.string("auto_pad", "NOTSET") == "NOTSET":
        window = _ceiled(window, picture.shape[1:3])
    return x, picture, window


def _ceiled(window: Window, size: tuple[int, ...]) -> Window:
    after = list(window.after)
    for i in (0, 1):
        padded = size[i] + window.before[i] + window.after[i]
        count = -(-(padded - window.kernel[i]) // window.strides[i]) + 1
        if (count - 1) * window.strides[i] >= size[i] + window.before[i]:
            count -= 1  # a window that begins in the padding behind is left out
        after[i] += max((count - 1) * window.strides[i] + window.kernel[i] - padded, 0)
    return replace(window, after=(after[0], after[1]))


@lowering("MaxPool")
def max_pool(ctx: Context, node: SourceNode) -> None:
    """The largest value under a window; padding never wins."""
    if len(node.outputs) > 1 and node.outputs[1]:
        raise node.unsupported("the second output (indices) is not converted")
    x, picture, window = _read(ctx, node)
    y = _padded_max(ctx, node, picture, window)
    ctx.bind(node, ctx.from_picture(y, len(x.shape)))


def _padded_max(ctx: Context, node: SourceNode, x: Tensor, window: Window) -> Tensor:
    if not window.is_padded or window.is_same(x.shape[1:3]) or is_non_negative(x):
        padded, padding = fitted(ctx, x, window)
        return _pool(ctx, node, ops.MaxPool2D, padded, window, padding)
    dense = replace(window, strides=(1, 1))
    if dense.is_same(x.shape[1:3]):
        # The same windows at stride 1 pad like SAME; every n-th of them is the answer. No padding value, however
        # small, enters the range of the tensor.
        y = _pool(ctx, node, ops.MaxPool2D, x, dense, Padding.SAME)
        thin = replace(window.unpadded(), kernel=(1, 1))
        return _pool(ctx, node, ops.MaxPool2D, y, thin, Padding.VALID)
    lowest = float(np.finfo(np.float32).min)
    return _pool(
        ctx, node, ops.MaxPool2D, pad_picture(ctx, x, window.before, window.after, lowest), window, Padding.VALID
    )


def is_non_negative(x: Tensor, depth: int = 8) -> bool:
    """True when no element of ``x`` can be below zero, as far as its producers tell."""
    node = x.producer
    if node is None or depth == 0:
        return x.data is not None and bool((x.data >= 0).all())
    if isinstance(node.op, _KEEPS_SIGN):
        data = node.inputs if isinstance(node.op, ops.Concatenation) else node.inputs[:1]
        return all(t is not None and is_non_negative(t, depth - 1) for t in data)
    return isinstance(node.op, _NON_NEGATIVE)


@lowering("AveragePool")
def average_pool(ctx: Context, node: SourceNode) -> None:
    """The mean under a window; a factor per place corrects it where TFLite counts other elements."""
    x, picture, window = _read(ctx, node)
    declared = window_of(ctx, node, x.shape[2:], node.ints("kernel_shape") or [])
    counts = _counts(
        picture.shape[1:3], window, declared if node.integer("count_include_pad") else declared.unpadded(), declared
    )
    area = window.kernel[0] * window.kernel[1]
    if (
        window.is_padded
        and window.is_same(picture.shape[1:3])
        and np.array_equal(counts, _counts(picture.shape[1:3], window, declared.unpadded(), declared))
    ):
        y = _pool(ctx, node, ops.AveragePool2D, picture, window, Padding.SAME)  # SAME counts only what is inside
    else:
        padded, padding = pad_picture(ctx, picture, window.before, window.after), Padding.VALID
        y = _pool(ctx, node, ops.AveragePool2D, padded, window, padding)
        if (counts != area).any():
            y = ctx.emit(ops.Mul(), [y, (area / counts).astype(np.float32)[None, :, :, None]])
    ctx.bind(node, ctx.from_picture(y, len(x.shape)))


def _counts(size: tuple[int, ...], window: Window, counted: Window, declared: Window) -> Array:
    """How many elements each window divides by: those of the input, and of the pads in ``counted``."""
    sides = []
    for i in (0, 1):
        inside = np.zeros(window.before[i] + size[i] + window.after[i])
        inside[window.before[i] - counted.before[i] : window.before[i] + size[i] + counted.after[i]] = 1
        starts = np.arange(0, len(inside) - window.kernel[i] + 1, window.strides[i])
        sides.append(np.array([inside[s : s + window.kernel[i]].sum() for s in starts]))
    return np.outer(sides[0], sides[1])


@lowering("GlobalAveragePool")
def global_average_pool(ctx: Context, node: SourceNode) -> None:
    """The mean over all spatial dimensions."""
    x = float_input(ctx, node, 0)
    axes = np.arange(2, len(x.shape), dtype=np.int32)
    ctx.bind(node, ctx.emit(ops.Mean(keep_dims=True), [x, axes]))


@lowering("GlobalMaxPool")
def global_max_pool(ctx: Context, node: SourceNode) -> None:
    """The largest value over all spatial dimensions."""
    x = float_input(ctx, node, 0)
    axes = np.arange(2, len(x.shape), dtype=np.int32)
    ctx.bind(node, ctx.emit(ops.ReduceMax(keep_dims=True), [x, axes]))
