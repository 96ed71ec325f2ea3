"""From the values that the parts work with to the rows of an answer."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from vitrify.core.results import (
    Coverage,
    Estimate,
    LedgerRow,
    ModelFacts,
    PartitionRow,
    PlacementRow,
    RuleRow,
    TensorRow,
    VerdictRow,
)
from vitrify.ir import Ledger, Model, Node, Tensor

if TYPE_CHECKING:
    from vitrify import targets

NPU_OPERATORS = ("ethos-u", "neutrongraph", "vsi-npu")
"""Beginnings of the custom operators that hold a compiled graph. Sources: Vela; NXP eIQ; VeriSilicon's driver."""


def tensor_row(tensor: Tensor) -> TensorRow:
    """Describe an input or output, with the real interval that its integers encode."""
    shape: list[int | str] = list(tensor.shape_signature or tensor.shape)
    row = TensorRow(name=tensor.name, shape=shape, dtype=tensor.dtype.label)
    quantization, kind = tensor.quantization, tensor.dtype.numpy
    if quantization is None or kind is None or not quantization.scale.size or kind.kind not in "iu":
        return row
    row.scales, row.axis = int(quantization.scale.size), quantization.axis
    if quantization.scale.size == 1:
        info = np.iinfo(kind)
        scale, zero = float(quantization.scale[0]), int(quantization.zero_point[0])
        row.scale, row.zero_point = scale, zero
        row.real_min, row.real_max = scale * (int(info.min) - zero), scale * (int(info.max) - zero)
    return row


def operators(model: Model) -> dict[str, int]:
    """Count the operators of all graphs, the commonest first."""
    return dict(Counter(node.op.kind for graph in model.graphs for node in graph).most_common())


def is_float(node: Node) -> bool:
    """True when the node computes on floats; QUANTIZE and DEQUANTIZE only stand at a border."""
    if node.op.kind in ("QUANTIZE", "DEQUANTIZE"):
        return False
    given = [t for t in node.inputs if t is not None]
    values = [t for t in given if not t.is_constant] or given
    return any(t.dtype.is_float for t in (*values, *node.outputs))


def float_nodes(model: Model) -> list[str]:
    """Name the nodes that compute on floats."""
    return [node.name for graph in model.graphs for node in graph if is_float(node)]


def npu_graphs(model: Model) -> int:
    """Count the custom operators that hold a compiled graph."""
    return sum(node.op.kind.lower().startswith(NPU_OPERATORS) for graph in model.graphs for node in graph)


def model_facts(model: Model, file: str, size: int) -> ModelFacts:
    """Describe one form of a model."""
    from vitrify.tflite.kind import classify

    counts = operators(model)
    seen = {id(t): t for graph in model.graphs for t in graph.tensors() if t.data is not None}
    return ModelFacts(
        file=file, kind=str(getattr(kind := classify(model), "value", kind)), bytes=size,
        inputs=[tensor_row(t) for t in model.main.inputs], outputs=[tensor_row(t) for t in model.main.outputs],
        operators=counts, float_operators=len(float_nodes(model)), transposes=counts.get("TRANSPOSE", 0),
        parameters=sum(t.size for t in seen.values()))


def ledger_rows(ledger: Ledger | None) -> list[LedgerRow]:
    """Turn a ledger into rows."""
    return [msgspec.convert(msgspec.to_builtins(entry), LedgerRow) for entry in ledger.entries] if ledger else []


def coverage_row(coverage: targets.Coverage) -> Coverage:
    """Turn the shares on the NPU into a row."""
    return Coverage(nodes=coverage.nodes, macs=coverage.macs, time=coverage.time)


def placement_row(placement: targets.Placement, cycles: dict[str, int] | None = None) -> PlacementRow:
    """Turn a placement into rows; ``cycles`` by node name where they are known."""
    verdicts = [
        VerdictRow(node=v.node, operator=v.operator, placement=v.placement, confidence=v.confidence,
                   rules=[RuleRow(code=r.code, headline=r.headline, why=r.why, help=r.help) for r in v.rules],
                   origin=list(v.origin), cycles=(cycles or {}).get(v.node))
        for v in placement.verdicts]
    partitions = [PartitionRow(index=p.index, placement=p.placement, nodes=list(p.nodes), bytes_in=p.bytes_in,
                               bytes_out=p.bytes_out, time_ms=p.time_ms) for p in placement.partitions]
    return PlacementRow(npu=placement.count("npu"), cpu=placement.count("cpu"), folded=placement.count("folded"),
                        verdicts=verdicts, partitions=partitions)


def estimate_row(estimate: targets.Estimate) -> Estimate:
    """Turn an estimate into a row."""
    return msgspec.convert(msgspec.to_builtins(estimate), Estimate)


def memory_row(memory: targets.Memory) -> dict[str, int]:
    """Turn the memory figures into a row."""
    plain: dict[str, Any] = msgspec.to_builtins(memory)
    return {name: int(value) for name, value in plain.items()}
