"""What is inside a compiled file: its NPU operators with the sizes of their parts, and the operators left to the CPU.

Read below the graph: in a compiled file several NPU operators may write parts of one tensor, which no graph has.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from vitrify.tflite.decoding import Decoder
from vitrify.tflite.operators import name_of
from vitrify.tflite.schema import Record

NPU_OPERATOR = "ethos-u"
"""The custom operator that stands for a command stream in a compiled model."""

_ARENA_METADATA = "OfflineMemoryAllocation"
_ARENA_HEADER = 3      # int32 words: version, subgraph, count. Source: TFLite Micro, memory_management.md.
_PARTS = 4             # commands, constants, arena, fast arena; then the feature maps. Source: the driver's delegate.


class NpuGraph(msgspec.Struct, frozen=True, kw_only=True):
    """One NPU operator of a compiled model; all of a model share one arena."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    command_stream_bytes: int
    weights_bytes: int
    arena_bytes: int
    fast_arena_bytes: int


class CpuOperator(NamedTuple):
    """An operator that was passed through: its kind and the names of its outputs."""

    kind: str
    outputs: tuple[str, ...]


class CompiledFile(NamedTuple):
    """The operators of a compiled file's main graph, and the bytes of the tensor arena that it lays out."""

    npu: tuple[NpuGraph, ...]
    cpu: tuple[CpuOperator, ...]
    arena_bytes: int


def npu_graphs(path: Path | str) -> tuple[NpuGraph, ...]:
    """Return the NPU operators in the file at ``path``, in running order; empty for a model not compiled.

    Raises:
        ModelError: the file is damaged.
    """
    return read_compiled(path).npu


def read_compiled(path: Path | str) -> CompiledFile:
    """Read the operators of the file at ``path``.

    Raises:
        ModelError: the file is damaged.
    """
    data = np.fromfile(path, np.uint8)
    root = Decoder(data, str(path)).root("Model")
    npu: list[NpuGraph] = []
    cpu: list[CpuOperator] = []
    for graph in root.subgraphs or ():
        for operator in graph.operators or ():
            kind = _kind(root, operator)
            if kind == NPU_OPERATOR:
                npu.append(_npu_graph(graph, operator))
            elif graph is root.subgraphs[0]:
                cpu.append(CpuOperator(kind, tuple(_names(graph, operator.outputs))))
    largest = max((part.arena_bytes for part in npu), default=0)
    return CompiledFile(tuple(npu), tuple(cpu), _arena_end(root, data) or largest)


def _kind(root: Record, operator: Record) -> str:
    codes = root.operator_codes or ()
    if operator.opcode_index >= len(codes):
        return ""
    code = codes[operator.opcode_index]
    return code.custom_code or name_of(max(code.builtin_code, code.deprecated_builtin_code))


def _npu_graph(graph: Record, operator: Record) -> NpuGraph:
    inputs = operator.inputs if operator.inputs is not None else np.empty(0, np.int32)
    sizes = [_bytes(graph, index) for index in inputs[:_PARTS].tolist()] + [0] * _PARTS
    return NpuGraph(inputs=tuple(_names(graph, inputs[_PARTS:])), outputs=tuple(_names(graph, operator.outputs)),
                    command_stream_bytes=sizes[0], weights_bytes=sizes[1], arena_bytes=sizes[2],
                    fast_arena_bytes=sizes[3])


def _bytes(graph: Record, index: int) -> int:
    """The size of a tensor of single bytes; the four parts are such."""
    if not 0 <= index < len(graph.tensors or ()):
        return 0
    shape = graph.tensors[index].shape
    return int(np.prod(shape, dtype=np.int64)) if shape is not None else 0


def _names(graph: Record, places: np.ndarray | None) -> list[str]:
    listed = graph.tensors or ()
    return [listed[place].name or "" for place in (() if places is None else places.tolist())
            if 0 <= place < len(listed)]


def _arena_end(root: Record, data: np.ndarray) -> int:
    """Where the last byte of the stored arena plan lies; 0 without a plan. The fast arena is memory of its own."""
    from vitrify.ir import DType

    words = _metadata(root, _ARENA_METADATA)
    if words is None or len(words) < _ARENA_HEADER * 4:
        return 0
    offsets = words[:len(words) // 4 * 4].view(np.int32)[_ARENA_HEADER:]
    tensors = root.subgraphs[0].tensors or () if root.subgraphs else ()
    ends = [0]
    fast = _fast_arenas(root)
    for index, (offset, tensor) in enumerate(zip(offsets.tolist(), tensors, strict=False)):
        if offset >= 0 and tensor.shape is not None and index not in fast:
            ends.append(offset + int(np.prod(tensor.shape, dtype=np.int64)) * DType(tensor.type).bits // 8)
    return max(ends)


def _fast_arenas(root: Record) -> set[int]:
    """The tensors of the main graph that stand for the fast arena."""
    return {int(operator.inputs[_PARTS - 1]) for operator in root.subgraphs[0].operators or ()
            if _kind(root, operator) == NPU_OPERATOR and operator.inputs is not None and len(operator.inputs) >= _PARTS}


def _metadata(root: Record, name: str) -> np.ndarray | None:
    for entry in root.metadata or ():
        if entry.name == name and entry.buffer < len(root.buffers or ()):
            found: np.ndarray | None = root.buffers[entry.buffer].data
            return None if found is None else np.ascontiguousarray(found)
    return None
