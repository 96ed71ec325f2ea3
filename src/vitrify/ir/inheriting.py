"""Origins for what was made without one: a tensor has that of its maker, a constant that of its readers."""

from __future__ import annotations

from vitrify.ir.graph import Graph
from vitrify.ir.origin import join


def inherit_origins(graph: Graph) -> None:
    """Give every tensor and node without an origin that of what stands next to it.

    The sources are nodes, not tensors: a value that the source model has nowhere is not mistaken for one of its own.
    """
    for node in graph:
        if not node.origin.sources:
            beside = [t.origin for t in (*node.outputs, *(t for t in node.inputs if t is not None))]
            node.origin = join([node.origin, *beside])
    for tensor in graph.tensors():
        if tensor.origin.sources:
            continue
        made_of = [tensor.producer] if tensor.producer is not None else tensor.users
        tensor.origin = join([tensor.origin, *(node.origin for node in made_of)])
