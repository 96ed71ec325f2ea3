"""Roots and logarithms of power, computed from amplitudes so that int8 keeps twice the decibels.

    Before:  %p = ADD(MUL(%a, %a), MUL(%b, %b));  %y = SQRT(%p);  %z = LOG(%p)
    After:   %l = the length of (ABS(%a), ABS(%b)), by MAXIMUM over a few directions;  %y = %l;  %z = MUL(LOG(%l), 2)

256 levels of power span 24 dB, 256 of amplitude 48 dB: what lies below is rounded to 0. The length is measured with a
polygon: of 16 corners for roots, up to 1.9 % short; of 8 for logarithms, up to 0.69 dB short, which is about one step
of an int8 logarithm over 100 dB. SQRT runs on no NPU here. The float model stays as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from vitrify.core.findings import Finding
from vitrify.ir import DType, Graph, Node, Operator, Tensor
from vitrify.ops import Abs, Add, Log, Maximum, Mean, Minimum, Mul, Reshape, Slice, Sqrt
from vitrify.quant.calibration.statistics import Range, Statistics, TensorStatistics
from vitrify.quant.planning import natural_ranges
from vitrify.quant.reach import power_findings
from vitrify.quant.recipe import Recipe

PASS = "amplitudes"
SMALL = 1e-4
"""What is added to the power is left out where it is at most this share of the largest power."""


@dataclass(frozen=True)
class _Found:
    """A SQRT or LOG of ``power``, the sum of the squares of ``parts``, or of the two columns of its one part."""

    node: Node
    power: Tensor
    parts: tuple[Tensor, ...]
    is_pair: bool = False


@dataclass(frozen=True)
class Rewritten:
    """How many places were rewritten, statistics with the new tensors, and what they ask too much of."""

    changes: int
    statistics: Statistics
    findings: list[Finding]


def use_amplitudes(graph: Graph, statistics: Statistics, recipe: Recipe) -> Rewritten:
    """Rewrite each root and each logarithm of a sum of one or two squares."""
    found = [f for node in graph.nodes_of(Log, Sqrt) if (f := _find(node)) is not None]
    if not found:
        return Rewritten(0, statistics, [])
    ranges = natural_ranges(graph, statistics, recipe)
    made = Statistics(statistics.tensors, statistics.samples, statistics.key, statistics.is_random)
    findings = power_findings([f.node for f in found], ranges)
    changed = 0
    for one in found:
        if _offset(one.power) <= SMALL * ranges[one.power].high:
            largest = max(max(abs(ranges[t].low), abs(ranges[t].high)) for t in one.parts)
            length = min(largest * math.sqrt(2), math.sqrt(max(ranges[one.power].high, 0.0)))
            _Rewrite(graph, one, made).run(largest, length, ranges[one.node.output])
            changed += 1
    graph.remove_dead()
    return Rewritten(changed, made, findings)


def _find(node: Node) -> _Found | None:
    power = node.input(0)
    if power.dtype is not DType.FLOAT32 or power.is_constant:
        return None
    plain = _without_constant(power, Add)
    if (squared := _squared(plain)) is not None:
        return _Found(node, power, (squared,))
    both = plain.producer
    if both is not None and both.op == Add():
        parts = [_squared(both.input(i)) for i in range(2)]
        if parts[0] is not None and parts[1] is not None and parts[0].shape == parts[1].shape:
            return _Found(node, power, (parts[0], parts[1]))
    pair = _averaged_pair(plain)
    return _Found(node, power, (pair,), is_pair=True) if pair is not None else None


def _averaged_pair(tensor: Tensor) -> Tensor | None:
    """What the squares are of in twice the mean over a last axis of 2."""
    mean = _without_constant(tensor, Mul, 2.0).producer
    if mean is None or not isinstance(mean.op, Mean) or tensor is mean.output:
        return None
    inner, axes = mean.input(0), mean.input(1).data
    last = len(inner.shape) - 1
    if axes is None or inner.shape[last] != 2 or [int(a) % len(inner.shape) for a in np.ravel(axes)] != [last]:
        return None
    return _squared(inner)


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
    return abs(float(np.asarray(node.input(at).data).reshape(()))) if node is not None and at is not None else 0.0


def _squared(tensor: Tensor) -> Tensor | None:
    node = tensor.producer
    if node is None or node.op != Mul() or node.inputs[0] is not node.inputs[1] or node.input(0).is_constant:
        return None
    return node.input(0)


class _Rewrite:
    """Builds the new form before a root or logarithm, and tells the ranges of what it adds."""

    def __init__(self, graph: Graph, found: _Found, statistics: Statistics) -> None:
        self._graph = graph
        self._found = found
        self._node = found.node
        self._statistics = statistics

    def run(self, largest: float, length: float, result: Range) -> None:
        """Replace the node: ``largest`` is the largest part, ``length`` the largest length of both."""
        parts = [self._add(Abs(), [t], f"abs{i}", largest) for i, t in enumerate(self._found.parts)]
        if self._found.is_pair:
            parts = [self._column(parts[0], 0), self._column(parts[0], 1)]
        is_root = isinstance(self._node.op, Sqrt)
        found = self._length(parts, length, 16 if is_root else 8) if len(parts) == 2 else parts[0]
        if found.shape != self._node.output.shape:
            shape = self._node.output.shape
            found = self._add(Reshape(new_shape=shape), [found, self._constant("shape", np.array(shape, np.int32))],
                              "amplitude", length)
        if is_root:
            zero = self._constant("zero", np.array(0, np.float32))
            self._replace(Maximum(), [found, zero])
        else:
            half = self._add(Log(), [found], "half", result.high / 2, result.low / 2)
            self._replace(Mul(), [half, self._constant("two", np.array(2, np.float32))])

    def _length(self, parts: list[Tensor], length: float, corners: int) -> Tensor:
        """The longest projection of (a, b), a and b not below 0, on the directions of a polygon's corners."""
        if corners == 16:
            longer = self._add(Maximum(), [*parts], "longer", length)
            shorter = self._add(Minimum(), [*parts], "shorter", length)
            flat = self._add(Add(), [self._times(longer, math.cos(math.pi / 8), "cos", length),
                                     self._times(shorter, math.sin(math.pi / 8), "sin", length)], "flat", length)
            straight = self._add(Maximum(), [longer, flat], "straight", length)
        else:
            straight = self._add(Maximum(), [*parts], "straight", length)
        total = self._add(Add(), [*parts], "sum", length * math.sqrt(2))
        return self._add(Maximum(), [straight, self._times(total, math.sqrt(0.5), "slanted", length)], "length", length)

    def _times(self, tensor: Tensor, factor: float, name: str, high: float) -> Tensor:
        return self._add(Mul(), [tensor, self._constant(f"{name}_factor", np.array(factor, np.float32))], name, high)

    def _column(self, tensor: Tensor, index: int) -> Tensor:
        begin = np.array([0] * (len(tensor.shape) - 1) + [index], np.int32)
        size = np.array([*tensor.shape[:-1], 1], np.int32)
        return self._add(Slice(), [tensor, self._constant(f"begin{index}", begin), self._constant("size", size)],
                         f"part{index}", 0.0)

    def _constant(self, name: str, array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> Tensor:
        return Tensor(f"{self._node.name}/{name}", DType.of(array.dtype), array.shape, data=array,
                      origin=self._node.origin.by(PASS))

    def _replace(self, op: Operator, inputs: list[Tensor | None]) -> None:
        self._graph.replace_node(self._node, op, inputs, origin=self._node.origin.by(PASS))

    def _add(self, op: Operator, inputs: list[Tensor | None], name: str, high: float, low: float = 0.0) -> Tensor:
        node = self._graph.add(op, inputs, name=f"{self._node.name}/{name}", origin=self._node.origin.by(PASS),
                               before=self._node)
        seen = TensorStatistics()
        seen.low, seen.high = low, high
        self._statistics.tensors[node.output.name] = seen
        return node.output
