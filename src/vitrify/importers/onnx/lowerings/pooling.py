"""Pools over windows, and over everything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.window import Window, float_input, window_of
from vitrify.importers.onnx.parts.pools import averaged, largest, norm, powered, rooted
from vitrify.importers.onnx.parts.winners import winners
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.rules import limit
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import DType, Tensor

_SMALL = (DType.INT8, DType.UINT8)
_RANKS = (3, 4, 5)
MOST_SLICES = 256
"""Each element of a dilated window along an axis is a slice of its own."""


def _window(ctx: Context, node: SourceNode, x: Tensor) -> tuple[Window, Window]:
    """The window with ceil_mode's last column written as padding, and as it is declared."""
    kernel = node.ints("kernel_shape")
    if kernel is None or len(kernel) != len(x.shape) - 2:
        raise node.problem(f"kernel_shape {kernel} does not fit the input {x.type}")
    declared = window_of(ctx, node, x.shape[2:], kernel, negative_pads=True)
    if node.integer("ceil_mode") and node.string("auto_pad", "NOTSET") == "NOTSET":
        return _ceiled(declared, (1, *x.shape[2:]) if len(x.shape) == 3 else x.shape[2:]), declared
    return declared, declared


def _ceiled(window: Window, size: tuple[int, ...]) -> Window:
    after = list(window.after)
    for i, reach in enumerate(window.reach):
        padded = size[i] + window.before[i] + window.after[i]
        count = -(-(padded - reach) // window.strides[i]) + 1
        if (count - 1) * window.strides[i] >= size[i] + window.before[i]:
            count -= 1  # a window that begins in the padding behind is left out
        after[i] += max((count - 1) * window.strides[i] + reach - padded, 0)
    return replace(window, after=tuple(after))


def _spatial(ctx: Context, y: Tensor, rank: int) -> Tensor:
    """N...C as the channel-first tensor of ``rank``."""
    return ctx.channel_first(y) if rank == 5 else ctx.from_picture(y, rank)


@lowering("MaxPool")
def max_pool(ctx: Context, node: SourceNode) -> None:
    """The largest value under a window; padding never wins. The second output says where it was."""
    x = ctx.tensor(node, 0)
    if x.dtype not in _SMALL or len(x.shape) not in _RANKS:
        x = float_input(ctx, node, 0, _RANKS)
    window, _ = _window(ctx, node, x)
    if max(window.dilations) > 1 and max(window.kernel) > MOST_SLICES:
        raise node.unsupported(
            f"dilated windows of {max(window.kernel)} elements along an axis; up to {MOST_SLICES} are converted"
        )
    results = [_spatial(ctx, largest(ctx, ctx.as_picture(x), window), len(x.shape))]
    if len(node.outputs) > 1 and node.outputs[1]:
        results.append(winners(ctx, node, x, window))
    ctx.bind(node, *results)


def _check_weights(node: SourceNode, x: Tensor, window: Window) -> None:
    """Dilated means are convolutions, whose weights must not outgrow memory."""
    if max(window.dilations) > 1:
        limit(node, (x.shape[1], *window.kernel))


@lowering("AveragePool")
def average_pool(ctx: Context, node: SourceNode) -> None:
    """The mean under a window, with or without the pads."""
    x = float_input(ctx, node, 0, _RANKS)
    window, declared = _window(ctx, node, x)
    _check_weights(node, x, window)
    counted = declared if node.integer("count_include_pad") else declared.unpadded()
    ctx.bind(node, _spatial(ctx, averaged(ctx, ctx.as_picture(x), window, counted), len(x.shape)))


@lowering("LpPool")
def lp_pool(ctx: Context, node: SourceNode) -> None:
    """The p-norm under a window."""
    x = float_input(ctx, node, 0, _RANKS)
    window, _ = _window(ctx, node, x)
    _check_weights(node, x, window)
    ctx.bind(node, _spatial(ctx, norm(ctx, ctx.as_picture(x), window, _p(node)), len(x.shape)))


def _p(node: SourceNode) -> int:
    p = node.integer("p", 2)
    if p < 1:
        raise node.problem(f"p is {p}; it takes 1 and more")
    return p


def _over_space(ctx: Context, x: Tensor, kind: type[ops.Mean | ops.ReduceMax | ops.Sum], aside: bool = False) -> Tensor:
    axes = np.arange(2, len(x.shape), dtype=np.int32)
    return ctx.emit(kind(keep_dims=True), [x, axes], aside=aside)


@lowering("GlobalAveragePool")
def global_average_pool(ctx: Context, node: SourceNode) -> None:
    """The mean over all spatial dimensions."""
    ctx.bind(node, _over_space(ctx, float_input(ctx, node, 0), ops.Mean))


@lowering("GlobalMaxPool")
def global_max_pool(ctx: Context, node: SourceNode) -> None:
    """The largest value over all spatial dimensions."""
    ctx.bind(node, _over_space(ctx, float_input(ctx, node, 0), ops.ReduceMax))


@lowering("GlobalLpPool")
def global_lp_pool(ctx: Context, node: SourceNode) -> None:
    """The p-norm over all spatial dimensions."""
    p = _p(node)
    powers = powered(ctx, float_input(ctx, node, 0), p)
    ctx.bind(node, rooted(ctx, _over_space(ctx, powers, ops.Sum, aside=p > 1), p))
