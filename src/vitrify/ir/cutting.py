"""Some nodes of a graph as a graph of their own, which shares constants with it and nothing else."""

from __future__ import annotations

from collections.abc import Iterable

from vitrify.ir.graph import Graph, Node, Tensor


def cut_out(nodes: Iterable[Node], name: str = "main", outputs: Iterable[Tensor] | None = None) -> Graph:
    """Return a graph of copies of ``nodes``, given in running order.

    What they read and do not make are its inputs; its outputs are ``outputs``, or what others read or the graph gives.
    """
    chosen = list(nodes)
    inside = set(map(id, chosen))
    copies: dict[int, Tensor] = {}
    graph = Graph(name)
    for node in chosen:
        for tensor in node.inputs:
            if tensor is not None and id(tensor) not in copies:
                copies[id(tensor)] = _copy(tensor)
                if not tensor.is_constant and not tensor.is_variable:
                    graph.inputs.append(copies[id(tensor)])
        made = [copies.setdefault(id(tensor), _copy(tensor)) for tensor in node.outputs]
        taken = [None if tensor is None else copies[id(tensor)] for tensor in node.inputs]
        graph.add(node.op, taken, made, name=node.name, origin=node.origin)
    wanted = list(outputs) if outputs is not None else [
        tensor for node in chosen for tensor in node.outputs
        if tensor.is_output or any(id(user) not in inside for user in tensor.users)]
    graph.set_outputs([copies[id(tensor)] for tensor in wanted])
    return graph


def _copy(tensor: Tensor) -> Tensor:
    made = Tensor(tensor.name, tensor.dtype, tensor.shape, data=tensor.data, quantization=tensor.quantization,
                  origin=tensor.origin, is_variable=tensor.is_variable)
    made.shape_signature, made.extras = tensor.shape_signature, dict(tensor.extras)
    return made
