"""Convolution whose taps are moved by offsets computed at run time: sampled, then one matrix product.

Source: ONNX operator reference, DeformConv-22.
"""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context, Value
from vitrify.importers.onnx.lowerings.sampling import Sampler
from vitrify.importers.onnx.lowerings.window import Window, float_input, window_of
from vitrify.importers.onnx.parts.places import Formula
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.rules import kernel_shape
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import Tensor


@lowering("DeformConv")
def deform_conv(ctx: Context, node: SourceNode) -> None:
    """Every tap of every window is a point that is read between the pixels, zero outside of the picture."""
    x, offsets = float_input(ctx, node, 0, (4,)), float_input(ctx, node, 2, (4,))
    group, parts = node.integer("group", 1), node.integer("offset_group", 1)
    weights = _dense(ctx, node, x, group)
    kernel = weights.shape[2:]
    kernel_shape(node, weights.shape)
    window = window_of(ctx, node, x.shape[2:], kernel)
    (batch, channels), (high, wide), taps = x.shape[:2], window.outputs(x.shape[2:]), kernel[0] * kernel[1]
    if parts < 1 or channels % parts or offsets.shape != (batch, parts * taps * 2, high, wide):
        raise node.problem(f"offsets {offsets.type} in {parts} groups for {taps} taps and an output of {high}x{wide}")
    formula, places, depth = Formula(ctx), high * wide, channels // parts
    moved = ctx.transpose(ctx.reshape(offsets, (batch * parts, taps, 2, places)), (0, 3, 1, 2))
    moved = ctx.reshape(moved, (batch * parts, places * taps, 2))
    points = formula.add(moved, _points(window, (high, wide)))
    read = Sampler(ctx, node, _pictures(ctx, x, parts), "linear").read(points)
    if ctx.present(node, 4):
        mask = float_input(ctx, node, 4, (4,))
        if mask.shape != (batch, parts * taps, high, wide):
            raise node.problem(f"a mask {mask.type} for {parts} groups of {taps} taps")
        share = ctx.transpose(ctx.reshape(mask, (batch * parts, taps, places)), (0, 2, 1))
        read = formula.mul(read, ctx.reshape(share, (batch * parts, places * taps, 1)))
    if parts > 1:
        read = ctx.transpose(ctx.reshape(read, (batch, parts, places, taps * depth)), (0, 2, 1, 3))
    rows = ctx.reshape(read, (batch * places, channels * taps))
    y = ctx.emit(ops.FullyConnected(), [rows, _matrix(ctx, weights, parts), _bias(ctx, node, weights.shape[0])])
    ctx.bind(node, ctx.channel_first(ctx.reshape(y, (batch, high, wide, weights.shape[0]))))


def _dense(ctx: Context, node: SourceNode, x: Tensor, group: int) -> Value:
    """The kernel [out, in, height, width] with zeros between its groups."""
    kernel, channels = ctx.value(node, 1), x.shape[1]
    fits = len(kernel.shape) == 4 and group >= 1 and kernel.shape[1] * group == channels and not kernel.shape[0] % group
    if not fits:
        raise node.problem(f"a kernel of shape {list(kernel.shape)} in {group} group(s) for the input {x.type}")
    if group == 1:
        return kernel
    if not isinstance(kernel, np.ndarray):
        raise node.unsupported("a kernel in groups that is computed at run time")
    dense = np.zeros((kernel.shape[0], channels, *kernel.shape[2:]), kernel.dtype)
    out, inner = kernel.shape[0] // group, kernel.shape[1]
    for g in range(group):
        dense[g * out : (g + 1) * out, g * inner : (g + 1) * inner] = kernel[g * out : (g + 1) * out]
    return dense


def _points(window: Window, size: tuple[int, int]) -> Array:
    """Where each tap of each window stands without offsets: [1, places * taps, 2]."""
    lines = [
        (np.arange(size[i]) * window.strides[i] - window.before[i])[:, None]
        + (np.arange(window.kernel[i]) * window.dilations[i])[None]
        for i in (0, 1)
    ]
    shape = (*size, *window.kernel)
    y = np.broadcast_to(lines[0][:, None, :, None], shape)
    x = np.broadcast_to(lines[1][None, :, None, :], shape)
    return np.stack([y.ravel(), x.ravel()], -1).astype(np.float32)[None]


def _pictures(ctx: Context, x: Tensor, parts: int) -> Tensor:
    """Channel-last, one picture for each group of channels that shares its offsets."""
    last = ctx.channel_last(x)
    if parts == 1:
        return last
    n, h, w, c = last.shape
    split = ctx.transpose(ctx.reshape(last, (n, h * w, parts, c // parts)), (0, 2, 1, 3))
    return ctx.reshape(split, (n * parts, h, w, c // parts))


def _matrix(ctx: Context, kernel: Value, parts: int) -> Tensor:
    """The kernel as [out, groups of offsets * taps * channels of one]."""
    out, channels, h, w = kernel.shape
    tensor = ctx.constant(kernel) if isinstance(kernel, np.ndarray) else kernel
    split = ctx.reshape(tensor, (out, parts, channels // parts, h * w))
    return ctx.reshape(ctx.transpose(split, (0, 1, 3, 2)), (out, channels * h * w))


def _bias(ctx: Context, node: SourceNode, count: int) -> Tensor:
    if not ctx.present(node, 3):
        return ctx.constant(np.zeros(count, np.float32))
    bias = float_input(ctx, node, 3, (1,))
    if bias.shape != (count,):
        raise node.problem(f"a bias {bias.type} for {count} outputs")
    return bias
