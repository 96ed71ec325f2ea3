"""From a model to a TFLite file. The same model always gives the same bytes; weights are copied once, into the file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.core.errors import ModelError
from vitrify.core.files import atomic_writer
from vitrify.ir import Graph, Model, Node, Signature, Tensor
from vitrify.ops import Custom
from vitrify.tflite import annotations as notes
from vitrify.tflite import schema
from vitrify.tflite.encoding import BUFFER_ALIGNMENT, Encoder, Pending, as_bytes
from vitrify.tflite.operators import code_of, version_of, write_options
from vitrify.tflite.reading import FILE_TENSORS, IDENTIFIER, SCHEMA_VERSION
from vitrify.tflite.schema import Record
from vitrify.tflite.tensors import EMPTY_BUFFER, UNUSED, Array, detail_tensors, write_tensor

FLATBUFFER_LIMIT = 2**31 - 1      # FLATBUFFERS_MAX_BUFFER_SIZE; readers refuse more
FIRST_CODE_BEYOND_A_BYTE = 127    # PLACEHOLDER_FOR_GREATER_OP_CODES, for readers of the old one-byte field
MEMORY_PLAN = "OfflineMemoryAllocation"
"""Metadata that names tensors by number; it says nothing once the numbers changed.
Source: TensorFlow Lite Micro, docs/memory_management.md, "Offline planned tensor allocations"."""

Chunk = bytes | bytearray | memoryview


def write(model: Model, path: Path | str) -> None:
    """Write ``model`` to ``path``, whole or not at all. A model read from ``path`` itself may be written there.

    Raises:
        ModelError: the model cannot be said in TFLite; lists every problem found.
        UsageError: the place cannot be written.
    """
    chunks = _encode(model)
    with atomic_writer(path) as stream:
        for chunk in chunks:
            stream.write(chunk)


def to_bytes(model: Model) -> bytes:
    """Return the bytes of a TFLite file.

    Raises:
        ModelError: the model cannot be said in TFLite; lists every problem found.
    """
    return b"".join(_encode(model))


def _encode(model: Model) -> Iterator[Chunk]:
    writer = _Writer(model)
    root = writer.root()
    encoder = Encoder(IDENTIFIER)
    encoder.root(root)
    if encoder.size() <= FLATBUFFER_LIMIT:
        return encoder.chunks()
    return _encode_with_contents_behind(root)


def _encode_with_contents_behind(root: Record) -> Iterator[Chunk]:
    """Put the contents of buffers behind the flatbuffer, as the format does for models over 2 GB."""
    moved: list[tuple[Record, Any]] = []
    for buffer in root.buffers:
        if buffer.data is not None and len(buffer.data) > 0:
            moved.append((buffer, buffer.data if isinstance(buffer.data, Pending) else as_bytes(buffer.data)))
            buffer.data, buffer.offset, buffer.size = None, FLATBUFFER_LIMIT, moved[-1][1].nbytes
    end = _sized(root)      # offsets take the same room whatever they are, so the first size stays right
    padding = []
    for buffer, content in moved:
        padding.append(-end % BUFFER_ALIGNMENT)
        buffer.offset = end + padding[-1]
        end = buffer.offset + content.nbytes
    encoder = Encoder(IDENTIFIER)
    encoder.root(root)
    yield from encoder.chunks()
    for gap, (_, content) in zip(padding, moved, strict=True):
        yield bytes(gap)
        yield content.view() if isinstance(content, Pending) else content


def _sized(root: Record) -> int:
    encoder = Encoder(IDENTIFIER)
    encoder.root(root)
    if encoder.size() > FLATBUFFER_LIMIT:
        raise ModelError.of("tflite.size", f"the graph without its weights has {encoder.size()} bytes, "
                            f"a TFLite file takes {FLATBUFFER_LIMIT}", help="split the model")
    return encoder.size()


class _Writer:
    """Builds the records of one model."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.buffers: list[Record] = [Record("Buffer")]     # number 0 means "no data"
        self.known: dict[tuple[Any, ...], int] = {}
        self.codes: dict[tuple[int, str, int], int] = {}
        self.found: list[ModelError] = []

    def root(self) -> Record:
        model = self.model
        orders = [_order(graph, listed) for graph, listed in zip(model.graphs, self._listed(), strict=True)]
        graphs = [self._graph(g, i, order) for i, (g, order) in enumerate(zip(model.graphs, orders, strict=True))]
        if self.found:
            raise ModelError([finding for error in self.found for finding in error.findings])
        metadata = {**model.metadata, **notes.entries(model)}
        if [*map(_ids, orders)] != [*map(_ids, self._listed())]:
            metadata.pop(MEMORY_PLAN, None)
        kept = {k: model.extras[k] for k in ("external_buffer_groups", "external_buffers") if k in model.extras}
        root = Record("Model", version=SCHEMA_VERSION, description=model.description or None, subgraphs=graphs,
                      operator_codes=[_code(*key) for key in self.codes],
                      signature_defs=[self._signature(s) for s in model.signatures] or None, **kept)
        self._metadata(root, metadata)
        root.buffers = self.buffers
        return root

    def _listed(self) -> list[list[Tensor]]:
        """The tensors of each graph as the file that the model was read from had them."""
        listed: list[list[Tensor]] = self.model.extras.get(FILE_TENSORS, [])
        return [listed[i] if i < len(listed) else [] for i in range(len(self.model.graphs))]

    def _attempt(self, step: Callable[[], Record]) -> Record | None:
        try:
            return step()
        except ModelError as error:
            self.found.append(error)
            return None

    def _graph(self, graph: Graph, index: int, order: list[Tensor]) -> Record:
        numbers = {id(t): i for i, t in enumerate(order)}

        def number(tensor: Tensor | None) -> int:
            return -1 if tensor is None else numbers[id(tensor)]

        marks = self.model.extras.get("debug_metadata_index", [])
        tensors = [self._attempt(partial(self._tensor, t, number)) for t in order]
        return Record("SubGraph", name=graph.name, tensors=tensors, inputs=[number(t) for t in graph.inputs],
                      outputs=[number(t) for t in graph.outputs],
                      operators=[self._attempt(partial(self._node, n, number)) for n in graph],
                      debug_metadata_index=marks[index] if index < len(marks) else -1)

    def _node(self, node: Node, number: Callable[[Tensor | None], int]) -> Record:
        op, extras = node.op, node.extras
        custom = op.custom_code if isinstance(op, Custom) else ""
        code = self.codes.setdefault((code_of(op), custom, version_of(node)), len(self.codes))
        record = Record("Operator", opcode_index=code, inputs=[number(t) for t in node.inputs],
                        outputs=[number(t) for t in node.outputs],
                        custom_options=(op.custom_options if isinstance(op, Custom) else extras.get("custom_options"))
                        or None)
        options = write_options(node)
        if options is not None:
            setattr(record, schema.options_field(options.table), options)
        for name in ("custom_options_format", "mutating_variable_inputs", "debug_metadata_index"):
            if name in extras:
                setattr(record, name, extras[name])
        if "intermediates" in extras:
            record.intermediates = [number(t) for t in extras["intermediates"]]
        return record

    def _tensor(self, tensor: Tensor, number: Callable[[Tensor | None], int]) -> Record:
        return write_tensor(tensor, self._buffer(tensor), number)

    def _buffer(self, tensor: Tensor) -> int:
        """The number of the buffer with the tensor's data; data that stands in memory once is written once."""
        data = tensor.data
        if data is None or (EMPTY_BUFFER in tensor.extras and data.size == 0):
            return 0
        _check_data(tensor, data)
        data = np.asarray(data)     # a numpy scalar has no memory of its own to know it by
        order = () if data.flags.c_contiguous else (data.shape, data.strides)
        key = (data.__array_interface__["data"][0], data.nbytes, order)
        if key not in self.known:
            self.known[key] = self._add_buffer(Pending(data))
        return self.known[key]

    def _add_buffer(self, content: Any) -> int:
        self.buffers.append(Record("Buffer", data=content))
        return len(self.buffers) - 1

    def _signature(self, signature: Signature) -> Record:
        graph = self.model.graphs[signature.graph]
        order = _ids(_order(graph, self._listed()[signature.graph]))
        numbers = {tensor: i for i, tensor in enumerate(order)}
        return Record("SignatureDef", signature_key=signature.key, subgraph_index=signature.graph,
                      inputs=[Record("TensorMap", name=name, tensor_index=numbers[id(graph.inputs[place])])
                              for name, place in signature.inputs.items()],
                      outputs=[Record("TensorMap", name=name, tensor_index=numbers[id(graph.outputs[place])])
                               for name, place in signature.outputs.items()])

    def _metadata(self, root: Record, entries: dict[str, bytes]) -> None:
        places = {name: self._add_buffer(content) for name, content in entries.items()}
        root.metadata = [Record("Metadata", name=name, buffer=place) for name, place in places.items()] or None
        by_content = {entries[name]: place for name, place in places.items()}
        listed = self.model.extras.get("metadata_buffer", ())
        root.metadata_buffer = [by_content[c] if c in by_content else self._add_buffer(c) for c in listed] or None


