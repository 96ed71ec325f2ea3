"""What in TensorFlow's graph no converter can express: told by name before any is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vitrify.core.errors import UnsupportedError
from vitrify.core.findings import Finding

_SHOWN = 8
_TABLES = ("HashTable", "HashTableV2", "MutableHashTable", "MutableHashTableV2", "LookupTableFind", "LookupTableFindV2",
           "LookupTableImportV2", "InitializeTableFromTextFileV2", "AnonymousHashTable")
_STATES = ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp", "ResourceScatterUpdate",
           "ResourceScatterAdd")
_RAGGED = ("RaggedTensorToTensor", "RaggedTensorToVariant", "RaggedTensorFromVariant", "RaggedGather", "RaggedRange")
_KINDS = (
    ("tf.table", _TABLES, "looks words up in tables",
     "do the look-up in the application and give the model its numbers"),
    ("tf.state", _STATES, "writes variables while it runs",
     "make the state an input and an output of the signature, and carry it in the application"),
    ("tf.ragged", _RAGGED, "computes with ragged tensors",
     "give tensors of one length: tf.RaggedTensor.to_tensor(shape=...)"),
)


def refuse_operators(label: str, graph_def: Any, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
    """Refuse strings, tables, state and ragged tensors.

    Args:
        label: names the model.
        graph_def: the graph, with variables that are only read as constants.
        inputs, outputs: TensorSpecs or tensors by name.
    Raises:
        UnsupportedError: there are some; names every input and node.
    """
    problems = [*_strings("input", inputs), *_strings("output", outputs)]
    nodes = list(_nodes(graph_def))
    for code, kinds, what, help in _KINDS:
        found = [f"{node.op} '{node.name}'" for node in nodes if node.op in kinds]
        if found:
            more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            problems.append(Finding(code=code, where=f"nodes {', '.join(found[:_SHOWN])}{more}",
                                    headline=f"'{label}' {what}: {len(found)} node{'s' * (len(found) > 1)}",
                                    why="a graph of tensors on an NPU has nothing of the kind", help=help))
    if problems:
        raise UnsupportedError(problems)


def _strings(side: str, values: dict[str, Any]) -> Iterator[Finding]:
    for name, value in values.items():
        if value.dtype.name in ("string", "variant", "resource"):
            yield Finding(code="tf.type", where=f"{side} '{name}'", headline=f"{side} '{name}' is a {value.dtype.name}",
                          why="an NPU computes with numbers",
                          help="save a signature that begins behind the decoding of strings, with numbers as its input")


def _nodes(graph_def: Any) -> Iterator[Any]:
    yield from graph_def.node
    for function in graph_def.library.function:
        yield from function.node_def
