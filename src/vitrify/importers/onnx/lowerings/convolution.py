"""Convolutions: CONV_2D, DEPTHWISE_CONV_2D, and one CONV_2D per group."""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.window import Window, fitted, float_input, kernel_4d, window_of
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import Tensor
from vitrify.ops import Padding


@lowering("Conv")
def conv(ctx: Context, node: SourceNode) -> None:
    """Cross-correlation with constant weights OIHW; pads that TFLite does not have become a PAD."""
    x = float_input(ctx, node, 0, (3, 4))
    weights = ctx.known(node, 1, "the kernel")
    group = node.integer("group", 1)
    _check(node, x, weights, group)
    window = window_of(ctx, node, x.shape[2:], weights.shape[2:])
    picture, padding = fitted(ctx, ctx.as_picture(x), window)
    bias = bias_of(ctx, node, 2, weights.shape[0])
    y = _emit(ctx, node, picture, weights, bias, group, window, padding)
    ctx.bind(node, ctx.from_picture(y, len(x.shape)))


def _check(node: SourceNode, x: Tensor, weights: Array, group: int) -> None:
    if weights.ndim != len(x.shape):
        raise node.problem(f"a kernel of shape {list(weights.shape)} for an input of {len(x.shape)} dimensions")
    if group < 1 or weights.shape[1] * group != x.shape[1] or weights.shape[0] % group:
        raise node.problem(
            f"the input has {x.shape[1]} channels, {group} group(s) of a kernel {list(weights.shape)} take "
            f"{weights.shape[1] * group}"
        )
    kernel = node.ints("kernel_shape")
    if kernel is not None and tuple(kernel) != weights.shape[2:]:
        raise node.problem(f"kernel_shape {kernel} differs from the kernel {list(weights.shape)}")


def bias_of(ctx: Context, node: SourceNode, index: int, channels: int) -> Array:
    """The bias as float32[channels]; zeros when there is none, as TFLite's converters write it."""
    if not ctx.present(node, index):
        return np.zeros(channels, np.float32)
    bias = ctx.known(node, index, "the bias")
    if bias.size != channels:
        raise node.problem(f"a bias of {bias.size} values for {channels} output channels")
    return bias.reshape(-1)


def _emit(
    ctx: Context, node: SourceNode, x: Tensor, weights: Array, bias: Array, group: int, window: Window, padding: Padding
) -> Tensor:
    name = node.inputs[1]
    if group > 1 and weights.shape[1] == 1:
        kernel = ctx.constant(kernel_4d(weights).transpose(1, 2, 3, 0), name)
        depthwise = ops.DepthwiseConv2D(
            padding=padding,
            stride_h=window.strides[0],
            stride_w=window.strides[1],
            depth_multiplier=weights.shape[0] // group,
            dilation_h_factor=window.dilations[0],
            dilation_w_factor=window.dilations[1],
        )
        return ctx.emit(depthwise, [x, kernel, bias])
    plain = ops.Conv2D(
        padding=padding,
        stride_h=window.strides[0],
        stride_w=window.strides[1],
        dilation_h_factor=window.dilations[0],
        dilation_w_factor=window.dilations[1],
    )
    kernel_ohwi = kernel_4d(weights).transpose(0, 2, 3, 1)
    if group == 1:
        return ctx.emit(plain, [x, ctx.constant(kernel_ohwi, name), bias])
    # Compilers for NPUs do not take CONV_2D's own groups, so each group is a convolution of its own.
    parts = ctx.emit_all(ops.Split(num_splits=group), [np.array(3, np.int32), x], aside=True)
    kernels, biases = np.split(kernel_ohwi, group), np.split(bias, group)
    results = [
        ctx.emit(plain, [part, ctx.constant(k, f"{name}/{i}"), b], aside=True)
        for i, (part, k, b) in enumerate(zip(parts, kernels, biases, strict=True))
    ]
    return ctx.emit(ops.Concatenation(axis=3), results)