def _ids(tensors: Iterable[Tensor]) -> list[int]:
    return [id(t) for t in tensors]


def _order(graph: Graph, listed: list[Tensor]) -> list[Tensor]:
    """Number the tensors: those of the file in its order, then new ones.

    Tensors that no node of the file used stay only as long as the graph has no new ones.
    """
    needed = {id(t): t for t in graph.tensors()}
    for node in graph:
        needed.update((id(t), t) for t in node.extras.get("intermediates", ()) if t is not None)
    waiting = list(needed.values())
    while waiting:
        more = [t for t in detail_tensors(waiting.pop()) if id(t) not in needed]
        needed.update((id(t), t) for t in more)
        waiting += more
    from_file = {id(t) for t in listed}
    new = [t for t in needed.values() if id(t) not in from_file]
    return [t for t in listed if id(t) in needed or (not new and UNUSED in t.extras)] + new


def _check_data(tensor: Tensor, data: Array) -> None:
    numpy = tensor.dtype.numpy
    if numpy is not None and data.dtype != numpy:
        problem = f"data of type {data.dtype} in a tensor of type {tensor.dtype.label}"
    elif tensor.dtype.bits and "sparsity" not in tensor.extras and data.nbytes != _nbytes(tensor):
        problem = f"data of {data.nbytes} bytes, {tensor.type} needs {_nbytes(tensor)}"
    else:
        return
    raise ModelError.of("tflite.data", problem, where=f"tensor '{tensor.name}'")


def _nbytes(tensor: Tensor) -> int:
    return -(-math.prod(tensor.shape) * tensor.dtype.bits // 8)


def _code(builtin: int, custom: str, version: int) -> Record:
    return Record("OperatorCode", builtin_code=builtin, custom_code=custom or None, version=version,
                  deprecated_builtin_code=min(builtin, FIRST_CODE_BEYOND_A_BYTE))
