"""What an ONNX file holds, told from the file alone: nothing is converted, so nothing can be unsupported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from vitrify.core.errors import ModelError, UnsupportedError, VitrifyError
from vitrify.core.findings import Finding, Severity
from vitrify.results import InspectResult, TensorRow

SHOWN_METADATA = 200
INTEGER_OPERATORS = ("QuantizeLinear", "DequantizeLinear", "QLinearConv", "QLinearMatMul", "ConvInteger",
                     "MatMulInteger")


def inspect_onnx(path: Path) -> InspectResult:
    """Describe an ONNX file.

    Raises:
        ModelError: it is damaged.
    """
    import onnx

    try:
        model = onnx.load_model(str(path), load_external_data=False)
    except Exception as error:         # protobuf has its own error classes, which differ between its releases
        raise ModelError.of("onnx.damaged", f"{path} is no whole ONNX file: {error}", where=str(path),
                            help="fetch or export the model again") from error
    graph = model.graph
    stored = {tensor.name for tensor in graph.initializer}
    counts = Counter(node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}:{node.op_type}"
                     for node in _nodes(graph))
    constants = [*graph.initializer, *(a.t for node in _nodes(graph) for a in node.attribute if a.HasField("t"))]
    types = Counter(onnx.TensorProto.DataType.Name(t.data_type).lower() for t in constants)
    found = _findings(path)
    return InspectResult(
        ok=all(finding.severity is not Severity.ERROR for finding in found), findings=found,
        file=str(path), format="onnx", kind=_kind(counts, types), bytes=path.stat().st_size,
        inputs=[_row(value) for value in graph.input if value.name not in stored],
        outputs=[_row(value) for value in graph.output],
        operators=dict(counts.most_common()), float_operators=0 if not counts else sum(counts.values()),
        summary=_summary(graph, counts, types, stored),
        transposes=counts.get("Transpose", 0), parameters=sum(_size(t.dims) for t in constants),
        opset={entry.domain or "ai.onnx": entry.version for entry in model.opset_import},
        metadata={entry.key: shortened(entry.value) for entry in model.metadata_props},
        producer=" ".join(filter(None, (model.producer_name, model.producer_version))))


def _nodes(graph: Any) -> Iterator[Any]:
    """The nodes of a graph and of the graphs inside its nodes."""
    waiting = [graph]
    while waiting:
        for node in waiting.pop().node:
            yield node
            for attribute in node.attribute:
                waiting += [attribute.g] if attribute.HasField("g") else []
                waiting += list(attribute.graphs)


def _row(value: Any) -> TensorRow:
    import onnx

    tensor = value.type.tensor_type
    shape: list[int | str] = [d.dim_value if d.HasField("dim_value") else d.dim_param or "?" for d in tensor.shape.dim]
    name = onnx.TensorProto.DataType.Name(tensor.elem_type).lower()
    return TensorRow(name=value.name, shape=shape, dtype={"float": "float32", "double": "float64"}.get(name, name))


def _size(dims: Any) -> int:
    size = 1
    for extent in dims:
        size *= max(extent, 0)          # a negative one is a finding
    return size


def shortened(text: str) -> str:
    """Metadata as one looks at it; what was cut off is said."""
    return text if len(text) <= SHOWN_METADATA else f"{text[:SHOWN_METADATA]}... ({len(text)} characters)"


def _findings(path: Path) -> list[Finding]:
    """What of the file stands in the way of reading it; what is merely not supported is a warning."""
    from vitrify.importers.onnx.reading.checks import check
    from vitrify.importers.onnx.reading.reader import read

    try:
        check(read(path).graph)
    except UnsupportedError as error:
        return [replace(finding, severity=Severity.WARNING) for finding in error.findings]
    except VitrifyError as error:
        return list(error.findings)
    return []


def _kind(counts: Counter[str], types: Counter[str]) -> str:
    if any(name in counts for name in INTEGER_OPERATORS):
        return "int8" if types["int8"] or types["uint8"] else "mixed"
    return "float16" if types["float16"] > types["float"] else "float32"


def _extent(position: int, extent: int | str) -> str:
    return str(extent) if not _is_free(extent) else "N" if position else "1"


def _is_free(extent: int | str) -> bool:
    return isinstance(extent, str) or extent < 1


def _summary(graph: Any, counts: Counter[str], types: Counter[str], stored: set[str]) -> str:
    rows = [_row(value) for value in graph.input if value.name not in stored]
    free = [f"--shape {row.name}={','.join(_extent(i, d) for i, d in enumerate(row.shape))}"
            for row in rows if any(map(_is_free, row.shape[1:]))]         # a free batch alone becomes 1
    text = f"{_kind(counts, types)} ONNX, {sum(counts.values())} nodes of {len(counts)} kinds"
    return f"{text}; free dimensions: give {' '.join(free)}" if free else text
