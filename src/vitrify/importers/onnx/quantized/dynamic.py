"""Models whose inputs get scales at run time (dynamic quantization): their products become float ones again.

    DynamicQuantizeLinear(x) -> MatMulInteger(., W) -> Cast -> Mul(x_scale * w_scale)

is x @ ((W - zero point) * w_scale) but for the rounding of x, which no TFLite operator does with a scale that is not in
the file. So x goes into the product as it is, its scale is 1, and W - zero point stands for the weights.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from vitrify.core.findings import Finding, Severity
from vitrify.importers.onnx.source import Array, SourceGraph, SourceNode

_FLOAT = {"MatMulInteger": "MatMul", "ConvInteger": "Conv"}
SHOWN = 8


def undo_dynamic(graph: SourceGraph) -> list[Finding]:
    """Make float products of those whose input is quantized at run time, in place; returns a finding when there are."""
    quantizers = [n for n in graph.nodes if n.kind == "DynamicQuantizeLinear" and not n.domain and len(n.outputs) == 3]
    if not quantizers:
        return []
    readers: dict[str, list[tuple[SourceNode, int]]] = defaultdict(list)
    for node in graph.nodes:
        for index, name in enumerate(node.inputs):
            readers[name].append((node, index))
    given = {v.name for v in graph.outputs}
    done = [n for n in quantizers if not given & set(n.outputs) and _undo(graph, n, readers)]
    graph.nodes[:] = [n for n in graph.nodes if not any(n is d for d in done)]
    return [_told(done)] if done else []


def _undo(graph: SourceGraph, quantizer: SourceNode, readers: dict[str, list[tuple[SourceNode, int]]]) -> bool:
    steps, scale, zero = quantizer.outputs
    products = readers[steps]
    if not products or any(_weights(graph, n, zero) is None or index != 0 for n, index in products):
        return False
    if any(n.kind != "Mul" for n, _ in readers[scale]) or any(
            not any(n is p for p, _ in products) for n, _ in readers[zero]):
        return False
    one = f"{scale}/one"
    graph.constants[one] = np.ones((), np.float32)
    for node, index in readers[scale]:
        node.inputs[index] = one
    for node, _ in products:
        found = _weights(graph, node, zero)
        assert found is not None
        name = f"{node.outputs[0]}/weights"
        graph.constants[name] = found
        node.inputs, node.kind = [quantizer.inputs[0], name], _FLOAT[node.kind]
    return True


def _weights(graph: SourceGraph, node: SourceNode, zero: str) -> Array | None:
    """Steps less their zero point as floats; None where the node is no such product."""
    if node.domain or node.kind not in _FLOAT or len(node.inputs) < 2 or node.inputs[1] not in graph.constants:
        return None
    if len(node.inputs) > 2 and node.inputs[2] not in ("", zero):
        return None
    weights = graph.constants[node.inputs[1]].astype(np.float32)
    if len(node.inputs) < 4 or not node.inputs[3]:
        return weights
    middle = graph.constants.get(node.inputs[3])
    if middle is None:
        return None
    if middle.size > 1 and node.kind == "ConvInteger":
        middle = middle.reshape(-1, *([1] * (weights.ndim - 1)))
    return np.asarray(weights - middle.astype(np.float32))


def _told(done: list[SourceNode]) -> Finding:
    names = ", ".join(f"'{n.label}'" for n in done[:SHOWN])
    return Finding(
        code="onnx.dynamic-scales",
        severity=Severity.WARNING,
        where=f"nodes {names}" + (f" and {len(done) - SHOWN} more" if len(done) > SHOWN else ""),
        headline=f"{len(done)} inputs are quantized at run time in the file; here they stay float",
        why="TFLite's integer operators have their scales in the file",
        help="vitrify quantize MODEL --data FOLDER finds scales from samples",
    )
