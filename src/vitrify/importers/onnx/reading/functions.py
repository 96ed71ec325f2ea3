"""Functions: calls replaced by the nodes of the body, for a model's own functions before anything else is done.

The nodes put in keep their names behind the call's, so that messages and origins lead to the user's file. A call that
has a lowering of its own is left alone: the lowering is the better form.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from vitrify.core.errors import ModelError, UnsupportedError
from vitrify.importers.onnx.registry import LOWERINGS
from vitrify.importers.onnx.source import (
    AttributeReference,
    FunctionKey,
    SourceFunction,
    SourceGraph,
    SourceModel,
    SourceNode,
    constant_value,
)

MOST_NODES = 200_000
"""Of a model whose calls are replaced: a few functions that call each other twice make any number of nodes."""


def put_in(model: SourceModel) -> None:
    """Replace every call of the model's own functions, also in functions and in subgraphs, in place.

    Raises:
        ModelError: functions call each other in a circle, or a call does not fit.
        UnsupportedError: that makes more than ``MOST_NODES`` nodes.
    """
    functions = {key: f for key, f in model.functions.items() if _name(key) not in LOWERINGS}
    if not functions:
        return
    sizes = _sizes(functions, model.path)
    count = sum(sizes.get(_key(node), 1) for node in _all_nodes(model.graph))
    if count > MOST_NODES:
        raise UnsupportedError.of(
            "onnx.functions",
            f"putting in the model's functions makes {count:,} nodes, at most {MOST_NODES:,} are taken",
            where=model.path,
            help="export the model without functions; onnx.inliner.inline_local_functions puts them in as well",
        )
    _expand(model.graph, functions)


def body_of(function: SourceFunction, call: SourceNode, inside: SourceNode | None = None) -> SourceGraph:
    """The body for one call: the call's names for inputs and outputs, its attributes, own names for the rest.

    Raises:
        ModelError: the call has more inputs or outputs than the function.
    """
    body = function.body
    if len(call.inputs) > len(body.inputs) or len(call.outputs) > len(body.outputs):
        raise call.problem(
            f"it has {len(call.inputs)} inputs and {len(call.outputs)} outputs; "
            f"the function takes {len(body.inputs)} and gives {len(body.outputs)}"
        )
    names = {value.name: "" for value in body.inputs}
    names.update(zip(names, call.inputs, strict=False))
    made = SourceGraph(body.name)
    for index, value in enumerate(body.outputs):
        wanted = call.outputs[index] if index < len(call.outputs) else ""
        if wanted and value.name in names:  # an input passed through, or one value given out twice
            made.nodes.append(SourceNode("Identity", call.name, [names[value.name]], [wanted], {}, inside=inside))
        elif wanted:
            names[value.name] = wanted
    made.outputs = [replace(value, name=name) for value, name in zip(body.outputs, call.outputs, strict=False) if name]
    attributes = {**function.defaults, **call.attributes}
    made.nodes[:0] = _copied(body, made, _Scope(call, names, attributes, inside))
    return made


class _Scope:
    """One call: what names and attributes of the body stand for. ``inside`` is told to messages instead of a name."""

    def __init__(
        self, call: SourceNode, names: dict[str, str], attributes: Mapping[str, Any], inside: SourceNode | None
    ) -> None:
        self.call = call
        self.names = names
        self.attributes = attributes
        self.inside = inside
        self.prefix = next((o for o in call.outputs if o), call.label)

    def own(self, name: str) -> str:
        """The name that a value made in the body has in the graph."""
        return self.names.setdefault(name, f"{self.prefix}/{name}" if name else "")


def _copied(graph: SourceGraph, made: SourceGraph, scope: _Scope) -> list[SourceNode]:
    """Copy a graph's nodes and constants into ``made``'s scope; the nodes are returned."""
    for name in (*graph.constants, *(o for node in graph.nodes for o in node.outputs)):
        scope.own(name)
    made.constants.update({scope.names[name]: array for name, array in graph.constants.items()})
    nodes: list[SourceNode] = []
    for node in graph.nodes:
        attributes = {name: _attribute(value, scope) for name, value in node.attributes.items()}
        copy = replace(
            node,
            name=f"{scope.call.label}/{node.label}",
            inputs=[scope.names.get(name, name) for name in node.inputs],
            outputs=[scope.names[name] for name in node.outputs],
            attributes={name: value for name, value in attributes.items() if value is not None},
            inside=scope.inside,
        )
        value = constant_value(copy) if copy.kind == "Constant" and not copy.domain else None
        if value is not None and len(copy.outputs) == 1:
            made.constants[copy.outputs[0]] = value
        else:
            nodes.append(copy)
    return nodes


def _attribute(value: Any, scope: _Scope) -> Any:
    """An attribute as this call has it; None when it refers to one that the call leaves out."""
    if isinstance(value, AttributeReference):
        return scope.attributes.get(value.name)
    if not isinstance(value, SourceGraph):
        return value
    inner = _Scope(scope.call, dict(scope.names), scope.attributes, scope.inside)
    for given in value.inputs:
        inner.names[given.name] = f"{scope.prefix}/{given.name}"
    made = SourceGraph(value.name)
    made.nodes = _copied(value, made, inner)
    made.inputs = [replace(given, name=inner.names[given.name]) for given in value.inputs]
    made.outputs = [replace(result, name=inner.names.get(result.name, result.name)) for result in value.outputs]
    return made


def _expand(graph: SourceGraph, functions: Mapping[FunctionKey, SourceFunction]) -> None:
    waiting = graph.nodes[::-1]
    graph.nodes = []
    while waiting:
        node = waiting.pop()
        function = functions.get(_key(node))
        if function is not None:
            body = body_of(function, node)
            graph.constants.update(body.constants)
            waiting += body.nodes[::-1]
            continue
        for value in node.attributes.values():
            if isinstance(value, SourceGraph):
                _expand(value, functions)
        graph.nodes.append(node)


def _key(node: SourceNode) -> FunctionKey:
    return node.domain, node.kind, node.overload


def _name(key: FunctionKey) -> str:
    return f"{key[0]}::{key[1]}" if key[0] else key[1]


def _all_nodes(graph: SourceGraph) -> Iterator[SourceNode]:
    for node in graph.nodes:
        yield node
        for value in node.attributes.values():
            if isinstance(value, SourceGraph):
                yield from _all_nodes(value)


def _sizes(functions: Mapping[FunctionKey, SourceFunction], path: str) -> dict[FunctionKey, int]:
    """How many nodes each function is made of, calls within it counted as what they call."""
    calls = {key: [_key(node) for node in _all_nodes(f.body)] for key, f in functions.items()}
    callers: dict[FunctionKey, list[FunctionKey]] = defaultdict(list)
    for key, called in calls.items():
        for other in {other for other in called if other in calls}:
            callers[other].append(key)
    waiting = {key: len({other for other in called if other in calls}) for key, called in calls.items()}
    ready = [key for key, count in waiting.items() if count == 0]
    sizes: dict[FunctionKey, int] = {}
    for key in ready:
        sizes[key] = 1 + sum(sizes.get(other, 1) for other in calls[key])
        for caller in callers[key]:
            waiting[caller] -= 1
            if waiting[caller] == 0:
                ready.append(caller)
    stuck = [name for _, name, _ in calls.keys() - sizes.keys()]
    if stuck:
        names = ", ".join(map(repr, sorted(stuck)))
        raise ModelError.of("onnx.functions", f"the model's functions {names} call each other in a circle", where=path)
    return sizes
