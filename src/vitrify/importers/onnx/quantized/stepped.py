"""Operators of ONNX that compute with steps as they are (MaxPool of uint8), written as real values in between.

Their result has the input's scale, so nothing is lost; the passes make integer operators of them again.
"""

from __future__ import annotations

from vitrify.importers.onnx.source import SourceGraph, SourceNode

_PASSING = {"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "MaxPool", "DepthToSpace",
            "SpaceToDepth", "Gather", "Expand", "Tile", "Split", "Pad", "Resize", "Concat"}
_WRAPPED = {"MaxPool", "Resize"}


def wrap_stepped(graph: SourceGraph) -> int:
    """Put DequantizeLinear and QuantizeLinear around such nodes, in place; returns around how many."""
    if not any(node.kind == "QuantizeLinear" for node in graph.nodes):
        return 0
    scales: dict[str, list[str]] = {}
    nodes: list[SourceNode] = []
    wrapped = 0
    for node in graph.nodes:
        if node.kind == "QuantizeLinear":
            scales[node.outputs[0]] = node.inputs[1:3]
        first = node.inputs[0] if node.inputs else ""
        if node.domain or node.kind not in _PASSING or first not in scales:
            nodes.append(node)
            continue
        scales.update(dict.fromkeys(node.outputs, scales[first]))
        if node.kind not in _WRAPPED or len([o for o in node.outputs if o]) != 1:
            nodes.append(node)
            continue
        output, scale = node.outputs[0], scales[first]
        real, result = f"{output}/real_input", f"{output}/real"
        nodes.append(_beside(node, "DequantizeLinear", [first, *scale], real))
        node.inputs, node.outputs = [real, *node.inputs[1:]], [result]
        nodes += [node, _beside(node, "QuantizeLinear", [result, *scale], output)]
        wrapped += 1
    graph.nodes[:] = nodes
    return wrapped


def _beside(node: SourceNode, kind: str, inputs: list[str], output: str) -> SourceNode:
    group = node.group or (node,)
    return SourceNode(kind, node.name or node.label, inputs, [output], {}, opset=node.opset, group=group)
