"""Moving the last arithmetic of a graph to the host, where int8 would lose what it is about.

Decoding boxes adds distances of a few cells to anchors of hundreds of pixels: in int8 the sum has one scale, and the
distance keeps a few of its levels. Cut before the decoding, the file's outputs keep all of theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vitrify.data.host import attributes_of
from vitrify.ir import Graph, Node, Tensor
from vitrify.ir.host import HostConstant, HostProgram, HostStep
from vitrify.ops import (
    Add,
    Concatenation,
    Div,
    ExpandDims,
    Mul,
    Neg,
    Reshape,
    Slice,
    Split,
    SplitV,
    Squeeze,
    StridedSlice,
    Sub,
    Transpose,
)
from vitrify.quant.calibration.ranges import constant_range
from vitrify.quant.calibration.statistics import Range
from vitrify.quant.outputs.joins import whole_range
from vitrify.quant.rules import is_real
from vitrify.quant.scales import levels_left

ARITHMETIC = (Add, Sub, Mul, Div, Neg)
MOVES = (Concatenation, Reshape, Transpose, Squeeze, ExpandDims, Slice, StridedSlice, Split, SplitV)

SUM_LEVELS = 64
"""A term of a sum should keep this many levels in it: with fewer, rounding the sum costs over 12 dB of the term."""

LARGEST_CUT = 4
"""The tensors at a cut may hold this many times the values of the output that they make."""


@dataclass(frozen=True)
class Tail:
    """The nodes that make an output from ``sources`` by arithmetic and moving alone, in order."""

    output: Tensor
    nodes: tuple[Node, ...]
    sources: tuple[Tensor, ...]

    @property
    def computes(self) -> bool:
        """True when it holds arithmetic, not only moves."""
        return any(isinstance(n.op, ARITHMETIC) for n in self.nodes)

    @property
    def is_movable(self) -> bool:
        """True when the graph can give out the sources instead."""
        volume = sum(t.size for t in self.sources)
        return (bool(self.sources) and volume <= LARGEST_CUT * self.output.size
                and all(is_real(t) and t.producer is not None for t in self.sources))


def find_tail(graph: Graph, output: Tensor) -> Tail:
    """Collect what lies between ``output`` and the last other computations, as far as nothing else reads it."""
    inside: set[Node] = set()
    for node in reversed(graph.nodes):
        if isinstance(node.op, ARITHMETIC + MOVES) and _serves_only(node, output, inside):
            inside.add(node)
    nodes = tuple(n for n in graph if n in inside)
    made = {t for n in nodes for t in n.outputs}
    read = [t for n in nodes for t in n.inputs if t is not None and not t.is_constant and t not in made]
    return Tail(output, nodes, tuple(dict.fromkeys(read)))


def _serves_only(node: Node, output: Tensor, inside: set[Node]) -> bool:
    used = [t for t in node.outputs if t.is_used]
    return bool(used) and all((t is output or not t.is_output) and (t is output or bool(t.users))
                              and all(u in inside for u in t.users) for t in used)


def collisions(tail: Tail, ranges: Mapping[Tensor, Range], join_levels: int) -> list[tuple[Node, Tensor, float]]:
    """List where a joined part or a term of a sum would lose its levels: node, tensor, levels left."""
    found: list[tuple[Node, Tensor, float]] = []
    for node in tail.nodes:
        members = [t for t in node.inputs if is_real(t) and t is not None]
        known = {t: ranges[t] if t in ranges else constant_range(t) for t in members if t in ranges or t.is_constant}
        if len(known) < 2:
            continue
        if isinstance(node.op, Concatenation):
            whole, limit = whole_range(list(known.values())), float(join_levels)
        elif isinstance(node.op, (Add, Sub)) and node.output in ranges:
            whole, limit = ranges[node.output], float(SUM_LEVELS)
        else:
            continue
        for tensor, own in known.items():
            left = levels_left(own.with_zero(), whole)
            if left < limit and not tensor.is_constant:
                found.append((node, tensor, left))
    return found


def host_program(tails: Mapping[int, Tail], outputs: Sequence[Tensor]) -> HostProgram:
    """Describe the tails as steps over the file's ``outputs``; each makes what stood at its position before."""
    numbers: dict[Tensor, int] = {t: i for i, t in enumerate(outputs)}
    constants: list[HostConstant] = []
    for tail in tails.values():
        for tensor in (t for n in tail.nodes for t in n.inputs if t is not None and t.data is not None):
            if tensor not in numbers:
                assert tensor.data is not None
                numbers[tensor] = len(outputs) + len(constants)
                constants.append(HostConstant.of(tensor.data))
    steps: list[HostStep] = []
    following = len(outputs) + len(constants)
    for tail in tails.values():
        for node in tail.nodes:
            numbers |= {t: following + i for i, t in enumerate(node.outputs)}
            following += len(node.outputs)
            steps.append(HostStep(operator=node.op.kind, attributes=attributes_of(node.op),
                                  inputs=tuple(numbers[t] if t is not None else -1 for t in node.inputs),
                                  outputs=tuple(numbers[t] for t in node.outputs)))
    gives = list(range(len(outputs)))
    for position, tail in tails.items():
        gives[position] = numbers[tail.output]
    return HostProgram(takes=len(outputs), constants=tuple(constants), steps=tuple(steps), gives=tuple(gives))


