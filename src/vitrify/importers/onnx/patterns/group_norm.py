"""Group normalization as exporters write it: groups as channels of an InstanceNormalization, between two Reshapes."""

from __future__ import annotations

from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.parts import normalizing
from vitrify.importers.onnx.patterns.registry import Found, pattern
from vitrify.importers.onnx.patterns.search import Search
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.rules import target_shape
from vitrify.importers.onnx.source import SourceNode

DOMAIN = "vitrify"


@pattern("Reshape")
def group_norm(search: Search, node: SourceNode) -> Found | None:
    """The three nodes, from the second Reshape; whether the shapes fit is known when they are lowered."""
    inner = search.maker(node.inputs[0], "InstanceNormalization")
    first = search.maker(inner.inputs[0], "Reshape") if inner is not None else None
    if inner is None or first is None or len(first.inputs) < 2 or len(node.inputs) < 2 or len(inner.inputs) != 3:
        return None
    inputs = [search.plain(first.inputs[0]), *inner.inputs[1:], first.inputs[1], node.inputs[1]]
    epsilon = {"epsilon": inner.attributes["epsilon"]} if "epsilon" in inner.attributes else {}
    return Found("GroupedInstances", inputs, (first, inner, node), epsilon, domain=DOMAIN)


@lowering(f"{DOMAIN}::GroupedInstances")
def grouped_instances(ctx: Context, node: SourceNode) -> None:
    """Group normalization where the Reshapes only group channels, and else what is written."""
    x = float_input(ctx, node, 0)
    scale, bias = ctx.value(node, 1), ctx.value(node, 2)
    shapes = [ctx.known(node, i, "the shape").ravel().tolist() for i in (3, 4)]
    rows = target_shape(node, x.shape, shapes[0])
    result = target_shape(node, rows, shapes[1])
    epsilon = node.number("epsilon", 1e-5)
    if len(rows) < 3 or scale.size != rows[1] or bias.size != rows[1]:
        raise node.problem(f"{scale.size} scales and {bias.size} biases for groups {list(rows)}")
    if result == x.shape and len(x.shape) > 2 and rows[0] == x.shape[0] and x.shape[1] % rows[1] == 0:
        width = x.shape[1] // rows[1]
        scale, bias = (normalizing.repeated(ctx, value, width) for value in (scale, bias))
        return ctx.bind(node, normalizing.group_norm(ctx, x, rows[1], scale, bias, epsilon))
    y = normalizing.instance_norm(ctx, ctx.reshape(x, rows), scale, bias, epsilon)
    return ctx.bind(node, ctx.reshape(y, result))
