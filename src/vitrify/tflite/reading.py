"""From a TFLite file to a model. Files are mapped into memory, never loaded and never changed."""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vitrify.core.errors import ModelError, UsageError
from vitrify.ir import Model, Signature, Tensor
from vitrify.tflite import annotations as notes
from vitrify.tflite.buffers import BufferContents
from vitrify.tflite.decoding import Decoder
from vitrify.tflite.problems import Problems
from vitrify.tflite.schema import Record
from vitrify.tflite.subgraphs import SubgraphReader
from vitrify.tflite.tensors import Array

IDENTIFIER = b"TFL3"
SCHEMA_VERSION = 3
FILE_TENSORS = "tensors"
"""Key of ``Model.extras``: all tensors of each graph in the file's order, also those that no node uses."""


def read(path: Path | str) -> Model:
    """Read a TFLite file; constants are read-only views of the mapped file.

    Raises:
        ModelError: the file is no TFLite model, or is damaged; lists every problem found.
        UsageError: the file cannot be opened.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode) and not os.path.isdir(path):
            raise ValueError("it is a pipe or a device, not a file")     # to open a pipe would wait for its other end
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
        UnsupportedError: it is written for a newer schema.
    """
    file = np.frombuffer(data, np.uint8) if len(data) else np.empty(0, np.uint8)
    file.flags.writeable = False
    _check_identifier(file, where)
    root = Decoder(file, where).root("Model")
    if root.version != SCHEMA_VERSION:
        raise ModelError.of("tflite.version", f"schema version {root.version}, only {SCHEMA_VERSION} exists",
                            where=where, help="export the model again with a current converter")
    return _model(root, file, where)


def _check_identifier(file: Array, where: str) -> None:
    if file.size == 0:
        raise ModelError.of("tflite.empty", "the file is empty", where=where, help="export or fetch it again")
    found = file[4:8].tobytes()
    if found != IDENTIFIER:
        raise ModelError.of("tflite.identifier", f"not a TFLite model: bytes 4 to 7 are {found!r}, not {IDENTIFIER!r}",
                            where=where, why=f"the file has {file.size} bytes")


def _model(root: Record, file: Array, where: str) -> Model:
    problems = Problems(where)
    contents = BufferContents(root.buffers or [], file, problems)
    model = Model(description=root.description or "", source=where)
    readers = []
    for index, record in enumerate(root.subgraphs or ()):
        name = record.name or (f"subgraph_{index}" if index else "main")
        readers.append(SubgraphReader(record, name, root.operator_codes or [], contents, problems))
        readers[-1].read()
    model.graphs = [reader.graph for reader in readers]
    listed = [reader.tensors for reader in readers]
    if model.graphs:
        _read_signatures(model, root, listed, problems)
        _read_metadata(model, root, contents)
    else:
        problems.report("tflite.graphs", "the model has no graph", where)
    problems.raise_if_any()
    _keep_extras(model, root, listed, contents)
    notes.restore(model, where)
    return model


def _read_signatures(model: Model, root: Record, listed: list[list[Tensor]], problems: Problems) -> None:
    places = [(_places(graph.inputs), _places(graph.outputs)) for graph in model.graphs]
    for record in root.signature_defs or ():
        where, number = f"signature '{record.signature_key}'", record.subgraph_index
        if number >= len(model.graphs):
            problems.report("tflite.index", f"graph {number} of {len(model.graphs)}", where)
            continue
        ins, outs = places[number]
        inputs = _positions(record.inputs, listed[number], ins, f"{where}, input", problems)
        outputs = _positions(record.outputs, listed[number], outs, f"{where}, output", problems)
        model.signatures.append(Signature(record.signature_key or "", number, inputs, outputs))


def _places(tensors: Sequence[Tensor]) -> dict[int, int]:
    """The first place of each tensor, by its identity."""
    return {id(t): i for i, t in reversed(list(enumerate(tensors)))}


def _positions(maps: list[Record] | None, tensors: list[Tensor], places: dict[int, int], where: str,
               problems: Problems) -> dict[str, int]:
    """The places among a graph's inputs or outputs of the tensors that a signature names."""
    found: dict[str, int] = {}
    for entry in maps or ():
        tensor = tensors[entry.tensor_index] if entry.tensor_index < len(tensors) else None
        if id(tensor) in places:
            found[entry.name or ""] = places[id(tensor)]
        else:
            problems.report("tflite.signature", f"'{entry.name}' is tensor {entry.tensor_index}, which the graph does "
                            "not list", where)
    return found


def _read_metadata(model: Model, root: Record, contents: BufferContents) -> None:
    for record in root.metadata or ():
        model.metadata[record.name or ""] = contents.copy(contents.at(record.buffer, f"metadata '{record.name}'"))


def _keep_extras(model: Model, root: Record, listed: list[list[Tensor]], contents: BufferContents) -> None:
    model.extras[FILE_TENSORS] = listed
    for name in ("external_buffer_groups", "external_buffers"):
        if getattr(root, name):
            model.extras[name] = getattr(root, name)
    places = [] if root.metadata_buffer is None else root.metadata_buffer.tolist()
    if places:
        model.extras["metadata_buffer"] = [contents.copy(contents.at(place, "metadata_buffer")) for place in places]
    marks: list[int] = [graph.debug_metadata_index for graph in root.subgraphs]
    if any(mark != -1 for mark in marks):
        model.extras["debug_metadata_index"] = marks
