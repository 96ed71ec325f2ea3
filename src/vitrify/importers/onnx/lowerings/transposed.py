"""Transposed convolutions: TRANSPOSE_CONV over the whole output, then the pads cut off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context, Value
from vitrify.importers.onnx.lowerings.convolution import bias_of
from vitrify.importers.onnx.lowerings.window import Window, crop_picture, fitted, float_input, kernel_4d
from vitrify.importers.onnx.parts.formulas import named, parts, shaped, spread, turned
from vitrify.importers.onnx.parts.volumes import depth_taps, from_pictures, joined
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.rules import fits, kernel_shape, limit
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import Tensor
from vitrify.ops import Padding

MOST_DENSE = 8
"""Groups of constant kernels that become zeros in one dense kernel; more are convolutions of their own."""


@dataclass(frozen=True)
class _Extent:
    """Per spatial axis: the stride, where the output begins in the whole result, and its extents."""

    strides: tuple[int, ...]
    before: tuple[int, ...]
    extents: tuple[int, ...]

    @property
    def flat(self) -> _Extent:
        """Height and width alone."""
        return _Extent(self.strides[-2:], self.before[-2:], self.extents[-2:])


@lowering("ConvTranspose")
def conv_transpose(ctx: Context, node: SourceNode) -> None:
    """The gradient of a convolution. Dilations and constant groups become zeros in the kernel, exactly."""
    x = float_input(ctx, node, 0, (3, 4, 5))
    weights, group = ctx.value(node, 1), node.integer("group", 1)
    shape = weights.shape
    if len(shape) != len(x.shape) or shape[0] != x.shape[1] or group < 1 or shape[0] % group:
        raise node.problem(f"a kernel of shape {list(shape)} in {group} group(s) for the input {x.type}")
    kernel_shape(node, shape)
    rank = len(x.shape) - 2
    dilations = _each(node, "dilations", rank, 1, 1)
    kernel = kernel_4d(ctx, weights)
    limit(node, [*shape[:2], *((k - 1) * d + 1 for k, d in zip(kernel.shape[2:], dilations, strict=True))])
    for axis, dilation in enumerate(dilations, 2):
        kernel = spread(ctx, kernel, axis, dilation)
    bias = bias_of(ctx, node, 2, shape[1] * group)
    last = ctx.as_picture(x)
    extent = _extent(node, rank, last.shape[1:-1], _each(node, "strides", rank, 1, 1), kernel.shape[2:])
    fits(node, (x.shape[0], *extent.extents, shape[1] * group))
    y = _grouped(ctx, last, kernel, bias, group, extent, node.inputs[1])
    ctx.bind(node, ctx.from_picture(y, len(x.shape)) if rank < 3 else from_pictures(ctx, y, x.shape[0]))


def _grouped(ctx: Context, x: Tensor, kernel: Value, bias: Value, group: int, extent: _Extent, name: str) -> Tensor:
    """N...C with a kernel IO... of all groups, as pictures NHWC."""
    if group == x.shape[-1] > MOST_DENSE and len(x.shape) == 4:
        return _depthwise(ctx, x, kernel, bias, extent, name)
    if 1 < group <= MOST_DENSE and isinstance(kernel, np.ndarray):
        kernel, group = _dense(kernel, group), 1
    pieces = zip(
        parts(ctx, x, group, len(x.shape) - 1), parts(ctx, kernel, group, 0), parts(ctx, bias, group, 0), strict=True
    )
    return joined(ctx, [_one(ctx, part, k, b, extent, name) for part, k, b in pieces])


def _depthwise(ctx: Context, x: Tensor, kernel: Value, bias: Value, extent: _Extent, name: str) -> Tensor:
    """A group per channel: zeros between the elements, then an ordinary convolution with the kernel turned round.

    TRANSPOSE_CONV knows no groups, and a dense kernel would multiply by as many zeros as there are channels.
    """
    apart: Value = x
    for axis, stride in enumerate(extent.strides, 1):
        apart = spread(ctx, apart, axis, stride)
    picture = named(ctx, apart, name)
    c, multiplier, kh, kw = kernel.shape
    window = Window((kh, kw), (1, 1), (1, 1), *_margins(picture.shape[1:3], (kh, kw), extent))
    picture, padding = fitted(ctx, picture, window)
    turned_round = _reversed(ctx, turned(ctx, kernel, (2, 3, 0, 1)))
    weights = named(ctx, shaped(ctx, turned_round, (1, kh, kw, c * multiplier)), name)
    op = ops.DepthwiseConv2D(padding=padding, stride_h=1, stride_w=1, depth_multiplier=multiplier)
    return ctx.emit(op, [picture, weights, bias])


def _margins(size: Sequence[int], kernel: Sequence[int], extent: _Extent) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The pads with which windows at stride 1 give the wanted extents; negative ones cut."""
    before = tuple(k - 1 - b for k, b in zip(kernel, extent.before, strict=True))
    after = tuple(e + k - 1 - s - b for e, k, s, b in zip(extent.extents, kernel, size, before, strict=True))
    return before, after


