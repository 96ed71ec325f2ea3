"""The one registration of nodes that decide what is computed: branches, rounds of loops, elements of sequences.

All of it is settled at import: what reaches the graph are the operators of the branches and rounds that are taken.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from vitrify.core.errors import UnsupportedError, VitrifyError
from vitrify.importers.onnx.budget import Budget
from vitrify.importers.onnx.bundles import Absent, Bundle
from vitrify.importers.onnx.context import POISON, Context
from vitrify.importers.onnx.source import Array, SourceGraph, SourceNode
from vitrify.ir import Tensor
from vitrify.ops.cost import operations

MOST_COMPUTED = 1000
"""Tensors computed for one condition."""


class Walk(Protocol):
    """What control flow needs of the walk over the graph."""

    context: Context
    errors: list[VitrifyError]

    def run(self, graph: SourceGraph) -> None:
        """Fold or lower every node that the graph's outputs depend on."""


Control = Callable[[Walk, SourceNode], None]
CONTROL: dict[str, Control] = {}
"""Every kind of control flow by ONNX operator name; filled by ``@control`` alone."""


def control(*kinds: str) -> Callable[[Control], Control]:
    """Register a function that carries the nodes of ``kinds`` out.

    Raises:
        TypeError: a kind is registered already.
    """

    def register(function: Control) -> Control:
        for kind in kinds:
            if kind in CONTROL:
                raise TypeError(f"{kind} is carried out twice: in {CONTROL[kind].__module__} and {function.__module__}")
            CONTROL[kind] = function
        return function

    return register


def carry_out(walk: Walk, node: SourceNode) -> bool:
    """Carry a node out if that is control flow, or passes on what is no tensor; False leaves it to the lowerings."""
    found = [walk.context.values[name] for name in node.inputs if name]
    special = any(isinstance(value, Bundle | Absent) for value in found)
    if node.domain or not (node.kind in CONTROL or (special and node.kind == "Identity")):
        if special:
            raise node.problem("an input is a sequence or an optional; the operator takes tensors")
        return False
    if node.kind == "Identity":
        give(walk, node, found)
    else:
        CONTROL[node.kind](walk, node)
    return True


def poison(walk: Walk, node: SourceNode) -> None:
    """Mark the node's outputs as not made."""
    walk.context.values.update((name, POISON) for name in node.outputs if name)


def give(walk: Walk, node: SourceNode, results: Sequence[Any]) -> None:
    """Give the node's outputs their values, whatever those are.

    Raises:
        ModelError: there are fewer values than outputs that somebody reads.
    """
    if any(node.outputs[len(results) :]):
        raise node.problem(f"it has {len(node.outputs)} outputs, and {len(results)} values are made for it")
    poison(walk, node)
    for name, result in zip(node.outputs, results, strict=False):
        if name and isinstance(result, Tensor | np.ndarray):
            walk.context.bind(replace(node, outputs=[name]), result)
        elif name:
            walk.context.values[name] = result


def inner(walk: Walk, graph: SourceGraph, given: Mapping[str, Any]) -> list[Any]:
    """Run a subgraph on given inputs and return its outputs' values; names from outside are seen, not changed."""
    context = walk.context
    outer, node = context.values, context.node
    context.values = ChainMap(dict(given), outer)
    try:
        walk.run(graph)
        return [context.values[value.name] for value in graph.outputs]
    finally:
        context.values = outer
        if node is not None:
            context.begin(node)


def settled(value: Tensor | Array, budget: Budget) -> Tensor | Array:
    """The value as an array when no input of the graph has a part in it, although operators compute it."""
    if not isinstance(value, Tensor):
        return value
    made: dict[Tensor, Array] = {}
    waiting = [value]
    while waiting:
        tensor = waiting[-1]
        if tensor in made:
            waiting.pop()
            continue
        node = tensor.producer
        if tensor.data is not None:
            made[tensor] = tensor.data
        elif node is None or len(made) > MOST_COMPUTED:
            return value
        elif missing := [t for t in node.inputs if t is not None and t not in made]:
            waiting += missing
        elif not budget.takes(operations(node)):
            return value
        else:
            try:
                results = node.op.evaluate([None if t is None else made[t] for t in node.inputs])
            except VitrifyError:  # no reference for this operator: it is as good as computed at run time
                return value
            made.update(zip(node.outputs, results, strict=True))
    return made[value]


def as_flag(node: SourceNode, value: Array, what: str) -> bool:
    """A known condition.

    Raises:
        ModelError: it is not one value.
    """
    if value.size != 1:
        raise node.problem(f"{what} has {value.size} values; it must be one")
    return bool(value.reshape(-1)[0])


def size_of(graph: SourceGraph) -> int:
    """The nodes of a graph and of those inside it."""
    return len(graph.nodes) + sum(size_of(sub) for _, sub in graph.subgraphs())


def open_condition(walk: Walk, node: SourceNode, condition: Tensor, what: str) -> UnsupportedError:
    """Say which of the graph's inputs decide: fixing them is what helps."""
    reached: dict[Tensor, None] = {condition: None}
    for tensor in (waiting := [condition]):
        fresh = [t for t in (tensor.producer.inputs if tensor.producer else ()) if t is not None and t not in reached]
        reached.update(dict.fromkeys(fresh))
        waiting += fresh
    names = [t.name for t in walk.context.graph.inputs if t in reached]
    deciding = ", ".join(map(repr, names))
    options = " ".join(f"--value {name}=..." for name in names)
    values = ", ".join(f"{name!r}: ..." for name in names)
    return node.unsupported(
        f"{what} is computed at run time" + (f", from input {deciding}" if names else ""),
        f"fix what decides it: {options}, or vitrify.load(path, values={{{values}}}); or export the model for one case"
        if names
        else "export the model for one case",
    )
