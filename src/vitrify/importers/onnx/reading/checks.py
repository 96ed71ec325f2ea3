"""Is it a graph at all? Names made once, nothing read that is not made, no cycles; nodes in a runnable order."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterator

from vitrify.core.errors import ModelError
from vitrify.core.findings import Finding
from vitrify.importers.onnx.source import SourceGraph, SourceNode

SHOWN = 5


def check(graph: SourceGraph) -> None:
    """Check a graph and those inside it, and put their nodes in an order in which they can run.

    Raises:
        ModelError: lists every name made twice, every name made by nobody, and every cycle.
    """
    findings = list(_check(graph, frozenset()))
    if not graph.outputs:
        findings.append(
            Finding(
                code="onnx.no-outputs",
                headline=f"the graph has {len(graph.nodes)} nodes and gives out nothing",
                where=f"graph '{graph.name}'",
                help="export the model with outputs; onnx.utils.extract_model names them too",
            )
        )
    if findings:
        raise ModelError(findings)


def _check(graph: SourceGraph, outer: frozenset[str]) -> Iterator[Finding]:
    made = Counter(o for n in graph.nodes for o in n.outputs if o)
    given = {v.name for v in graph.inputs} | graph.constants.keys()
    for name, count in made.items():
        if count > 1 or name in given:
            yield Finding(
                code="onnx.duplicate-name",
                where=f"value '{name}'",
                headline=f"'{name}' is made {count + (name in given)} times; each name may be made once",
            )
    for name, count in Counter(v.name for v in graph.inputs).items():
        if count > 1:
            yield Finding(
                code="onnx.duplicate-name", headline=f"two graph inputs are named '{name}'", where=f"input '{name}'"
            )
    known = outer | given | made.keys()
    yield from _dangling(graph, known)
    for node in graph.nodes:
        if not node.kind:
            yield Finding(
                code="onnx.invalid", headline=f"node '{node.label}' has no operator", where=f"node '{node.label}'"
            )
    for _, inner in graph.subgraphs():
        yield from _check(inner, frozenset(known))
    yield from _order(graph)


def _dangling(graph: SourceGraph, known: frozenset[str] | set[str]) -> Iterator[Finding]:
    for node in graph.nodes:
        for index, name in enumerate(node.inputs):
            if name and name not in known:
                yield Finding(
                    code="onnx.dangling-input",
                    where=f"node '{node.label}'",
                    headline=f"{node.kind} '{node.label}' reads '{name}' (input {index}), which nothing makes",
                    help="export or fetch the model again: a part of the graph is missing",
                )
    for value in graph.outputs:
        if value.name not in known:
            yield Finding(
                code="onnx.dangling-output",
                where=f"output '{value.name}'",
                headline=f"the graph's output '{value.name}' is made by nothing",
            )


def reads(node: SourceNode) -> Iterator[str]:
    """The names that a node reads, those that its subgraphs take from outside included."""
    yield from (name for name in node.inputs if name)
    for value in node.attributes.values():
        if isinstance(value, SourceGraph):
            own = value.constants.keys() | {v.name for v in value.inputs} | {o for n in value.nodes for o in n.outputs}
            yield from (name for inner in value.nodes for name in reads(inner) if name not in own)
            yield from (v.name for v in value.outputs if v.name not in own)


def _order(graph: SourceGraph) -> Iterator[Finding]:
    """Sort the nodes, keeping the file's order where it can run; report what lies on a cycle."""
    producer = {o: i for i, n in enumerate(graph.nodes) for o in n.outputs if o}
    waiting: list[int] = []
    users: dict[int, list[int]] = defaultdict(list)
    for index, node in enumerate(graph.nodes):
        sources = {producer[name] for name in reads(node) if name in producer}
        waiting.append(len(sources))
        for source in sources:
            users[source].append(index)
    ready = [i for i, count in enumerate(waiting) if count == 0]
    order: list[int] = []
    while ready:
        index = heapq.heappop(ready)
        order.append(index)
        for user in users[index]:
            waiting[user] -= 1
            if waiting[user] == 0:
                heapq.heappush(ready, user)
    if len(order) < len(graph.nodes):
        stuck = [n.label for n, count in zip(graph.nodes, waiting, strict=True) if count > 0]
        shown = ", ".join(map(repr, stuck[:SHOWN])) + (f" and {len(stuck) - SHOWN} more" if len(stuck) > SHOWN else "")
        yield Finding(
            code="onnx.cycle",
            headline=f"the graph has a cycle: {shown} wait for each other",
            where=f"node '{stuck[0]}'",
            help="export or fetch the model again: no runtime can order these nodes",
        )
        return
    graph.nodes = [graph.nodes[i] for i in order]


def needed(graph: SourceGraph) -> list[SourceNode]:
    """The nodes, in order, on which the graph's outputs depend; what they make and nobody reads loses its name."""
    wanted = {v.name for v in graph.outputs}
    kept: list[SourceNode] = []
    for node in reversed(graph.nodes):
        if not wanted.isdisjoint(node.outputs):
            node.outputs = [name if name in wanted else "" for name in node.outputs]
            kept.append(node)
            wanted.update(reads(node))
    return kept[::-1]
