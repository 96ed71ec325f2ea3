"""An ONNX file as plain objects (``SourceModel``). Nothing of the file is trusted before it is checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitrify.core.errors import ModelError, UnsupportedError, VitrifyError
from vitrify.core.findings import Finding
from vitrify.importers.onnx.packed import BITS
from vitrify.importers.onnx.reading.tensors import DTYPES, NAMES, Array, text, to_array
from vitrify.importers.onnx.reading.weights import mapped
from vitrify.importers.onnx.source import (
    AttributeReference,
    FunctionKey,
    SourceFunction,
    SourceGraph,
    SourceModel,
    SourceNode,
    SourceValue,
    constant_value,
)

MAX_BYTES = 2**31 - 1  # protobuf's own limit for one message
OLDEST_OPSET = 7
_OWN_DOMAINS = ("", "ai.onnx")
_SCOPES = "pkg.torch.onnx.name_scopes"
_QUOTED = re.compile(r"'([^']*)'")
# AttributeProto.AttributeType. Source: onnx.proto.
_FLOAT, _INT, _STRING, _TENSOR, _GRAPH, _FLOATS, _INTS, _STRINGS, _TENSORS = range(1, 10)


def read(path: Path) -> SourceModel:
    """Read an ONNX file.

    Raises:
        ModelError: the file is damaged; lists every broken tensor.
        UnsupportedError: the file's operator set is too old.
    """
    proto, weights = _parse(path)
    opset = _opset(proto, path)
    reader = Reader(path.resolve().parent, opset)
    graph = reader.graph(proto.graph, weights)
    functions = {reader.key(f): reader.function(f) for f in proto.functions}
    if reader.findings:
        raise ModelError(reader.findings)
    return SourceModel(
        str(path),
        graph,
        opset,
        text(proto.producer_name),
        text(proto.doc_string),
        {text(p.key): text(p.value) for p in proto.metadata_props},
        functions,
        reader.types,
    )


def metadata(path: Path) -> dict[str, str]:
    """Return what an ONNX file says of itself, by key.

    Raises:
        ModelError: the file is damaged.
    """
    return {text(p.key): text(p.value) for p in _parse(path)[0].metadata_props}


def _parse(path: Path) -> tuple[Any, dict[int, Array]]:
    """Return the message, and the initializers' data that stayed in the file, by their number."""
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    from vitrify.importers.onnx.reading.messages import model_proto

    def damaged(headline: str) -> VitrifyError:
        return ModelError.of("onnx.damaged", headline, where=str(path), help="export or fetch the model again")

    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise ModelError.of(
                "onnx.too-large",
                f"'{path}' has {size} bytes, an ONNX file is at most {MAX_BYTES}",
                where=str(path),
                help="save it with external data: onnx.save(model, path, save_as_external_data=True)",
            )
        message, weights = mapped(path)
        proto = model_proto().FromString(message)
    except OSError as error:
        raise damaged(f"cannot read '{path}': {error.strerror or error}") from error
    except DecodeError as error:
        raise damaged(f"'{path}' is not an ONNX model, or is cut off: {error}") from error
    if not proto.HasField("graph") or not (proto.graph.node or proto.graph.output):
        raise damaged(f"'{path}' is not an ONNX model: there is no graph in it")
    return proto, weights


def _module_path(proto: Any) -> str:
    """The module that a node of PyTorch's exporter belongs to, with a slash; its name says only operator and number.

    Source: torch/onnx/_internal/exporter/_core.py, metadata ``pkg.torch.onnx.name_scopes``: the names from the root
    module to the operator, as a list of Python strings, each but the last with those before it.
    """
    for entry in proto.metadata_props:
        if entry.key == _SCOPES:
            scopes = _QUOTED.findall(text(entry.value))
            path = next((scope for scope in reversed(scopes[:-1]) if scope), "")
            return f"{path}/" if path else ""
    return ""


def _opset(proto: Any, path: Path) -> int:
    opset = next((int(o.version) for o in proto.opset_import if text(o.domain) in _OWN_DOMAINS), 0)
    if opset == 0:
        raise ModelError.of(
            "onnx.opset",
            "the model does not say which ONNX operator set it uses",
            where=str(path),
            help="set opset_import: onnx.helper.make_opsetid('', 17)",
        )
    if opset < OLDEST_OPSET:
        raise UnsupportedError.of(
            "onnx.opset",
            f"the model uses ONNX operator set {opset}, the oldest read is {OLDEST_OPSET}",
            where=str(path),
            help="onnx.version_converter.convert_version(model, 17)",
        )
    return opset


