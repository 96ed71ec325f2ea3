"""Normalizations by the statistics of the tensor itself."""

from __future__ import annotations

from vitrify.importers.onnx.context import Context, Value
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.parts import normalizing
from vitrify.importers.onnx.registry import axis_of, lowering
from vitrify.importers.onnx.source import SourceNode


def _optional(ctx: Context, node: SourceNode, index: int) -> Value | None:
    return ctx.value(node, index) if ctx.present(node, index) else None


def _parameters(ctx: Context, node: SourceNode, channels: int) -> tuple[Value, Value]:
    """Scale and bias, one for each channel."""
    scale, bias = ctx.value(node, 1), ctx.value(node, 2)
    if scale.size != channels or bias.size != channels:
        raise node.problem(f"{scale.size} scales and {bias.size} biases for {channels} channels")
    return scale, bias


@lowering("LayerNormalization")
def layer_normalization(ctx: Context, node: SourceNode) -> None:
    """Over everything from the axis on; also gives the mean and the reciprocal deviation."""
    x = float_input(ctx, node, 0)
    axis = axis_of(node, node.integer("axis", -1), len(x.shape))
    scale, bias = ctx.value(node, 1), _optional(ctx, node, 2)
    found = normalizing.layer_norm(ctx, x, axis, scale, bias, node.number("epsilon", 1e-5))
    assert found.mean is not None
    ctx.bind(node, found.y, found.mean, found.inverse)


@lowering("RMSNormalization")
def rms_normalization(ctx: Context, node: SourceNode) -> None:
    """By the root of the mean square of everything from the axis on."""
    x = float_input(ctx, node, 0)
    axis = axis_of(node, node.integer("axis", -1), len(x.shape))
    ctx.bind(node, normalizing.rms_norm(ctx, x, axis, ctx.value(node, 1), node.number("epsilon", 1e-5)).y)


@lowering("InstanceNormalization")
def instance_normalization(ctx: Context, node: SourceNode) -> None:
    """Over the spatial dimensions, per channel."""
    x = float_input(ctx, node, 0)
    if len(x.shape) < 3:
        raise node.problem(f"its input is {x.type}; it needs spatial dimensions after the channels")
    scale, bias = _parameters(ctx, node, x.shape[1])
    ctx.bind(node, normalizing.instance_norm(ctx, x, scale, bias, node.number("epsilon", 1e-5)))


@lowering("GroupNormalization")
def group_normalization(ctx: Context, node: SourceNode) -> None:
    """Over the spatial dimensions and the channels of a group; scale and bias per channel (per group before 21)."""
    x = float_input(ctx, node, 0)
    groups, channels = node.integer("num_groups"), x.shape[1] if len(x.shape) > 1 else 0
    if groups < 1 or channels < 1 or channels % groups:
        raise node.problem(f"{groups} groups for {channels} channels")
    if node.opset < 21:
        scale, bias = (normalizing.repeated(ctx, v, channels // groups) for v in _parameters(ctx, node, groups))
    else:
        scale, bias = _parameters(ctx, node, channels)
    ctx.bind(node, normalizing.group_norm(ctx, x, groups, scale, bias, node.number("epsilon", 1e-5)))


@lowering("MeanVarianceNormalization")
def mean_variance_normalization(ctx: Context, node: SourceNode) -> None:
    """Over the axes, by default all but the channels; ONNX's function adds 1e-9 to the deviation, which is left out."""
    x = float_input(ctx, node, 0)
    given = node.ints("axes")
    if node.opset < 9 or given is None:
        given = [0, 2, 3] if not node.integer("across_channels") else [0, 1, 2, 3]
    axes = sorted(axis_of(node, a, len(x.shape)) for a in given)
    ctx.bind(node, normalizing.normalized(ctx, x, axes, 1e-18).y)
