"""The state of a model's graphs before a pass, so that a pass can be undone."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, NamedTuple

from vitrify.ir import Graph, Model, Node, Operator, Origin, Tensor

FIELDS = ("name", "dtype", "shape", "data", "quantization", "origin", "is_variable", "shape_signature")
VALUES = attrgetter(*FIELDS)


class _Node(NamedTuple):
    op: Operator
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]
    name: str
    origin: Origin
    extras: dict[str, Any]


class _Graph(NamedTuple):
    graph: Graph
    inputs: list[Tensor]
    outputs: tuple[Tensor, ...]
    nodes: list[_Node]
    tensors: list[tuple[Tensor, tuple[Any, ...]]]


class Snapshot:
    """What ``restore`` brings back: nodes, links, the tensors' fields and the interface. Data is not copied."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.interface = model.interface
        self.graphs = [_record(graph) for graph in model.graphs]

    def restore(self) -> None:
        """Put every graph back to what it was; nodes are made anew."""
        self.model.interface = self.interface
        for saved in self.graphs:
            graph = saved.graph
            graph.set_outputs(())
            for node in reversed(graph.nodes):
                _detach(graph, node)
            for tensor, values in saved.tensors:
                for name, value in zip(FIELDS, values, strict=True):
                    setattr(tensor, name, value)
            graph.inputs = list(saved.inputs)
            for one in saved.nodes:
                made = graph.add(one.op, one.inputs, one.outputs, name=one.name, origin=one.origin)
                made.extras = dict(one.extras)
            graph.set_outputs(saved.outputs)


def _record(graph: Graph) -> _Graph:
    nodes = [_Node(n.op, n.inputs, n.outputs, n.name, n.origin, dict(n.extras) if n.extras else {}) for n in graph]
    tensors = [(t, VALUES(t)) for t in graph.tensors()]
    return _Graph(graph, list(graph.inputs), graph.outputs, nodes, tensors)


def _detach(graph: Graph, node: Node) -> None:
    """Remove a node although the graph around it may be broken: readers of its outputs are cut first."""
    for tensor in node.outputs:
        for user, index in tensor.uses:
            graph.set_input(user, index, None)
    graph.remove(node)
