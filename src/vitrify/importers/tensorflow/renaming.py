"""The signature's names for a converted model's inputs and outputs, and the layers' names as origins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vitrify.ir import Graph, Interface, Model, Node, Origin, Tensor
from vitrify.ir.origin import Source

_WRAPPERS = ("StatefulPartitionedCall", "PartitionedCall", "Identity")


def rename_tflite(source: Path, target: Path, inputs: list[str], outputs: list[str]) -> Path:
    """Write a converted TFLite file again, under the source's names."""
    from vitrify import tflite
    from vitrify.data.binding import identity_interface

    model = tflite.read(source)
    for graph in model.graphs:
        _split_names(graph)
        _strip_calls(graph, {*inputs, *outputs})
    _name_ports(model, inputs, outputs)
    model.interface = _as_source(identity_interface(model))
    model.signatures.clear()
    tflite.write(model, target)
    return target


def _as_source(interface: Interface) -> Interface:
    import msgspec

    return msgspec.structs.replace(interface, source_format="tensorflow")


def _split_names(graph: Graph) -> None:
    """The converter joins the names of what it fused by semicolons; each is a source of its own."""
    for node in graph:
        names = [part for part in map(_layer, node.name.split(";")) if part]
        if names:
            node.origin = Origin(tuple(Source(name, node.op.kind) for name in dict.fromkeys(names)))


def _strip_calls(graph: Graph, taken: set[str]) -> None:
    """Name tensors and nodes as the layers are, where no other has that name already."""
    things: list[Node | Tensor] = [*graph.nodes, *graph.tensors()]
    taken = taken | {thing.name for thing in things}
    for thing in things:
        name = ";".join(part for part in map(_layer, thing.name.split(";")) if part)
        if name and name not in taken:
            thing.name = name
            taken.add(name)


def _layer(name: str) -> str:
    """A name without the calls of functions that stand around it; empty when nothing else is in it."""
    parts = name.split("/")
    while parts and _is_wrapper(parts[0]):
        del parts[0]
    return "/".join(parts)


def _is_wrapper(part: str) -> bool:
    return part.rstrip("0123456789:_") in _WRAPPERS


def _name_ports(model: Model, inputs: list[str], outputs: list[str]) -> None:
    graph = model.main
    for tensor, name in zip(graph.inputs, inputs, strict=True):
        tensor.name, tensor.origin = name, Origin.of(name)
    taken: set[int] = set()
    for tensor, name in zip(graph.outputs, outputs, strict=True):
        if id(tensor) not in taken and tensor not in graph.inputs:
            tensor.name, tensor.origin = name, Origin.of(name)
        taken.add(id(tensor))


def rename_onnx(model: Any, target: Path, inputs: list[str], outputs: list[str]) -> Path:
    """Write a converted ONNX model, under the source's names."""
    graph = model.graph
    new = {value.name: name for value, name in zip(graph.input, inputs, strict=True)}
    fresh = {value.name: name for value, name in zip(graph.output, outputs, strict=True) if value.name not in new}
    names = {**new, **fresh}
    held = {name for node in graph.node for name in (*node.input, *node.output)} - set(names)
    names = {old: name for old, name in names.items() if name not in held}
    for value in (*graph.input, *graph.output, *graph.value_info):
        value.name = names.get(value.name, value.name)
    for node in graph.node:
        node.name = _layer(node.name) or node.name
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    target.write_bytes(model.SerializeToString())
    return target
