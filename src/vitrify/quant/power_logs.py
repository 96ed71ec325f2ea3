"""Logarithms of power, computed from amplitudes so that int8 keeps twice the decibels.

    Before:  %p = MEAN(MUL(%x, %x), last axis of 2);  %y = LOG(ADD(MUL(%p, 2), tiny))
    After:   %a = ABS(%x);  %m = MAXIMUM(a0, a1, 0.7071 * (a0 + a1));  %y = MUL(LOG(%m), 2)

256 levels of power span 24 dB, 256 of amplitude 48 dB: what lies below is rounded to 0. The length of (a0, a1) is taken
as that of an octagon, which is up to 0.69 dB short, about one step of an int8 logarithm over 100 dB. The float model
stays as it is. With one component instead of two, %m = ABS(%x).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vitrify.core.findings import Finding
from vitrify.ir import DType, Graph, Node, Operator, Tensor
from vitrify.ops import Abs, Add, Log, Maximum, Mean, Mul, Reshape, Slice
from vitrify.quant.planning import natural_ranges
from vitrify.quant.reach import power_findings
from vitrify.quant.recipe import Recipe
from vitrify.quant.statistics import Range, Statistics, TensorStatistics

PASS = "log-of-amplitude"
DIAGONAL = float(np.sqrt(0.5))
SMALL = 1e-4
"""What is added before the logarithm is left out where it is at most this share of the largest power."""


@dataclass(frozen=True)
class _Found:
    """A logarithm of the squared length of ``value`` along its last axis of ``parts`` elements."""

    log: Node
    power: Tensor
    value: Tensor
    parts: int


@dataclass(frozen=True)
class Rewritten:
    """How many logarithms were rewritten, statistics with the new tensors, and what the logarithms ask too much of."""

    changes: int
    statistics: Statistics
    findings: list[Finding]


def logs_of_amplitudes(graph: Graph, statistics: Statistics, recipe: Recipe) -> Rewritten:
    """Rewrite each logarithm of a sum of one or two squares."""
    found = [f for node in graph.nodes_of(Log) if (f := _find(node)) is not None]
    if not found:
        return Rewritten(0, statistics, [])
    ranges = natural_ranges(graph, statistics, recipe)
    made = Statistics(statistics.tensors, statistics.samples, statistics.key, statistics.is_random)
    changed = 0
    findings = power_findings([f.log for f in found], ranges)
    for one in found:
        if _offset(one.log.input(0)) <= SMALL * ranges[one.log.input(0)].high:
            _Rewrite(graph, one, made).run(ranges[one.value], ranges[one.power], ranges[one.log.output])
            changed += 1
    graph.remove_dead()
    return Rewritten(changed, made, findings)


def _find(log: Node) -> _Found | None:
    power = log.input(0)
    if power.dtype is not DType.FLOAT32:
        return None
    scaled = _without_constant(power, Add)
    squared = _squared(scaled)
    if squared is not None:
        return _Found(log, power, squared, 1)
    mean = _without_constant(scaled, Mul, 2.0).producer
    if mean is None or not isinstance(mean.op, Mean) or scaled is mean.output or mean.input(1).data is None:
        return None
    inner, axes = mean.input(0), np.asarray(mean.input(1).data).reshape(-1)
    value = _squared(inner)
    last = len(inner.shape) - 1
    if value is None or [int(a) % len(inner.shape) for a in axes] != [last] or inner.shape[last] != 2:
        return None
    return _Found(log, power, value, 2)


def _constant_at(node: Node) -> int | None:
    return next((i for i in (1, 0) if (t := node.input(i)).data is not None and t.size == 1), None)


def _without_constant(tensor: Tensor, kind: type[Operator], value: float | None = None) -> Tensor:
    """What a node of ``kind`` adds to, or multiplies with, a constant (``value``); the tensor itself without one."""
    node = tensor.producer
    if node is None or type(node.op) is not kind or node.op != kind():
        return tensor
    at = _constant_at(node)
    if at is None or (value is not None and not np.allclose(np.asarray(node.input(at).data), value, rtol=1e-6)):
        return tensor
    return node.input(1 - at)


def _offset(power: Tensor) -> float:
    node = power.producer
    at = _constant_at(node) if node is not None and isinstance(node.op, Add) else None
    return abs(float(np.asarray(node.input(at).data).reshape(-1)[0])) if node is not None and at is not None else 0.0


def _squared(tensor: Tensor) -> Tensor | None:
    node = tensor.producer
    if node is None or node.op != Mul() or node.inputs[0] is not node.inputs[1]:
        return None
    return node.input(0)


class _Rewrite:
    """Builds the new form before the logarithm, and tells the ranges of what it adds."""

    def __init__(self, graph: Graph, found: _Found, statistics: Statistics) -> None:
        self._graph = graph
        self._found = found
        self._statistics = statistics

    def run(self, value: Range, power: Range, logarithm: Range) -> None:
        log = self._found.log
        largest = max(abs(value.low), abs(value.high))
        length = min(largest * np.sqrt(self._found.parts), np.sqrt(max(power.high, 0.0)))
        amplitude = self._add(Abs(), [self._found.value], "abs", Range(0.0, largest))
        if self._found.parts == 2:
            amplitude = self._octagon(amplitude, float(length))
        half = self._add(Log(), [amplitude], "half", Range(logarithm.low / 2, logarithm.high / 2))
        self._graph.replace_node(log, Mul(), [half, self._constant("two", np.float32(2.0))], origin=log.origin.by(PASS))

    def _octagon(self, amplitude: Tensor, length: float) -> Tensor:
        first, second = self._part(amplitude, 0), self._part(amplitude, 1)
        total = self._add(Add(), [first, second], "sum", Range(0.0, length / DIAGONAL))
        slanted = self._add(Mul(), [total, self._constant("diagonal", np.float32(DIAGONAL))], "slanted",
                            Range(0.0, length))
        straight = self._add(Maximum(), [first, second], "straight", Range(0.0, length))
        longest = self._add(Maximum(), [straight, slanted], "length", Range(0.0, length))
        shape = self._found.power.shape
        if longest.shape == shape:
            return longest
        return self._add(Reshape(new_shape=shape), [longest, self._constant("shape", np.array(shape, np.int32))],
                         "amplitude", Range(0.0, length))

    def _part(self, tensor: Tensor, index: int) -> Tensor:
        begin = np.array([0] * (len(tensor.shape) - 1) + [index], np.int32)
        size = np.array([*tensor.shape[:-1], 1], np.int32)
        return self._add(Slice(), [tensor, self._constant(f"begin{index}", begin), self._constant("size", size)],
                         f"part{index}", Range(0.0, 0.0))

    def _constant(self, name: str, data: object) -> Tensor:
        array = np.asarray(data)
        return Tensor(f"{self._found.log.name}_{name}", DType.of(array.dtype), array.shape, data=array)

    def _add(self, op: Operator, inputs: list[Tensor | None], name: str, found: Range) -> Tensor:
        log = self._found.log
        node = self._graph.add(op, inputs, name=f"{log.name}/{name}", origin=log.origin.by(PASS), before=log)
        seen = TensorStatistics()
        seen.low, seen.high = found.low, found.high
        self._statistics.tensors[node.output.name] = seen
        return node.output
