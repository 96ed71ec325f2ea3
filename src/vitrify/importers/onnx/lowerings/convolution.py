"""Convolutions: CONV_2D, also grouped, and DEPTHWISE_CONV_2D."""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context, Value
from vitrify.importers.onnx.lowerings.window import Window, fitted, float_input, kernel_4d, window_of
from vitrify.importers.onnx.parts.formulas import named, parts, shaped, turned
from vitrify.importers.onnx.parts.volumes import depth_taps, from_pictures, joined
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.rules import kernel_shape
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import Tensor
from vitrify.ops import Padding


@lowering("Conv")
def conv(ctx: Context, node: SourceNode) -> None:
    """Cross-correlation with weights OIHW, constant or computed; pads that TFLite does not have become a PAD."""
    x = float_input(ctx, node, 0, (3, 4, 5))
    weights = ctx.value(node, 1)
    bias = bias_of(ctx, node, 2, weights.shape[0])
    ctx.bind(node, convolved(ctx, node, x, weights, bias))


def convolved(ctx: Context, node: SourceNode, x: Tensor, weights: Value, bias: Value) -> Tensor:
    """The convolution of ``x`` by the node's attributes, channel-first."""
    group = node.integer("group", 1)
    _check(node, x, weights, group)
    window = window_of(ctx, node, x.shape[2:], weights.shape[2:])
    if len(x.shape) == 5:
        return _volume(ctx, node, x, weights, bias, group, window)
    y = _padded(ctx, node, ctx.as_picture(x), kernel_4d(ctx, weights), bias, group, window)
    return ctx.from_picture(y, len(x.shape))


def _check(node: SourceNode, x: Tensor, weights: Value, group: int) -> None:
    shape = weights.shape
    if len(shape) != len(x.shape):
        raise node.problem(f"a kernel of shape {list(shape)} for an input of {len(x.shape)} dimensions")
    if group < 1 or shape[1] * group != x.shape[1] or shape[0] % group:
        raise node.problem(
            f"the input has {x.shape[1]} channels, {group} group(s) of a kernel {list(shape)} take {shape[1] * group}"
        )
    kernel_shape(node, shape)


def bias_of(ctx: Context, node: SourceNode, index: int, channels: int) -> Value:
    """The bias as float32[channels]; zeros when there is none, as TFLite's converters write it."""
    if not ctx.present(node, index):
        return np.zeros(channels, np.float32)
    bias = ctx.value(node, index)
    if bias.size != channels:
        raise node.problem(f"a bias of {bias.size} values for {channels} output channels")
    return shaped(ctx, bias, (channels,))


def _volume(
    ctx: Context, node: SourceNode, x: Tensor, weights: Value, bias: Value, group: int, window: Window
) -> Tensor:
    """Three spatial dimensions by CONV_2D: the taps along the depth are further channels.

    CONV_3D has a float kernel only, and no NPU takes it. Groups are summed tap by tap.
    """
    count = window.outputs(x.shape[2:])[0]
    starts = [i * window.dilations[0] - window.before[0] for i in range(window.kernel[0])]
    taps = depth_taps(ctx, ctx.channel_last(x), starts, count, window.strides[0])
    flat = window.axes(1, 2)
    o, i, kd, kh, kw = weights.shape
    if group == 1:
        kernel = shaped(ctx, turned(ctx, weights, (0, 2, 1, 3, 4)), (o, kd * i, kh, kw))
        y = _padded(ctx, node, joined(ctx, taps), kernel, bias, 1, flat)
        return from_pictures(ctx, y, x.shape[0])
    total: Tensor | None = None
    for tap, kernel in zip(taps, parts(ctx, weights, kd, 2), strict=True):
        y = _padded(ctx, node, tap, shaped(ctx, kernel, (o, i, kh, kw)), bias, group, flat)
        total = y if total is None else ctx.emit(ops.Add(), [total, y])
        bias = np.zeros(o, np.float32)
    assert total is not None
    return from_pictures(ctx, total, x.shape[0])


def _padded(
    ctx: Context, node: SourceNode, x: Tensor, weights: Value, bias: Value, group: int, window: Window
) -> Tensor:
    """Of an NHWC picture, with weights OIHW."""
    picture, padding = fitted(ctx, x, window)
    return _emit(ctx, picture, weights, bias, group, window, padding, node.inputs[1])


def _emit(
    ctx: Context, x: Tensor, weights: Value, bias: Value, group: int, window: Window, padding: Padding, name: str
) -> Tensor:
    if group > 1 and weights.shape[1] == 1:
        depthwise = ops.DepthwiseConv2D(
            padding=padding,
            stride_h=window.strides[0],
            stride_w=window.strides[1],
            depth_multiplier=weights.shape[0] // group,
            dilation_h_factor=window.dilations[0],
            dilation_w_factor=window.dilations[1],
        )
        return ctx.emit(depthwise, [x, named(ctx, turned(ctx, weights, (1, 2, 3, 0)), name), bias])
    plain = ops.Conv2D(
        padding=padding,
        stride_h=window.strides[0],
        stride_w=window.strides[1],
        dilation_h_factor=window.dilations[0],
        dilation_w_factor=window.dilations[1],
    )
    # With groups too: a kernel of fewer channels than x says how many there are.
    return ctx.emit(plain, [x, named(ctx, turned(ctx, weights, (0, 2, 3, 1)), name), bias])
