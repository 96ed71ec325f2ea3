"""Probes, and the pen that draws them: a graph of one operator under test with quantized inputs."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from vitrify.ir import DType, Graph, Node, Operator, Quantization, Tensor
from vitrify.targets.rules.rule import Value, Variant

_SCALE = 0.05


class Sketch:
    """Adds inputs, constants and nodes to a graph; names carry a prefix, so that several probes share one graph."""

    def __init__(self, graph: Graph, prefix: str) -> None:
        self.graph, self.prefix, self._count = graph, prefix, 0

    def _name(self, what: str) -> str:
        self._count += 1
        return f"{self.prefix}/{what}{self._count}"

    def value(self, shape: Sequence[int], dtype: DType = DType.INT8, *, scale: float | None = _SCALE, zero: int = 0,
              scales: int = 1) -> Tensor:
        """Return an input of the graph."""
        tensor = Tensor(self._name("x"), dtype, shape, quantization=quantization(scale, zero, scales, len(shape) - 1))
        self.graph.inputs.append(tensor)
        return tensor

    def constant(self, values: object, dtype: DType = DType.INT32, *, scale: float | None = None, zero: int = 0,
                 scales: int = 1, axis: int = 0) -> Tensor:
        """Return a constant."""
        kind = dtype.numpy
        assert kind is not None
        data = np.asarray(values, kind)
        return Tensor(self._name("c"), dtype, data.shape, data=data,
                      quantization=quantization(scale, zero, scales, axis))

    def weights(self, shape: Sequence[int], fill: int = 1, dtype: DType = DType.INT8) -> Tensor:
        """Return constant weights, all equal."""
        kind = dtype.numpy
        return self.constant(np.full(shape, fill, kind), dtype, scale=0.01)

    def bias(self, count: int, dtype: DType = DType.INT32, fill: int = 0) -> Tensor:
        """Return a constant bias."""
        return self.constant(np.full(count, fill, dtype.numpy), dtype, scale=_SCALE * 0.01)

    def add(self, op: Operator, inputs: Sequence[Tensor | None], *, dtype: DType | None = None,
            scale: float | None = _SCALE, zero: int = 0, shape: Sequence[int] | None = None) -> Node:
        """Add the node under test; what it gives is an output of the graph."""
        types = op.infer(inputs) if shape is None else []
        node_outputs = [Tensor(self._name("y"), dtype or t.dtype, t.shape, quantization=quantization(scale, zero))
                        for t in types] or [Tensor(self._name("y"), dtype or DType.INT8, shape or (),
                                                   quantization=quantization(scale, zero))]
        node = self.graph.add(op, inputs, node_outputs, name=self.prefix)
        self.graph.set_outputs([*self.graph.outputs, *node.outputs])
        return node


def quantization(scale: float | None, zero: int = 0, scales: int = 1, axis: int = 0) -> Quantization | None:
    """Return one scale, several along an axis, or none."""
    if scale is None:
        return None
    if scales > 1:
        return Quantization.per_axis(np.full(scales, scale, np.float32), axis)
    return Quantization.per_tensor(scale, zero)


Draw = Callable[[Sketch], Node]


@dataclass(frozen=True)
class Probe:
    """One probe: the rules that its node breaks (none: it is legal), with some of the values that must be found.

    ``alone``: it is not compiled beside others, because the compiler may stop on it.
    """

    name: str
    draw: Draw
    codes: tuple[str, ...] = ()
    values: Mapping[str, Value] = field(default_factory=dict)
    alone: bool = False

    def graph(self) -> Graph:
        """Return the graph of this probe."""
        graph = Graph(self.name)
        self.draw(Sketch(graph, self.name))
        return graph


Source = Callable[[Variant], Iterator[Probe]]
_SOURCES: list[Source] = []


def probe(source: Source) -> Source:
    """Register a generator of probes for a core."""
    _SOURCES.append(source)
    return source


@cache
def _load() -> None:
    package = importlib.import_module(__name__.rsplit(".", 1)[0])
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)


def probes(variant: Variant) -> list[Probe]:
    """Return all probes for a core, in the order of their modules."""
    _load()
    return [one for source in _SOURCES for one in source(variant)]
