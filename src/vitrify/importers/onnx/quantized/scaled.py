"""Does an ONNX file bring scales of its own for what it computes? Told from its nodes, without converting."""

from __future__ import annotations

from pathlib import Path

from vitrify.importers.onnx.source import SourceGraph

_STEPS = ("QLinear", "QGemm", "QAttention")


def has_own_scales(path: Path) -> bool:
    """True when values that are computed at run time are quantized; weights alone do not count.

    Raises:
        VitrifyError: the file cannot be read.
    """
    from vitrify.importers.onnx.reading.reader import read

    return _scales_values(read(path).graph)


def _scales_values(graph: SourceGraph) -> bool:
    for node in graph.nodes:
        if node.kind.startswith(_STEPS):
            return True
        if node.kind == "QuantizeLinear" and node.inputs and node.inputs[0] not in graph.constants:
            return True
    return any(_scales_values(inner) for _, inner in graph.subgraphs())
