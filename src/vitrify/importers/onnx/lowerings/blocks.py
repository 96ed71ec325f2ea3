"""Channels to blocks of pixels and back.

TFLite has both with the block's place before the channel (DCR). The other order (CRD) is another order of the channels,
written as RESHAPE, TRANSPOSE, RESHAPE of the last axis alone, which goes into the weights of a convolution beside it.
Source: ONNX operator reference, DepthToSpace-13, SpaceToDepth-28.
"""

from __future__ import annotations

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import Tensor


def _regrouped(ctx: Context, x: Tensor, groups: int) -> Tensor:
    """NHWC with its channels [groups, others] as [others, groups]."""
    channels = x.shape[-1]
    if groups in (1, channels):
        return x
    apart = ctx.reshape(x, (*x.shape[:-1], groups, channels // groups))
    return ctx.reshape(ctx.transpose(apart, (0, 1, 2, 4, 3)), x.shape)


def _is_crd(node: SourceNode) -> bool:
    mode = node.string("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        raise node.problem(f"mode '{mode}'; it is DCR or CRD")
    return mode == "CRD"


@lowering("DepthToSpace")
def depth_to_space(ctx: Context, node: SourceNode) -> None:
    """Channels to blocks of pixels."""
    x, block = float_input(ctx, node, 0, (4,)), node.integer("blocksize", 1)
    y = ctx.channel_last(x)
    channels = y.shape[-1]
    if block < 1 or channels % (block * block):
        raise node.problem(f"{channels} channels are no multiple of {block} x {block}")
    if _is_crd(node):
        y = _regrouped(ctx, y, channels // (block * block))
    ctx.bind(node, ctx.channel_first(ctx.emit(ops.DepthToSpace(block_size=block), [y])))


@lowering("SpaceToDepth")
def space_to_depth(ctx: Context, node: SourceNode) -> None:
    """Blocks of pixels to channels."""
    x, block = float_input(ctx, node, 0, (4,)), node.integer("blocksize", 1)
    if block < 1 or x.shape[2] % block or x.shape[3] % block:
        raise node.problem(f"{x.type} is no multiple of {block} in height and width")
    y = ctx.emit(ops.SpaceToDepth(block_size=block), [ctx.channel_last(x)])
    if _is_crd(node):
        y = _regrouped(ctx, y, block * block)
    ctx.bind(node, ctx.channel_first(y))
