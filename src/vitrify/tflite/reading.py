"""From a TFLite file to a model. Files are mapped into memory, never loaded and never changed."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
from msgspec import structs

from vitrify.core.errors import ModelError, UsageError
from vitrify.core.findings import Finding
from vitrify.ir import Graph, Model, Origin, Signature, Tensor
from vitrify.tflite import annotations as notes
from vitrify.tflite.decoding import Decoder
from vitrify.tflite.operators import name_of, read_operator
from vitrify.tflite.schema import Record
from vitrify.tflite.tensors import EMPTY_BUFFER, Array, link_details, mark_unused, read_tensor

IDENTIFIER = b"TFL3"
SCHEMA_VERSION = 3
FILE_TENSORS = "tensors"
"""Key of ``Model.extras``: all tensors of each graph in the file's order, also those that no node uses."""

MOST_FINDINGS = 20
T = TypeVar("T")


def read(path: Path | str) -> Model:
    """Read a TFLite file; constants are read-only views of the mapped file.

    Raises:
        ModelError: the file is no TFLite model, or is damaged; lists every problem found.
        UsageError: the file cannot be opened.
    """
    try:
        with open(path, "rb") as stream:
            size = stream.seek(0, 2)
            data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError.of("file.read", f"cannot read {path}: {reason}", where=str(path)) from error
    return read_bytes(data, str(path))


def read_bytes(data: bytes | bytearray | memoryview | mmap.mmap, where: str = "model") -> Model:
    """Read a model from memory; constants are views of ``data``. ``where`` names it in messages.

    Raises:
        ModelError: ``data`` is no TFLite model, or is damaged; lists every problem found.
    """
    content = np.frombuffer(data, np.uint8) if len(data) else np.empty(0, np.uint8)
    content.flags.writeable = False
    _check_identifier(content, where)
    root = Decoder(content, where).root("Model")
    if root.version != SCHEMA_VERSION:
        raise ModelError.of("tflite.version", f"schema version {root.version}, only {SCHEMA_VERSION} exists",
                            where=where, help="export the model again with a current converter")
    return _Reader(root, content, where).model()


def _check_identifier(content: Array, where: str) -> None:
    if content.size == 0:
        raise ModelError.of("tflite.empty", "the file is empty", where=where, help="export or fetch it again")
    found = content[4:8].tobytes()
    if found != IDENTIFIER:
        raise ModelError.of("tflite.identifier", f"not a TFLite model: bytes 4 to 7 are {found!r}, not {IDENTIFIER!r}",
                            where=where, why=f"the file has {content.size} bytes")


