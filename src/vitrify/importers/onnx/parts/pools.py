"""Pools of channel-last tensors. Three spatial axes are pooled as two and then one, as maxima and means allow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.window import Window, crop_picture, pad_picture
from vitrify.importers.onnx.parts.formulas import number, step
from vitrify.importers.onnx.source import Array
from vitrify.ir import Tensor
from vitrify.ops import Padding

Plane = Callable[[Tensor, Window], Tensor]
_NON_NEGATIVE = (ops.Relu, ops.Relu6, ops.Relu0To1, ops.Logistic, ops.Softmax, ops.Abs, ops.Exp)
_KEEPS_SIGN = (ops.MaxPool2D, ops.AveragePool2D, ops.Transpose, ops.Reshape, ops.Pad, ops.Slice, ops.Concatenation)


def _by_planes(ctx: Context, x: Tensor, window: Window, plane: Plane) -> Tensor:
    """N...C pooled by ``plane`` over height and width, then over the depth where there is one."""
    if len(x.shape) == 4:
        return plane(x, window)
    n, d, h, w, c = x.shape
    y = plane(ctx.reshape(x, (n * d, h, w, c)), window.axes(1, 2))
    h, w = y.shape[1:3]
    z = plane(ctx.reshape(y, (n, d, h * w, c)), window.axes(0))
    return ctx.reshape(z, (n, z.shape[1], h, w, c))


def _cropped(ctx: Context, x: Tensor, window: Window) -> tuple[Tensor, Window]:
    """Negative pads carried out."""
    x = crop_picture(ctx, x, [max(-p, 0) for p in window.before], [max(-p, 0) for p in window.after])
    before, after = (tuple(max(p, 0) for p in side) for side in (window.before, window.after))
    return x, replace(window, before=before, after=after)


def _pool(
    ctx: Context, kind: type[ops.MaxPool2D | ops.AveragePool2D], x: Tensor, window: Window, padding: Padding
) -> Tensor:
    if window.kernel == window.strides == (1, 1):
        return x
    op = kind(
        padding=padding,
        stride_h=window.strides[0],
        stride_w=window.strides[1],
        filter_height=window.kernel[0],
        filter_width=window.kernel[1],
    )
    return ctx.emit(op, [x])


def largest(ctx: Context, x: Tensor, window: Window) -> Tensor:
    """The largest value under each window of N...C; padding never wins."""
    return _by_planes(ctx, x, window, lambda plane, flat: _largest(ctx, plane, flat))


def _largest(ctx: Context, x: Tensor, window: Window) -> Tensor:
    x, window = _cropped(ctx, x, window)
    if window.dilations != (1, 1):
        return _largest_apart(ctx, x, window)
    if not window.is_padded or window.is_same(x.shape[1:3]):
        return _pool(ctx, ops.MaxPool2D, x, window, Padding.SAME if window.is_padded else Padding.VALID)
    dense = replace(window, strides=(1, 1))
    if dense.is_same(x.shape[1:3]) and not is_non_negative(x):
        # The same windows at stride 1 pad like SAME; every n-th of them is the answer. No padding value, however
        # small, enters the range of the tensor.
        y = _pool(ctx, ops.MaxPool2D, x, dense, Padding.SAME)
        return _pool(ctx, ops.MaxPool2D, y, replace(window.unpadded(), kernel=(1, 1)), Padding.VALID)
    return _pool(ctx, ops.MaxPool2D, padded_low(ctx, x, window), window.unpadded(), Padding.VALID)


def padded_low(ctx: Context, x: Tensor, window: Window) -> Tensor:
    """NHWC with pads that never win."""
    if x.dtype.is_float:
        lowest = 0.0 if is_non_negative(x) else float(np.finfo(np.float32).min)
    else:
        lowest = float(np.iinfo(x.dtype.numpy).min)
    return pad_picture(ctx, x, window.before, window.after, lowest)


def _largest_apart(ctx: Context, x: Tensor, window: Window) -> Tensor:
    """Dilated windows: along each axis the largest of slices, as MAX_POOL_2D has no dilation."""
    x = padded_low(ctx, x, window)
    for axis, (kernel, dilation, stride) in enumerate(
        zip(window.kernel, window.dilations, window.strides, strict=True), 1
    ):
        count = (x.shape[axis] - (kernel - 1) * dilation - 1) // stride + 1
        best: Tensor | None = None
        for tap in range(kernel):
            begin, end, steps = [0] * 4, list(x.shape), [1] * 4
            begin[axis], steps[axis] = tap * dilation, stride
            end[axis] = tap * dilation + (count - 1) * stride + 1
            tables = [np.array(v, np.int32) for v in (begin, end, steps)]
            piece = ctx.emit(ops.StridedSlice(), [x, *tables], aside=True)
            best = piece if best is None else ctx.emit(ops.Maximum(), [best, piece])
        assert best is not None
        x = best
    return x


def is_non_negative(x: Tensor, depth: int = 8) -> bool:
    """True when no element of ``x`` can be below zero, as far as its producers tell."""
    node = x.producer
    if node is None or depth == 0:
        return x.data is not None and bool((x.data >= 0).all())
    if isinstance(node.op, _KEEPS_SIGN):
        data = node.inputs if isinstance(node.op, ops.Concatenation) else node.inputs[:1]
        return all(t is not None and is_non_negative(t, depth - 1) for t in data)
    return isinstance(node.op, _NON_NEGATIVE)


def averaged(ctx: Context, x: Tensor, window: Window, counted: Window) -> Tensor:
    """The mean under each window of N...C; the pads of ``counted`` are elements, those beyond it do not count.

    A factor per place corrects the mean where TFLite counts other elements.
    """
    if len(x.shape) == 4:
        return _averaged(ctx, x, window, counted)
    n, d, h, w, c = x.shape
    y = _averaged(ctx, ctx.reshape(x, (n * d, h, w, c)), window.axes(1, 2), counted.axes(1, 2))
    h, w = y.shape[1:3]
    z = _averaged(ctx, ctx.reshape(y, (n, d, h * w, c)), window.axes(0), counted.axes(0))
    return ctx.reshape(z, (n, z.shape[1], h, w, c))


def _averaged(ctx: Context, x: Tensor, window: Window, counted: Window) -> Tensor:
    x, window = _cropped(ctx, x, window)
    size = x.shape[1:3]
    counts, inside = _counts(size, window, counted), _counts(size, window, window.unpadded())
    inside_only = all(np.array_equal(a, b) for a, b in zip(counts, inside, strict=True))
    plain = window.dilations == (1, 1)
    if plain and window.is_padded and inside_only and window.is_same(size):
        return _pool(ctx, ops.AveragePool2D, x, window, Padding.SAME)  # SAME counts only what is inside
    padded = pad_picture(ctx, x, window.before, window.after)
    y = _pool(ctx, ops.AveragePool2D, padded, window, Padding.VALID) if plain else _mean_apart(ctx, padded, window)
    if any((side != kernel).any() for side, kernel in zip(counts, window.kernel, strict=True)):
        # A window of nothing but pads that do not count sums up to 0.
        factors = [(k / np.maximum(side, 1)).astype(np.float32) for side, k in zip(counts, window.kernel, strict=True)]
        y = ctx.emit(ops.Mul(), [y, np.outer(*factors)[None, :, :, None]])
    return y


def _mean_apart(ctx: Context, x: Tensor, window: Window) -> Tensor:
    """Dilated windows: a depthwise convolution with equal weights, as AVERAGE_POOL_2D has no dilation."""
    channels = x.shape[3]
    op = ops.DepthwiseConv2D(
        padding=Padding.VALID,
        stride_h=window.strides[0],
        stride_w=window.strides[1],
        depth_multiplier=1,
        dilation_h_factor=window.dilations[0],
        dilation_w_factor=window.dilations[1],
    )
    area = window.kernel[0] * window.kernel[1]
    weights = np.full((1, *window.kernel, channels), 1 / area, np.float32)
    return ctx.emit(op, [x, weights, np.zeros(channels, np.float32)])


def _counts(size: tuple[int, ...], window: Window, counted: Window) -> list[Array]:
    """Along each axis, how many elements each window divides by: the input's, and those in the pads of ``counted``."""
    sides = []
    for i, dilation in enumerate(window.dilations):
        before, after = min(counted.before[i], window.before[i]), min(counted.after[i], window.after[i])
        first, end = window.before[i] - max(before, 0), window.before[i] + size[i] + max(after, 0)
        padded = window.before[i] + size[i] + window.after[i]
        starts = np.arange(0, padded - window.reach[i] + 1, window.strides[i])
        # A window's taps are start + tap * dilation; those below an edge are ceil((edge - start) / dilation).
        below = [np.clip(-((starts - edge) // dilation), 0, window.kernel[i]) for edge in (first, end)]
        sides.append(below[1] - below[0])
    return sides


def norm(ctx: Context, x: Tensor, window: Window, p: int) -> Tensor:
    """The p-norm under each window of N...C, from the mean of powers; padding counts as zero."""
    means = averaged(ctx, powered(ctx, x, p), window, window)
    total = means if np.prod(window.kernel) == 1 else step(ctx, ops.Mul, means, float(np.prod(window.kernel)))
    return rooted(ctx, total, p)


def powered(ctx: Context, x: Tensor, p: int) -> Tensor:
    """|x| ** p."""
    if p == 2:
        return step(ctx, ops.Mul, x, x)
    size = step(ctx, ops.Abs, x)
    return size if p == 1 else step(ctx, ops.Pow, size, float(p))


def rooted(ctx: Context, x: Tensor, p: int) -> Tensor:
    """x ** (1 / p)."""
    if p == 1:
        return x
    return ctx.emit(ops.Sqrt(), [x]) if p == 2 else ctx.emit(ops.Pow(), [x, number(1 / p)])
