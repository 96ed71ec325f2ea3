"""One name, one tensor: users and other tools look tensors up by name."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.ir.graph import Graph, Tensor


def make_names_unique(graph: Graph) -> None:
    """Number the tensors whose name is taken: ``x``, ``x_2``, ``x_3`` in order of the graph.

    Inputs and outputs keep their names whatever they are, then what nodes compute comes before constants, as it is
    what users look for. Only for graphs that are ours to change: a file that is read and written stays as it is.
    """
    ends = {*graph.inputs, *graph.outputs}
    taken = {tensor.name for tensor in ends}
    last: dict[str, int] = {}
    for tensor in _by_rank(graph):
        if tensor in ends:
            continue
        base = tensor.name
        while tensor.name in taken:
            last[base] = last.get(base, 1) + 1
            tensor.name = f"{base}_{last[base]}"
        taken.add(tensor.name)


def _by_rank(graph: Graph) -> Iterator[Tensor]:
    tensors = graph.tensors()
    yield from (tensor for tensor in tensors if tensor.producer is not None)
    yield from (tensor for tensor in tensors if tensor.producer is None)
