"""Transposed convolutions: TRANSPOSE_CONV over the whole output, then the pads cut off."""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.convolution import bias_of
from vitrify.importers.onnx.lowerings.window import crop_picture, float_input, kernel_4d
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import Tensor
from vitrify.ops import Padding


@lowering("ConvTranspose")
def conv_transpose(ctx: Context, node: SourceNode) -> None:
    """The gradient of a convolution. Groups and dilations become zeros in one dense kernel, which is exact."""
    x = float_input(ctx, node, 0, (3, 4))
    weights = ctx.known(node, 1, "the kernel")
    group = node.integer("group", 1)
    if weights.ndim != len(x.shape) or weights.shape[0] != x.shape[1] or group < 1 or weights.shape[0] % group:
        raise node.problem(f"a kernel of shape {list(weights.shape)} in {group} group(s) for the input {x.type}")
    rank = len(x.shape) - 2
    strides = _pair(node, "strides", rank, 1, 1)
    kernel = _dense(_dilated(kernel_4d(weights), _pair(node, "dilations", rank, 1, 1)), group)
    picture = ctx.as_picture(x)
    full = [(picture.shape[1 + i] - 1) * strides[i] + kernel.shape[2 + i] for i in (0, 1)]
    before, extents = _crop(ctx, node, rank, picture.shape[1:3], strides, full)
    bias = bias_of(ctx, node, 2, kernel.shape[1])
    y = _emit(ctx, node, picture, kernel, bias, strides, full, before, extents)
    ctx.bind(node, ctx.from_picture(y, len(x.shape)))


def _pair(node: SourceNode, name: str, rank: int, default: int, fill: int) -> tuple[int, int]:
    values = node.ints(name) or [default] * rank
    if len(values) != rank:
        raise node.problem(f"{name} {values} do not fit {rank} spatial dimensions")
    return (fill, values[0]) if rank == 1 else (values[0], values[1])


def _dilated(kernel: Array, dilations: tuple[int, int]) -> Array:
    if dilations == (1, 1):
        return kernel
    h, w = ((extent - 1) * d + 1 for extent, d in zip(kernel.shape[2:], dilations, strict=True))
    wide = np.zeros((*kernel.shape[:2], h, w), kernel.dtype)
    wide[:, :, :: dilations[0], :: dilations[1]] = kernel
    return wide


def _dense(kernel: Array, group: int) -> Array:
    """IOHW of one group each as the block-diagonal IOHW of all."""
    if group == 1:
        return kernel
    inputs, outputs = kernel.shape[0] // group, kernel.shape[1]
    dense = np.zeros((kernel.shape[0], outputs * group, *kernel.shape[2:]), kernel.dtype)
    for g in range(group):
        rows = slice(g * inputs, (g + 1) * inputs)
        dense[rows, g * outputs : (g + 1) * outputs] = kernel[rows]
    return dense


def _crop(
    ctx: Context, node: SourceNode, rank: int, size: tuple[int, ...], strides: tuple[int, int], full: list[int]
) -> tuple[list[int], list[int]]:
    """Where the output begins in the whole result, and its extents. Source: ONNX specification of ConvTranspose."""
    extra = _pair(node, "output_padding", rank, 0, 0)
    automatic = node.string("auto_pad", "NOTSET")
    shape = node.ints("output_shape")
    if shape is not None or automatic in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [size[i] * strides[i] for i in (0, 1)] if shape is None else [1] * (2 - rank) + shape[-rank:]
        totals = [full[i] + extra[i] - wanted[i] for i in (0, 1)]
        if min(totals) < 0:
            raise node.unsupported(f"an output of {wanted} from {full} needs negative pads")
        # The odd one goes to the end for SAME_UPPER, to the beginning otherwise.
        return [t // 2 if automatic == "SAME_UPPER" else t - t // 2 for t in totals], wanted
    pads = node.ints("pads") or [0] * (2 * rank)
    if len(pads) != 2 * rank or automatic == "VALID":
        pads = [0] * (2 * rank)
    before, after = ([0] * (2 - rank) + pads[:rank], [0] * (2 - rank) + pads[rank:])
    extents = [full[i] - before[i] - after[i] + extra[i] for i in (0, 1)]
    if min(extents) < 1 or min(before) < 0:
        raise node.problem(f"its pads {pads} leave an output of {extents}")
    return before, extents


def _emit(
    ctx: Context,
    node: SourceNode,
    x: Tensor,
    kernel: Array,
    bias: Array,
    strides: tuple[int, int],
    full: list[int],
    before: list[int],
    extents: list[int],
) -> Tensor:
    weights = ctx.constant(kernel.transpose(1, 2, 3, 0), node.inputs[1])  # IOHW to OHWI
    overhang = [max(full[i] - x.shape[1 + i] * strides[i], 0) for i in (0, 1)]
    same = all(extents[i] == x.shape[1 + i] * strides[i] and before[i] == overhang[i] // 2 for i in (0, 1))
    # Output padding may reach past the whole result; the kernel fills what no tap reaches with the bias.
    whole = extents if same else [max(full[i], before[i] + extents[i]) for i in (0, 1)]
    op = ops.TransposeConv(padding=Padding.SAME if same else Padding.VALID, stride_h=strides[0], stride_w=strides[1])
    shape = np.array([x.shape[0], *whole, kernel.shape[1]], np.int32)
    y = ctx.emit(op, [shape, weights, x, bias])
    return (
        crop_picture(ctx, y, (0, 0), (0, 0))
        if same
        else crop_picture(ctx, y, before, [whole[i] - before[i] - extents[i] for i in (0, 1)])
    )