class _Reader:
    """Builds one model; collects every problem before it raises."""

    def __init__(self, root: Record, content: Array, where: str) -> None:
        self.root = root
        self.content = content
        self.where = where
        self.found: list[Finding] = []
        self.graph_name = ""

    def model(self) -> Model:
        root = self.root
        self.buffers = [self._attempt(partial(self._buffer, b, i)) for i, b in enumerate(root.buffers or ())]
        model = Model(description=root.description or "", source=self.where)
        listed: list[list[Tensor]] = []
        for index, subgraph in enumerate(root.subgraphs or ()):
            graph, tensors = self._graph(subgraph, index)
            model.graphs.append(graph)
            listed.append(tensors)
        if not model.graphs:
            self._report("tflite.graphs", "the model has no graph", self.where)
        else:
            self._signatures(model, listed)
            self._metadata(model)
        if self.found:
            self._raise()
        self._extras(model, listed)
        notes.restore(model, self.where)
        return model

    def _raise(self) -> NoReturn:
        """Raise what was found, each problem once and with the file's name."""
        listed = list(dict.fromkeys(structs.replace(f, where=self._in_file(f.where)) for f in self.found))
        more = len(listed) - MOST_FINDINGS
        if more > 0:
            listed[MOST_FINDINGS:] = [Finding(code="tflite.more", headline=f"{more} more problems", where=self.where)]
        raise ModelError(listed)

    def _in_file(self, where: str) -> str:
        return where if where.startswith(self.where) else f"{self.where}, {where}" if where else self.where

    def _report(self, code: str, headline: str, where: str) -> None:
        self.found.append(Finding(code=code, headline=headline, where=where,
                                  help="export or fetch the file again, it may be damaged"))

    def _attempt(self, step: Callable[[], T]) -> T | None:
        try:
            return step()
        except ModelError as error:
            self.found += error.findings
            return None

    def _buffer(self, record: Record, index: int) -> Array | None:
        """The bytes of a buffer, in the flatbuffer or behind it; None when it holds nothing."""
        if record.data is not None:
            data: Array = record.data
            return data
        if record.offset > 1:                 # 0 is absent, 1 a place-holder
            return self._behind(record.offset, record.size, f"buffer {index}")
        return None

    def _behind(self, offset: int, size: int, what: str) -> Array:
        if offset + size > self.content.size:
            raise ModelError.of("tflite.truncated", f"{what} ends at byte {offset + size}, the file at "
                                f"{self.content.size}", where=self.where, help="fetch the file again, it is cut short")
        return self.content[offset:offset + size]

    # graphs

    def _graph(self, subgraph: Record, index: int) -> tuple[Graph, list[Tensor]]:
        graph = Graph(subgraph.name or ("main" if index == 0 else f"subgraph_{index}"))
        self.graph_name = graph.name
        records = subgraph.tensors or []
        contents = [self._content(r, i) for i, r in enumerate(records)]
        read = [self._attempt(partial(read_tensor, r, i, c))
                for i, (r, c) in enumerate(zip(records, contents, strict=True))]
        if any(t is None for t in read):
            return graph, []
        tensors = [t for t in read if t is not None]
        link_details(tensors)
        where = f"graph '{graph.name}'"
        graph.inputs = self._pick(tensors, subgraph.inputs, f"{where}, inputs")
        outputs = self._pick(tensors, subgraph.outputs, f"{where}, outputs")
        self._nodes(graph, tensors, subgraph.operators or [])
        graph.set_outputs(outputs)
        self._fill_empty(graph, tensors)
        between = [t for node in graph for t in node.extras.get("intermediates", ()) if t is not None]
        mark_unused(tensors, [*graph.tensors(), *between])
        return graph, tensors

    def _content(self, record: Record, index: int) -> Array | None:
        if record.buffer == 0:
            return None
        if record.buffer >= len(self.buffers):
            self._report("tflite.index", f"buffer {record.buffer} of {len(self.buffers)}",
                         f"graph '{self.graph_name}', tensor '{record.name or index}'")
            return None
        content: Array | None = self.buffers[record.buffer]
        return content

    def _pick(self, tensors: list[Tensor], places: Array | None, where: str) -> list[Tensor]:
        """The tensors at ``places``; places that do not exist are reported and left out."""
        return [t for t in self._pick_optional(tensors, places, where, missing=None) if t is not None]

    def _pick_optional(self, tensors: list[Tensor], places: Array | None, where: str, missing: int | None = -1
                       ) -> list[Tensor | None]:
        picked: list[Tensor | None] = []
        for place in () if places is None else places.tolist():
            if 0 <= place < len(tensors):
                picked.append(tensors[place])
            else:
                picked.append(None)
                if place != missing:
                    self._report("tflite.index", f"tensor {place} of {len(tensors)}", where)
        return picked

    def _nodes(self, graph: Graph, tensors: list[Tensor], records: Sequence[Record]) -> None:
        codes = self.root.operator_codes or []
        made: dict[int, int] = {}
        for position, record in enumerate(records):
            for place in () if record.outputs is None else record.outputs.tolist():
                if made.setdefault(place, position) != position or record.outputs.tolist().count(place) > 1:
                    self._report("tflite.order", f"tensor {place} is made by operators {made[place]} and {position}",
                                 f"graph '{graph.name}'")
        for position, record in enumerate(records):
            if record.opcode_index >= len(codes):
                self._report("tflite.index", f"operator code {record.opcode_index} of {len(codes)}",
                             f"graph '{graph.name}', operator {position}")
            elif not any(f.code == "tflite.order" for f in self.found):
                self._attempt(partial(self._node, graph, tensors, codes[record.opcode_index], record, position, made))

    def _node(self, graph: Graph, tensors: list[Tensor], code: Record, record: Record, position: int,
              made: dict[int, int]) -> None:
        builtin = max(code.builtin_code, code.deprecated_builtin_code)
        where = f"graph '{graph.name}', operator {position} ({code.custom_code or name_of(builtin)})"
        inputs = self._pick_optional(tensors, record.inputs, f"{where}, inputs")
        outputs = self._pick(tensors, record.outputs, f"{where}, outputs")
        for place in () if record.inputs is None else record.inputs.tolist():
            if made.get(place, -1) >= position:
                self._report("tflite.order", f"tensor {place} is read before operator {made[place]} makes it", where)
        op, extras = read_operator(builtin, code.custom_code or "", self._custom_options(record, where),
                                   record.builtin_options or record.builtin_options2)
        name = outputs[0].name if outputs else f"{op.kind}_{position}"
        node = graph.add(op, inputs, outputs, name=name, origin=Origin.of(name, op.kind))
        node.extras = {**extras, "version": code.version}
        if record.custom_options_format:
            node.extras["custom_options_format"] = record.custom_options_format
        if record.mutating_variable_inputs is not None and record.mutating_variable_inputs.any():
            node.extras["mutating_variable_inputs"] = tuple(record.mutating_variable_inputs.tolist())
        if record.intermediates is not None and record.intermediates.size:
            node.extras["intermediates"] = self._pick_optional(tensors, record.intermediates, f"{where}, intermediates")
        if record.debug_metadata_index != -1:
            node.extras["debug_metadata_index"] = record.debug_metadata_index

    def _custom_options(self, record: Record, where: str) -> bytes:
        if record.large_custom_options_offset > 1:
            behind = self._behind(record.large_custom_options_offset, record.large_custom_options_size,
                                  f"the options of {where}")
            return behind.tobytes()
        return b"" if record.custom_options is None else record.custom_options.tobytes()

    @staticmethod
    def _fill_empty(graph: Graph, tensors: list[Tensor]) -> None:
        """Give data to constants of zero elements, which files may write without any."""
        given = set(map(id, graph.inputs))
        for tensor in tensors:
            numpy = tensor.dtype.numpy
            if (0 in tensor.shape and tensor.data is None and tensor.producer is None and numpy is not None
                    and id(tensor) not in given and not tensor.is_variable):
                tensor.data = np.empty(tensor.shape, numpy)
                tensor.extras[EMPTY_BUFFER] = True

    # what belongs to the whole model

    def _signatures(self, model: Model, listed: list[list[Tensor]]) -> None:
        for record in self.root.signature_defs or ():
            where = f"signature '{record.signature_key}'"
            if record.subgraph_index >= len(model.graphs):
                self._report("tflite.index", f"graph {record.subgraph_index} of {len(model.graphs)}", where)
                continue
            graph, tensors = model.graphs[record.subgraph_index], listed[record.subgraph_index]
            model.signatures.append(Signature(record.signature_key or "", record.subgraph_index,
                                              self._positions(record.inputs, tensors, graph.inputs, f"{where}, input"),
                                              self._positions(record.outputs, tensors, graph.outputs,
                                                              f"{where}, output")))

    def _positions(self, maps: list[Record] | None, tensors: list[Tensor], among: Sequence[Tensor], where: str
                   ) -> dict[str, int]:
        places = {id(t): i for i, t in reversed(list(enumerate(among)))}
        found: dict[str, int] = {}
        for entry in maps or ():
            tensor = tensors[entry.tensor_index] if entry.tensor_index < len(tensors) else None
            place = places.get(id(tensor))
            if place is None:
                self._report("tflite.signature", f"'{entry.name}' is tensor {entry.tensor_index}, which the graph does "
                             "not list", where)
            else:
                found[entry.name or ""] = place
        return found

    def _metadata(self, model: Model) -> None:
        for record in self.root.metadata or ():
            if record.buffer >= len(self.buffers):
                self._report("tflite.index", f"buffer {record.buffer} of {len(self.buffers)}",
                             f"metadata '{record.name}'")
                continue
            content = self.buffers[record.buffer]
            model.metadata[record.name or ""] = b"" if content is None else content.tobytes()

    def _extras(self, model: Model, listed: list[list[Tensor]]) -> None:
        root = self.root
        model.extras[FILE_TENSORS] = listed
        for name in ("external_buffer_groups", "external_buffers"):
            if getattr(root, name):
                model.extras[name] = getattr(root, name)
        places = [] if root.metadata_buffer is None else root.metadata_buffer.tolist()
        contents = [self.buffers[p] for p in places if 0 <= p < len(self.buffers)]
        if contents:
            model.extras["metadata_buffer"] = [b"" if c is None else c.tobytes() for c in contents]
        marks: list[Any] = [g.debug_metadata_index for g in root.subgraphs]
        if any(mark != -1 for mark in marks):
            model.extras["debug_metadata_index"] = marks
