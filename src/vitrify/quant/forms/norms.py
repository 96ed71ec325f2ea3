"""Normalizations that keep quiet tokens beside loud ones: their squares, and the sums that they read, in 16 bits.

A few channels of a few tokens of a trained transformer are a hundred times as large as the others. Squared, that is ten
thousand times: beside such a square every other is below half a step of int8, and the variance that a token is divided
by is lost. What the normalization reads is a sum that every layer adds a little to, and each rounding of it stays.
Measured on a pretrained ViT-S: docs/quantization.md.

The products with weights, which are nearly all of the time, stay in 8 bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Graph, Node, Tensor
from vitrify.quant.calibration.statistics import Range
from vitrify.quant.rules import is_real, takes_sixteen

PASS = "rsqrt-in-parts"

MEANS = (ops.Conv2D, ops.FullyConnected, ops.Mean, ops.Sum)
"""What averages: over channels the passes make it a product with equal weights."""

WEIGHTED = (ops.Conv2D, ops.FullyConnected)

MOVES = (ops.Reshape, ops.Transpose, ops.Squeeze, ops.ExpandDims)

SPREAD = 32.0
"""How far apart the values of one table may be: at the lower end of 32 a step is an eighth of the value, and its root
within 2 %."""

MOST_PARTS = 3


@dataclass(frozen=True)
class Norm:
    """A normalization: ``root`` is 1 / sqrt of the mean of the squares of ``centred``, by ``steps`` in between."""

    root: Node
    steps: tuple[Node, ...]
    centred: Tensor

    @property
    def inner(self) -> Iterator[Node]:
        """All nodes but the root that keep more than 8 bits, up to what is normalized, scaled and moved."""
        yield from self.steps
        centring = self.centred.producer
        if centring is not None and isinstance(centring.op, ops.Sub):
            yield centring
            yield from (n for i in range(2) if (n := _mean_of(centring.input(i))) is not None)
        yield from _scaled(self.root.output)

    @property
    def source(self) -> Tensor:
        """What is normalized."""
        centring = self.centred.producer
        return centring.input(0) if centring is not None and isinstance(centring.op, ops.Sub) else self.centred


def norms(graph: Graph) -> list[Norm]:
    """Find the normalizations of a graph."""
    return [found for node in graph.nodes_of(ops.Rsqrt) if (found := _norm(node)) is not None]


def normalizing(graph: Graph) -> set[Node]:
    """The nodes of normalizations that 8 bits do not do for, with the sums of layers that these read."""
    found: set[Node] = set()
    for norm in norms(graph):
        found |= {node for node in norm.inner if takes_sixteen(node)}
        found |= set(_sums(norm.source))
    return found


def _norm(root: Node) -> Norm | None:
    steps: list[Node] = []
    node = root.input(0).producer
    while node is not None and not _is_square(node):
        if not isinstance(node.op, (*MEANS, *MOVES)) and not _with_constant(node):
            return None
        steps.append(node)
        node = node.input(_running(node)).producer
    if node is None or not any(isinstance(s.op, MEANS) for s in steps):
        return None
    return Norm(root, (*steps, node), node.input(0))


def _scaled(root: Tensor) -> Iterator[Node]:
    """What multiplies with the root, and the constant factors and terms after it."""
    waiting = [u for u in root.users if isinstance(u.op, ops.Mul)]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [u for u in node.output.users if isinstance(u.op, ops.Mul | ops.Add) and _with_constant(u)]


def _is_square(node: Node) -> bool:
    return isinstance(node.op, ops.Square) or (isinstance(node.op, ops.Mul) and node.inputs[0] is node.inputs[1])


def _with_constant(node: Node) -> bool:
    """True for a sum, a product or a limit with a constant."""
    return isinstance(node.op, ops.Add | ops.Mul | ops.Maximum | ops.Minimum) and \
        node.input(0).is_constant != node.input(1).is_constant


def _running(node: Node) -> int:
    return 1 if _with_constant(node) and node.input(0).is_constant else 0


def _mean_of(tensor: Tensor) -> Node | None:
    node = tensor.producer
    return node if node is not None and isinstance(node.op, MEANS) and _averages(node) else None


def _averages(node: Node) -> bool:
    """True for a mean, or a product with equal weights."""
    if isinstance(node.op, ops.Mean | ops.Sum):
        return True
    weights = node.input(1).data
    return weights is not None and bool(weights.size) and bool(np.all(weights == weights.flat[0]))


def _sums(tensor: Tensor) -> Iterator[Node]:
    """What makes a tensor that is normalized: sums as far back as they follow upon each other, and its first product.

    The product with weights that a stream of sums begins with, such as the embedding of patches, is one of them; those
    whose outcome is added to the stream are not.
    """
    waiting, seen = [(tensor, True)], set[Node]()
    while waiting:
        made, alone = waiting.pop()
        node = made.producer
        if node is None or node in seen or not takes_sixteen(node):
            continue
        computed = [t for t in node.inputs if t is not None and is_real(t) and not t.is_constant]
        if isinstance(node.op, ops.Add):
            waiting += [(t, len(computed) == 1) for t in computed]
        elif isinstance(node.op, (*MOVES, ops.Concatenation)):
            waiting += [(t, alone) for t in computed]
        elif not (alone and isinstance(node.op, WEIGHTED)):
            continue
        seen.add(node)
        yield node


def part_roots(graph: Graph, ranges: Mapping[Tensor, Range]) -> tuple[dict[Tensor, Range], set[Node]]:
    """Compute the roots of variances that lie far apart by several tables, each for a part of them.

    Before:  %r = RSQRT(%v)
    After:   %a = RSQRT(MINIMUM(%v, t));  %b = RSQRT(MAXIMUM(%v, t));  %r = ADD(%a, SUB(%b, 1 / sqrt(t)))
    Exact in real arithmetic: below t the second term is 0, above it the first is constant.

    Returns:
        The ranges of the tensors that this makes, and the nodes among them that need 16 bits.
    """
    made: dict[Tensor, Range] = {}
    wide: set[Node] = set()
    for norm in norms(graph):
        seen = ranges.get(norm.root.input(0))
        if seen is None or not 0 < seen.low * SPREAD < seen.high:
            continue
        _Parting(graph, norm.root, seen, made, wide).run()
    return made, wide


class _Parting:
    """Writes one root out in parts."""

    def __init__(self, graph: Graph, root: Node, seen: Range, made: dict[Tensor, Range], wide: set[Node]) -> None:
        self._graph = graph
        self._root = root
        self._seen = seen
        self._made = made
        self._wide = wide

    def run(self) -> None:
        """Replace the root by the sum of its parts."""
        low, high = self._seen.low, self._seen.high
        count = min(MOST_PARTS, int(np.ceil(np.log(high / low) / np.log(SPREAD))))
        edges = np.geomspace(low, high, count + 1)
        total = self._part(0, float(edges[0]), float(edges[1]))
        for index in range(1, count):
            below, above = float(edges[index]), float(edges[index + 1])
            part = self._part(index, below, above)
            lowered = self._add(ops.Add(pot_scale_int16=False), [part, self._number(-1 / np.sqrt(below))],
                                f"below{index}", Range(1 / np.sqrt(above) - 1 / np.sqrt(below), 0.0), wide=True)
            limits = Range(1 / np.sqrt(above), 1 / np.sqrt(low))
            if index < count - 1:
                total = self._add(ops.Add(pot_scale_int16=False), [total, lowered], f"sum{index}", limits, wide=True)
            else:
                self._made[self._root.output] = limits
                last = self._graph.replace_node(self._root, ops.Add(pot_scale_int16=False), [total, lowered],
                                                origin=self._root.origin.by(PASS))
                self._made[last.output] = limits
                self._wide.add(last)

    def _part(self, index: int, below: float, above: float) -> Tensor:
        """1 / sqrt of the variance, held within two limits."""
        held = self._root.input(0)
        if index:
            held = self._add(ops.Maximum(), [held, self._number(below)], f"atleast{index}", Range(below, above))
        if above < self._seen.high:
            held = self._add(ops.Minimum(), [held, self._number(above)], f"atmost{index}", Range(below, above))
        return self._add(ops.Rsqrt(), [held], f"part{index}", Range(1 / np.sqrt(above), 1 / np.sqrt(below)))

    def _number(self, value: float) -> Tensor:
        return Tensor(f"{self._root.name}_{value:.3g}", DType.FLOAT32, (), data=np.array(value, np.float32))

    def _add(self, op: ops.Operator, inputs: list[Tensor | None], name: str, seen: Range, *,
             wide: bool = False) -> Tensor:
        node = self._graph.add(op, inputs, name=f"{self._root.name}/{name}", origin=self._root.origin.by(PASS),
                               before=self._root)
        node.output.origin = node.output.origin._replace(sources=())
        self._made[node.output] = seen
        if wide:
            self._wide.add(node)
        return node.output
