"""Measures fixes of nodes that LiteRT cannot run, or computes wrongly, against what the operator means in float."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vitrify import tflite
from vitrify.core.errors import VitrifyError
from vitrify.ir import Graph, Model, Node, Tensor
from vitrify.passes.targets import Fix, Place
from vitrify.pipeline.checking.fixes.proving import random_inputs
from vitrify.runtimes.litert import LiteRT

LARGEST = 4.0
"""The most steps of its output by which a repaired node may differ from its meaning."""


def repair_error(one: Fix, node: Node, folder: Path, seed: int = 0) -> float:
    """Return by how many steps of its output the rewritten ``node``, alone, differs from its float meaning at most.

    Values beyond the output's range count as its ends. What cannot be run is infinitely far off.
    """
    model, copy = _alone(node)
    place = Place(model.main, copy, one.name)
    made = None if one.rewrite is None else one.rewrite(place)
    if not isinstance(made, Tensor):
        return float("inf")
    place.finish(made)
    path = folder / "repaired.tflite"
    try:
        tflite.write(model, path)
        with LiteRT(path) as runtime:
            (given,) = random_inputs(model, runtime.interface, 1, seed)
            (found,) = runtime.run(given).values()
        return _apart(node, [given[t.name] for t in model.main.inputs], found)
    except VitrifyError:
        return float("inf")


def _alone(node: Node) -> tuple[Model, Node]:
    """The node in a graph of its own, between inputs and outputs like its own."""
    graph = Graph()
    inputs: list[Tensor | None] = []
    for index, tensor in enumerate(node.inputs):
        if tensor is None or tensor.data is not None:
            inputs.append(tensor and _like(tensor, tensor.name))
            continue
        inputs.append(_like(tensor, f"input_{index}"))
        graph.inputs.append(inputs[-1])  # type: ignore[arg-type]
    copy = graph.add(node.op, inputs, [_like(tensor, tensor.name) for tensor in node.outputs], name=node.name)
    graph.set_outputs(copy.outputs)
    return Model(graphs=[graph]), copy


def _like(tensor: Tensor, name: str) -> Tensor:
    return Tensor(name, tensor.dtype, tensor.shape, data=tensor.data, quantization=tensor.quantization)


def _apart(node: Node, given: list[np.ndarray], found: np.ndarray) -> float:
    rest = iter(given)
    arrays = [None if t is None else next(rest) if t.data is None else
              t.data if t.quantization is None else t.quantization.dequantize(t.data) for t in node.inputs]
    wanted = node.op.evaluate(arrays)[0]
    scales, kind = node.output.quantization, node.output.dtype.numpy
    assert scales is not None
    assert kind is not None
    ends = scales.dequantize(np.array([np.iinfo(kind).min, np.iinfo(kind).max], kind))
    return float(np.abs(np.clip(wanted, *ends) - found).max() / float(scales.scale[0]))