class Reader:
    """Turns protobuf messages into plain objects, and collects what is wrong with them."""

    def __init__(self, folder: Path, opset: int) -> None:
        self.folder = folder
        self.opset = opset
        self.types: dict[str, str] = {}
        self.findings: list[Finding] = []
        self._inside = 0  # how deep in subgraphs, which may hand sequences and optionals on

    def graph(self, proto: Any, weights: Mapping[int, Array] | None = None) -> SourceGraph:
        """A ``GraphProto`` with its initializers; ``weights`` holds the data of those that were left in the file."""
        graph = SourceGraph(text(proto.name))
        for number, tensor in enumerate(proto.initializer):
            name = text(tensor.name)
            if name in graph.constants:
                self.findings.append(
                    Finding(
                        code="onnx.duplicate-name",
                        headline=f"two initializers are named '{name}'",
                        where=f"tensor '{name}'",
                    )
                )
            self._tensor(tensor, graph.constants, name, (weights or {}).get(number))
        for sparse in proto.sparse_initializer:
            name = text(sparse.values.name)
            self.findings.append(
                Finding(
                    code="onnx.sparse",
                    headline=f"initializer '{name}' is sparse, which is not read",
                    where=f"tensor '{name}'",
                    help="store it dense",
                )
            )
        graph.inputs = [self._value(v) for v in proto.input if text(v.name) not in graph.constants]
        graph.outputs = [self._value(v) for v in proto.output]
        for node in proto.node:
            self._node(node, graph)
        return graph

    def key(self, proto: Any) -> FunctionKey:
        """What calls of a function name: domain, name, overload."""
        domain = text(proto.domain)
        return "" if domain in _OWN_DOMAINS else domain, text(proto.name), text(proto.overload)

    def function(self, proto: Any) -> SourceFunction:
        """A ``FunctionProto``: its body, in the operator set that it names, and the defaults of its attributes."""
        outer = self.opset
        self.opset = next((int(o.version) for o in proto.opset_import if text(o.domain) in _OWN_DOMAINS), outer)
        body = SourceGraph(text(proto.name))
        body.inputs = [SourceValue(text(name), "", None) for name in proto.input]
        body.outputs = [SourceValue(text(name), "", None) for name in proto.output]
        for inner in proto.node:
            self._node(inner, body)
        defaults = SourceNode(text(proto.name), "", [], [], {})
        for attribute in proto.attribute_proto:
            self.attribute(attribute, defaults)
        self.opset = outer
        return SourceFunction(body, defaults.attributes)

    def _tensor(self, proto: Any, into: dict[str, Any], name: str, raw: Array | None = None, of: str = "") -> None:
        """Put the tensor ``into`` something under ``name``; ``of`` is the value that it is, when that has another."""
        try:
            into[name] = to_array(proto, self.folder, raw)
            if proto.data_type in BITS:
                self.types[of or name] = NAMES[proto.data_type]
        except ModelError as error:
            self.findings += error.findings

    def _value(self, proto: Any) -> SourceValue:
        name = text(proto.name)
        kind = proto.type.WhichOneof("value")
        if self._inside and kind in ("sequence_type", "optional_type"):
            return SourceValue(name, "", None)
        if kind not in ("tensor_type", None):
            self.findings.append(
                Finding(
                    code="onnx.value-type",
                    where=f"value '{name}'",
                    headline=f"'{name}' is no tensor but a {kind.removesuffix('_type')}",
                )
            )
            return SourceValue(name, "", None)
        tensor = proto.type.tensor_type
        dtype = DTYPES.get(tensor.elem_type) or NAMES.get(tensor.elem_type, "")
        if not tensor.HasField("shape"):
            return SourceValue(name, dtype, None)
        dims: list[int | str | None] = []
        for dim in tensor.shape.dim:
            symbol = text(dim.dim_param)
            # Some exporters write -1 for "unknown"; what 0 means is asked.
            dims.append(
                symbol or None if dim.WhichOneof("value") != "dim_value" or dim.dim_value < 0 else int(dim.dim_value)
            )
        return SourceValue(name, dtype, dims)

    def _node(self, proto: Any, graph: SourceGraph) -> None:
        domain = text(proto.domain)
        node = SourceNode(
            text(proto.op_type),
            _module_path(proto) + text(proto.name),
            [text(i) for i in proto.input],
            [text(o) for o in proto.output],
            {},
            "" if domain in _OWN_DOMAINS else domain,
            self.opset,
            overload=text(proto.overload),
        )
        before = len(self.findings)
        for attribute in proto.attribute:
            self.attribute(attribute, node)
        constant = node.kind == "Constant" and not node.domain and len(node.outputs) == 1
        if constant and not any(isinstance(value, AttributeReference) for value in node.attributes.values()):
            self._constant(node, graph, len(self.findings) > before)
        else:
            graph.nodes.append(node)

    def attribute(self, proto: Any, node: SourceNode) -> None:
        """An ``AttributeProto`` as a Python value among the node's attributes."""
        name, kind = text(proto.name), proto.type
        if proto.ref_attr_name:
            node.attributes[name] = AttributeReference(text(proto.ref_attr_name))
        elif kind == _TENSOR:
            self._tensor(proto.t, node.attributes, name, of=node.outputs[0] if node.outputs else "")
        elif kind == _GRAPH:
            self._inside += 1
            node.attributes[name] = self.graph(proto.g)
            self._inside -= 1
        elif kind in (_FLOAT, _INT):
            node.attributes[name] = float(proto.f) if kind == _FLOAT else int(proto.i)
        elif kind == _STRING:
            node.attributes[name] = text(proto.s)
        elif kind in (_FLOATS, _INTS):
            node.attributes[name] = list(proto.floats if kind == _FLOATS else proto.ints)
        elif kind == _STRINGS:
            node.attributes[name] = [text(s) for s in proto.strings]
        else:
            self.findings.append(
                Finding(
                    code="onnx.attribute-type",
                    where=f"node '{node.label}'",
                    headline=f"attribute '{name}' of {node.kind} '{node.label}' has the type {kind}, which is not read",
                )
            )

    def _constant(self, node: SourceNode, graph: SourceGraph, reported: bool) -> None:
        """A Constant node is an initializer among the nodes; ``reported``: its attribute is a finding already."""
        name = node.outputs[0]
        value = constant_value(node)
        where = f"node '{node.label}'"
        if name in graph.constants:
            headline = f"two constants are named '{name}'"
            self.findings.append(Finding(code="onnx.duplicate-name", headline=headline, where=where))
        if value is not None:
            graph.constants[name] = value
        elif not reported:
            headline = f"Constant '{node.label}' holds no number"
            self.findings.append(Finding(code="onnx.constant", headline=headline, where=where))
