"""Checks that a graph is whole: links agree at both ends, order is runnable, shapes fit their data."""

from __future__ import annotations

from vitrify.core.errors import ModelError
from vitrify.core.findings import Finding
from vitrify.ir.graph import Graph, Model, Tensor


def problems(graph: Graph) -> list[Finding]:
    """Return every broken invariant of ``graph``; empty when it is whole."""
    return [] if _is_whole(graph) else _broken(graph)


def _is_whole(graph: Graph) -> bool:
    """The same checks as ``_broken`` makes, without words: asked after every pass, and nearly always true."""
    known: set[Tensor | None] = {None, *graph.inputs}
    met = set(graph.inputs)
    reads = 0
    for node in graph:
        for index, tensor in enumerate(node.inputs):
            if tensor is None:
                continue
            reads += 1
            if not tensor.is_read_by(node, index):
                return False
            if tensor not in known:
                if tensor.producer is not None or not _is_given(tensor) or not _fits_data(tensor):
                    return False
                known.add(tensor)
                met.add(tensor)
        for tensor in node.outputs:
            if tensor.producer is not node or not _fits_data(tensor):
                return False
            known.add(tensor)
            met.add(tensor)
    met.update(graph.outputs)
    # Each place that reads knows itself, so equal counts say that no tensor knows of others.
    return (sum(tensor.use_count for tensor in met) == reads and all(map(_fits_data, graph.inputs))
            and all(t in known or (t.is_constant and _fits_data(t)) for t in graph.outputs))


def _is_given(tensor: Tensor) -> bool:
    return tensor.is_constant or tensor.is_variable or "scratch" in tensor.extras


def _fits_data(tensor: Tensor) -> bool:
    dense = tensor.dtype.numpy is not None and "sparsity" not in tensor.extras
    return tensor.data is None or not dense or tensor.data.shape == tensor.shape


def _broken(graph: Graph) -> list[Finding]:
    found: list[Finding] = []

    def report(headline: str, where: str) -> None:
        found.append(Finding(code="ir.invalid", headline=headline, where=where))

    made = {id(t) for t in graph.inputs}
    in_graph = set(map(id, graph))
    for node in graph:
        where = f"node '{node.name}' ({node.op.kind})"
        for index, tensor in enumerate(node.inputs):
            if tensor is None:
                continue
            if not tensor.is_read_by(node, index):
                report(f"input {index} '{tensor.name}' does not know that it is read", where)
            if tensor.producer is not None and id(tensor) not in made:
                report(f"input '{tensor.name}' is read before it is made", where)
            if tensor.producer is None and not _is_given(tensor) and id(tensor) not in made:
                report(f"input '{tensor.name}' is made by nobody", where)
        for tensor in node.outputs:
            if tensor.producer is not node:
                report(f"output '{tensor.name}' does not know its producer", where)
            made.add(id(tensor))
    for tensor in graph.tensors():
        for user, _ in tensor.uses:
            if id(user) not in in_graph:
                report(f"'{tensor.name}' is read by '{user.name}', which is not in the graph", tensor.name)
        if tensor.data is not None and not _fits_data(tensor):
            report(f"data of shape {tensor.data.shape} in a tensor of shape {tensor.shape}", tensor.name)
    for tensor in graph.outputs:
        if id(tensor) not in made and not tensor.is_constant:
            report(f"output '{tensor.name}' is made by nobody", graph.name)
    return found


def validate(model: Model | Graph) -> None:
    """Check a model or one graph.

    Raises:
        ModelError: lists every problem found.
    """
    graphs = model.graphs if isinstance(model, Model) else [model]
    found = [finding for graph in graphs for finding in problems(graph)]
    if found:
        raise ModelError(found)
