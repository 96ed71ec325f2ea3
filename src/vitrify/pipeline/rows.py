"""From the values that the parts work with to the rows of an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from vitrify.ir import Ledger, Model, Tensor
from vitrify.results import (
    Coverage,
    CrossingRow,
    Estimate,
    LedgerRow,
    ModelFacts,
    PartitionRow,
    PlacementRow,
    RuleRow,
    TensorRow,
    TransposeRow,
    VerdictRow,
)

if TYPE_CHECKING:
    from vitrify.targets import placement as targets

def tensor_row(tensor: Tensor) -> TensorRow:
    """Describe an input or output, with the real interval that its integers encode."""
    row = TensorRow(name=tensor.name, shape=list(tensor.shape), dtype=tensor.dtype.label,
                    shape_signature=list(tensor.shape_signature))
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


def model_facts(model: Model, file: str, size: int) -> ModelFacts:
    """Describe one form of a model."""
    from vitrify.tflite import contents, float_operators, transposes

    seen = {id(t): t for graph in model.graphs for t in graph.tensors() if t.data is not None}
    found = contents(model)
    return ModelFacts(
        file=file, kind=found.kind.value, bytes=size,
        inputs=[tensor_row(t) for t in model.main.inputs], outputs=[tensor_row(t) for t in model.main.outputs],
        operators=dict(Counter(found.operators).most_common()),
        float_operators=sum(len(float_operators(graph)) for graph in model.graphs),
        transposes=sum(len(transposes(graph)) for graph in model.graphs), transposes_left=transpose_rows(model),
        parameters=sum(t.size for t in seen.values()))


def transpose_rows(model: Model) -> list[TransposeRow]:
    """Name every TRANSPOSE, and why it could not go."""
    from vitrify.passes.layout.left import left_transposes

    return [TransposeRow(node=one.node.name, between=[one.before, one.after], reason=one.reason,
                         bytes=one.node.output.nbytes) for one in left_transposes(model)]


def ledger_rows(ledger: Ledger | None) -> list[LedgerRow]:
    """Turn a ledger into rows."""
    return [msgspec.convert(msgspec.to_builtins(entry), LedgerRow) for entry in ledger.entries] if ledger else []


def coverage_row(coverage: targets.Coverage) -> Coverage:
    """Turn the shares on the NPU into a row."""
    return msgspec.convert(msgspec.to_builtins(coverage), Coverage)


def placement_row(placement: targets.Placement, cycles: Sequence[int | None] | None = None) -> PlacementRow:
    """Turn a placement into rows; ``cycles`` are those of each verdict's node, whose names need not be unique."""
    verdicts = [
        VerdictRow(node=v.node, operator=v.operator, placement=v.placement, confidence=v.confidence,
                   source=v.source, rules=[msgspec.convert(msgspec.to_builtins(rule), RuleRow) for rule in v.rules],
                   origin=list(v.origin), cycles=spent)
        for v, spent in zip(placement.verdicts, cycles or [None] * len(placement.verdicts), strict=True)]
    partitions = [PartitionRow(index=p.index, placement=p.placement, nodes=list(p.nodes), bytes_in=p.bytes_in,
                               bytes_out=p.bytes_out, inputs=_crossings(p.inputs), outputs=_crossings(p.outputs),
                               time_ms=p.time_ms if cycles is not None or p.time_ms or p.placement == "cpu" else None)
                  for p in placement.partitions]
    return PlacementRow(npu=placement.count("npu"), cpu=placement.count("cpu"), folded=placement.count("folded"),
                        verdicts=verdicts, partitions=partitions)


def _crossings(crossings: Sequence[targets.Crossing]) -> list[CrossingRow]:
    return [CrossingRow(tensor=one.tensor, bytes=one.bytes) for one in crossings]


def estimate_row(estimate: targets.Estimate | None) -> Estimate:
    """Turn an estimate into a row, an empty one where nothing is estimated."""
    if estimate is None:
        return Estimate()
    return msgspec.convert(msgspec.to_builtins(estimate), Estimate)


def memory_row(memory: targets.Memory | None) -> dict[str, int]:
    """Turn the memory figures into a row, an empty one where nothing tells them."""
    if memory is None:
        return {}
    plain: dict[str, Any] = msgspec.to_builtins(memory)
    return {name: int(value) for name, value in plain.items()}
