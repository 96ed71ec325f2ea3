"""What is inside a converted file: its Neutron graphs, which nodes of the model went into each, and what is left."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from vitrify.ir import Graph, Model, Node, Tensor
from vitrify.ops import Custom
from vitrify.targets.placement import Place

NPU_OPERATOR = "NeutronGraph"


@dataclass
class NeutronGraph:
    """One Neutron graph: its tensors that the model has too, and the model's nodes in it, in running order.

    Beside them it reads microcode, weights and kernels, which are constants, and writes a scratch area.
    Source: nxp-imx tflite-neutron-delegate.
    """

    node: Node
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: list[Node] = field(default_factory=list)


@dataclass
class Placed:
    """Where each node of the model went. ``groups`` numbers the Neutron graph of those on the NPU."""

    graphs: list[NeutronGraph]
    places: dict[Node, Place]
    groups: dict[Node, int]
    left: int
    unmapped: int


def neutron_graphs(model: Model) -> list[Node]:
    """Return the NeutronGraph operators of a file's main graph, in running order."""
    return [node for node in model.main if isinstance(node.op, Custom) and node.op.custom_code == NPU_OPERATOR]


def place_nodes(source: Graph, compiled: Model) -> Placed:
    """Trace every node of ``source`` in the file that was made of it, by the names of tensors."""
    known = {tensor.name: tensor for tensor in source.tensors() if not tensor.is_constant}
    graphs = [_graph(node, known) for node in neutron_graphs(compiled)]
    inside = {graph.node for graph in graphs}
    beside = Counter(_face(node) for node in compiled.main if node not in inside)
    left = sum(beside.values())
    places: dict[Node, Place] = {}
    for node in source:
        if beside[_face(node)] > 0:
            beside[_face(node)] -= 1
            places[node] = "cpu"
    groups: dict[Node, int] = {}
    for number, graph in enumerate(graphs):
        for node in _between(graph, known):
            if node not in places:
                places[node], groups[node] = "npu", number
    unmapped = sum(not graph.outputs for graph in graphs)
    rest: Place = "npu" if unmapped else "folded"
    for node in source:
        places.setdefault(node, rest)
        if places[node] == "npu":
            number = groups.setdefault(node, next((n for n, g in enumerate(graphs) if not g.outputs), 0))
            graphs[number].nodes.append(node)
    return Placed(graphs, places, groups, left, unmapped)


def npu_bytes(path: Path, compiled: Model) -> int:
    """Return the bytes of the constants that the Neutron graphs read: microcode, weights, kernels."""
    return sum(tensor.nbytes for node in neutron_graphs(compiled) for tensor in node.inputs
               if tensor is not None and tensor.is_constant)


def _graph(node: Node, known: dict[str, Tensor]) -> NeutronGraph:
    inputs = tuple(tensor.name for tensor in node.inputs if tensor is not None and tensor.name in known)
    return NeutronGraph(node, inputs, tuple(tensor.name for tensor in node.outputs if tensor.name in known))


def _face(node: Node) -> tuple[str, str]:
    """What a node that was passed through looks like in both files."""
    return node.op.kind, next((tensor.name for tensor in node.outputs), "")


def _between(graph: NeutronGraph, known: dict[str, Tensor]) -> list[Node]:
    """The nodes that make the graph's outputs of its inputs."""
    found: dict[Node, None] = {}
    ends = set(graph.inputs)
    waiting = [known[name] for name in graph.outputs]
    while waiting:
        tensor = waiting.pop()
        node = tensor.producer
        if node is None or tensor.name in ends or node in found:
            continue
        found[node] = None
        waiting += [one for one in node.inputs if one is not None]
    return list(found)
