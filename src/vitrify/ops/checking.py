"""Checks a graph for what the runtime would refuse, die of, or silently get wrong."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.core.findings import Finding
from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Graph, Node
from vitrify.ops.legality import broken_rules, finding, quantized


def check_node(node: Node) -> list[Finding]:
    """Return what the operator itself has to say about one node, and where the node breaks its int8 rule."""
    return [*node.op.check(node), *_int8(node)]


def check_graph(graph: Graph) -> list[Finding]:
    """Return the findings of all nodes, in order."""
    return [found for node in graph for found in check_node(node)]


def _int8(node: Node) -> Iterator[Finding]:
    if node.op.int8 is not None:
        yield from broken_rules(node, node.op.int8)
    elif node.op.int8_problem:
        for tensor in (*node.inputs, *node.outputs):
            if tensor is not None and tensor.dtype is DType.INT8 and quantized(tensor) is not None:
                yield finding(node, "ops.no_int8", f"is int8 (tensor '{tensor.name}'), but the runtime "
                              f"{node.op.int8_problem}",
                              help="keep this node in float, or write it with other operators")
                return
