"""Copies of models: the graph anew, the constants shared."""

from __future__ import annotations

from collections.abc import Iterable

from vitrify.ir import Graph, Model, Signature, Tensor


def copy_model(model: Model) -> Model:
    """Copy a model, so that the copy can be edited; constant data is shared and must not be written to."""
    return Model([copy_graph(g)[0] for g in model.graphs],
                 [Signature(s.key, s.graph, dict(s.inputs), dict(s.outputs)) for s in model.signatures],
                 dict(model.metadata), model.description, model.interface, model.source, dict(model.extras))


def copy_graph(graph: Graph) -> tuple[Graph, dict[Tensor, Tensor]]:
    """Copy a graph; also returns which new tensor stands for which old one."""
    made: dict[Tensor, Tensor] = {tensor: _copy_tensor(tensor) for tensor in graph.tensors()}
    copy = Graph(graph.name)
    copy.inputs = [made[t] for t in graph.inputs]
    for node in graph:
        inputs = [made[t] if t is not None else None for t in node.inputs]
        added = copy.add(node.op, inputs, [made[t] for t in node.outputs], name=node.name, origin=node.origin)
        added.extras = dict(node.extras)
    copy.set_outputs(made[t] for t in graph.outputs)
    return copy, made


def _copy_tensor(tensor: Tensor) -> Tensor:
    copy = Tensor(tensor.name, tensor.dtype, tensor.shape, data=tensor.data, quantization=tensor.quantization,
                  origin=tensor.origin, is_variable=tensor.is_variable)
    copy.shape_signature = tensor.shape_signature
    copy.extras = dict(tensor.extras)
    return copy


def model_around(graph: Graph, outputs: Iterable[Tensor]) -> Model:
    """Return a model of a copy of ``graph`` that gives out ``outputs`` instead; nodes they do not need are left out."""
    copy, made = copy_graph(graph)
    copy.set_outputs(made[t] for t in outputs)
    copy.remove_dead()
    return Model([copy])
