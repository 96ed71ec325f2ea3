"""`check` of a file that is compiled already: what is in it, as far as the file tells."""

from __future__ import annotations

import mmap
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vitrify.core.errors import VitrifyError
from vitrify.core.findings import Finding, Severity
from vitrify.core.words import counted
from vitrify.results import CheckResult, Coverage, CrossingRow, PartitionRow, RuleRow, VerdictRow
from vitrify.tflite.streams import STREAMS, decode_map, metadata_of

if TYPE_CHECKING:
    from vitrify.targets import Target
    from vitrify.tflite.schema import Record

UNKNOWN = RuleRow(code="check.passed-through", headline="the compiler left it on the CPU",
                  why="why, the compiled file does not say", help="check the file that it was compiled from",
                  confidence="compiler")

_BACKENDS = {"ethos-u": "vela", "NeutronGraph": "neutron"}
"""The backend that makes each kind of NPU graph."""


def check_compiled(path: Path, target: Target) -> CheckResult | None:
    """List the NPU graphs of a compiled file and what stands beside them; None for a file that is not compiled.

    Read below the graph: in a compiled file several NPU operators may write parts of one tensor, which no graph has.

    Raises:
        ModelError: the file is damaged.
    """
    from vitrify.tflite.decoding import Decoder
    from vitrify.tflite.kind import NPU_GRAPHS

    if not _names_npu(path):
        return None
    root = Decoder(np.fromfile(path, np.uint8), str(path)).root("Model")
    graphs = root.subgraphs or ()
    if not graphs or not any(_kind(root, one) in NPU_GRAPHS for graph in graphs for one in graph.operators or ()):
        return None
    result = CheckResult(target=target.name, kind="compiled", form="compiled", judges=["the file"])
    for index, operator in enumerate(graphs[0].operators or ()):
        _enter(result, graphs[0], operator, _kind(root, operator), index)
    on_npu = sum(row.placement == "npu" for row in result.verdicts)
    result.coverage = Coverage(nodes=on_npu / len(result.verdicts) if result.verdicts else 0.0)
    makers = Counter(row.operator for row in result.verdicts if row.placement == "npu")
    made = " and ".join(f"{counted(count, f'{kind} graph')} by {NPU_GRAPHS[kind]}" for kind, count in makers.items())
    fits = any(_BACKENDS.get(kind) == target.backend for kind in makers)
    result.findings = [Finding(
        code="check.compiled", severity=Severity.INFO if fits else Severity.WARNING, where=str(path),
        headline=f"the file is compiled already: {made}, {counted(len(result.verdicts) - on_npu, 'operator')} beside "
                 f"{'it' if on_npu == 1 else 'them'}{'' if fits else f'; {target.name} runs none of it'}",
        why=_stands_for(root, path) or "which of the model's operators an NPU graph stands for is not in the file",
        help="check the file that it was compiled from")]
    result.ok = True
    return result


def _stands_for(root: Record, path: Path) -> str:
    """Say what the file says itself of the operators in its NPU graphs; empty where it says nothing that is read."""
    said = metadata_of(root).get(STREAMS)
    if said is None:
        return ""
    try:
        commands = decode_map(said, str(path))
    except VitrifyError:
        return ""
    nodes = {row.node for row in commands.scheduled if 0 <= row.node < len(commands.nodes)}
    return (f"{commands.maker} made it for {commands.target}; its commands compute {len(nodes)} of the model's "
            f"{counted(len(commands.nodes), 'node')}, which `vitrify inspect --commands` names")


def _names_npu(path: Path) -> bool:
    """False for a file in which no custom operator can be an NPU's, told without decoding: its name stands there."""
    from vitrify.tflite.kind import NPU_GRAPHS

    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return any(data.find(name.encode()) >= 0 for name in NPU_GRAPHS)


def _enter(result: CheckResult, graph: Record, operator: Record, kind: str, index: int) -> None:
    """Add an operator as a verdict, and to the partition that it is in."""
    from vitrify.tflite.kind import NPU_GRAPHS

    side = "npu" if kind in NPU_GRAPHS else "cpu"
    inputs, outputs = _tensors(graph, operator.inputs), _tensors(graph, operator.outputs)
    name = outputs[0].tensor if outputs else f"{kind}:{index}"
    result.verdicts.append(VerdictRow(node=name, operator=kind, placement=side, confidence="compiler",
                                      rules=[UNKNOWN] if side == "cpu" else []))
    last = result.partitions[-1] if result.partitions else None
    if last is None or last.placement != side or side == "npu":
        last = PartitionRow(index=len(result.partitions), placement=side)
        result.partitions.append(last)
    last.nodes.append(name)
    made = {one.tensor for one in last.outputs}
    last.inputs += [one for one in inputs if one.tensor not in made]
    last.outputs += outputs
    last.bytes_in, last.bytes_out = (sum(one.bytes for one in group) for group in (last.inputs, last.outputs))


def _kind(root: Record, operator: Record) -> str:
    from vitrify.tflite.operators import name_of

    codes = root.operator_codes or ()
    if operator.opcode_index >= len(codes):
        return ""
    code = codes[operator.opcode_index]
    return code.custom_code or name_of(max(code.builtin_code, code.deprecated_builtin_code))


def _tensors(graph: Record, places: np.ndarray | None) -> list[CrossingRow]:
    from vitrify.ir import DType

    listed = graph.tensors or ()
    found = [listed[place] for place in (() if places is None else places.tolist()) if 0 <= place < len(listed)]
    return [CrossingRow(tensor=t.name or "", bytes=_size(t, DType(t.type).bits)) for t in found]


def _size(tensor: Record, bits: int) -> int:
    return 0 if tensor.shape is None else int(np.prod(tensor.shape.astype(np.int64))) * bits // 8