def _reversed(ctx: Context, kernel: Value) -> Value:
    """The first two axes in reverse order."""
    if isinstance(kernel, np.ndarray):
        return kernel[::-1, ::-1]
    return ctx.emit(ops.ReverseV2(), [kernel, np.array([0, 1], np.int32)], aside=True)


def _each(node: SourceNode, name: str, rank: int, default: int, fill: int) -> tuple[int, ...]:
    values = node.ints(name) or [default] * rank
    if len(values) != rank or min(values) < default:
        raise node.problem(f"{name} {values} do not fit {rank} spatial dimensions")
    return (fill, values[0]) if rank == 1 else tuple(values)


def _dense(kernel: Array, group: int) -> Array:
    """IO... of one group each as the block-diagonal IO... of all."""
    inputs, outputs = kernel.shape[0] // group, kernel.shape[1]
    dense = np.zeros((kernel.shape[0], outputs * group, *kernel.shape[2:]), kernel.dtype)
    for g in range(group):
        rows = slice(g * inputs, (g + 1) * inputs)
        dense[rows, g * outputs : (g + 1) * outputs] = kernel[rows]
    return dense


def _extent(
    node: SourceNode, rank: int, size: Sequence[int], strides: tuple[int, ...], kernel: Sequence[int]
) -> _Extent:
    """Where the output lies in the whole result. Source: ONNX operator reference, ConvTranspose."""
    full = [(s - 1) * stride + k for s, stride, k in zip(size, strides, kernel, strict=True)]
    axes = range(len(full))
    missing = len(full) - rank
    extra = _each(node, "output_padding", rank, 0, 0)
    automatic = node.string("auto_pad", "NOTSET")
    shape = node.ints("output_shape")
    if shape is not None and len(shape) not in (rank, rank + 2):
        raise node.problem(f"output_shape {shape} does not fit {rank} spatial dimensions")
    if shape is not None or automatic in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [size[i] * strides[i] for i in axes] if shape is None else [1] * missing + shape[-rank:]
        totals = [full[i] + extra[i] - wanted[i] for i in axes]
        # The odd one goes to the end for SAME_UPPER, to the beginning otherwise. Negative pads add zeros.
        before = [t // 2 if automatic == "SAME_UPPER" else t - t // 2 for t in totals]
        return _Extent(
            strides, tuple(max(b, 0) if t < 0 else b for b, t in zip(before, totals, strict=True)), tuple(wanted)
        )
    pads = node.ints("pads") or [0] * (2 * rank)
    if len(pads) != 2 * rank or automatic == "VALID":
        pads = [0] * (2 * rank)
    before, after = [0] * missing + pads[:rank], [0] * missing + pads[rank:]
    extents = [full[i] - before[i] - after[i] + extra[i] for i in axes]
    if min(extents) < 1 or min(before) < 0:
        raise node.problem(f"its pads {pads} leave an output of {extents}")
    return _Extent(strides, tuple(before), tuple(extents))


def _one(ctx: Context, part: Value, kernel: Value, bias: Value, extent: _Extent, name: str) -> Tensor:
    """One group: N...C with a kernel IO..., as pictures NHWC."""
    x = named(ctx, part, name)
    if len(x.shape) == 4:
        return _emit(ctx, x, kernel, bias, extent, name)
    # Along the depth, zeros between the slices make it an ordinary convolution with the taps in reverse order.
    apart = spread(ctx, x, 1, extent.strides[0])
    assert isinstance(apart, Tensor)
    i, o, depth, kh, kw = kernel.shape
    taps = depth_taps(ctx, apart, [extent.before[0] - k for k in range(depth)], extent.extents[0])
    wide = shaped(ctx, turned(ctx, kernel, (2, 0, 1, 3, 4)), (depth * i, o, kh, kw))
    return _emit(ctx, joined(ctx, taps), wide, bias, extent.flat, name)


def _emit(ctx: Context, x: Tensor, kernel: Value, bias: Value, extent: _Extent, name: str) -> Tensor:
    weights = named(ctx, turned(ctx, kernel, (1, 2, 3, 0)), name)  # IOHW to OHWI
    strides, before, extents = extent.strides, extent.before, extent.extents
    full = [(x.shape[1 + i] - 1) * strides[i] + kernel.shape[2 + i] for i in (0, 1)]
    overhang = [max(full[i] - x.shape[1 + i] * strides[i], 0) for i in (0, 1)]
    same = all(extents[i] == x.shape[1 + i] * strides[i] and before[i] == overhang[i] // 2 for i in (0, 1))
    # Output padding may reach past the whole result; the kernel fills what no tap reaches with the bias.
    whole = extents if same else [max(full[i], before[i] + extents[i]) for i in (0, 1)]
    op = ops.TransposeConv(padding=Padding.SAME if same else Padding.VALID, stride_h=strides[0], stride_w=strides[1])
    shape = np.array([x.shape[0], *whole, kernel.shape[1]], np.int32)
    y = ctx.emit(op, [shape, weights, x, bias])
    behind = [whole[i] - before[i] - extents[i] for i in (0, 1)]
    return y if same else crop_picture(ctx, y, before, behind)
