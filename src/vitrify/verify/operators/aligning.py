"""Which tensors of the quantized file are tensors of the float file, and which operators lie between them."""

from __future__ import annotations

from dataclasses import dataclass, field

from vitrify.ir import Graph, Node, Tensor
from vitrify.ops import Concatenation, Pack
from vitrify.verify.alignment import inner_tensors

JOINS = (Concatenation, Pack)
MOVERS = frozenset({"RESHAPE", "TRANSPOSE", "SQUEEZE", "EXPAND_DIMS", "MAX_POOL_2D", "RESIZE_NEAREST_NEIGHBOR", "PAD",
                    "SLICE", "STRIDED_SLICE", "SPLIT", "SPLIT_V", "UNPACK", "GATHER", "TILE", "BROADCAST_TO"})
"""Operators that give values as they came, so that with the scale of their input they lose nothing."""

FEW = 0.5
"""A tensor that reaches less than this share of a join's range has a scale at least one bit too coarse."""


@dataclass
class Aligned:
    """Pairs of tensors: of the float graph by name, to those of the quantized graph.

    ``cuts``: tensors that are computed, whose readers can be fed with the float model's values; ``main``: of several
    with the same float tensor, the first, in order of the graph.
    """

    cuts: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    inputs: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    main: list[tuple[Tensor, Tensor]] = field(default_factory=list)


def align(reference: Graph, candidate: Graph) -> Aligned:
    """Pair the tensors of a float graph with those of its quantized form; they have the same names and shapes."""
    known = {t.name: t for node in reference for t in node.outputs if t.name}
    ends = {t.name: t for t in reference.inputs}
    found = Aligned()
    taken = set[str]()
    for name, tensor in inner_tensors({**known, **ends}, candidate):
        other = known.get(name) or ends[name]
        if not _same(other, tensor):
            continue
        found.cuts.append((other, tensor))
        if name in known and name not in taken:
            taken.add(name)
            found.main.append((other, tensor))
    return found


def passes_on(node: Node) -> bool:
    """True for an operator that moves values and changes none: same scale before and behind."""
    return node.op.kind in MOVERS and node.outputs[0].quantization == node.input(0).quantization


def causes(graph: Graph) -> dict[Tensor, Node]:
    """The tensors that have the scale of a join that they are put into, with that join."""
    found: dict[Tensor, Node] = {}
    for join in (n for n in graph if isinstance(n.op, JOINS)):
        waiting = [t for t in join.inputs if t is not None]
        while waiting:
            tensor = waiting.pop()
            if tensor.producer is None or tensor.quantization != join.output.quantization or tensor in found:
                continue
            found[tensor] = join
            if passes_on(tensor.producer):
                waiting.append(tensor.producer.input(0))
    return found


def parts(node: Node) -> list[tuple[str, tuple[slice, ...]]]:
    """The members of a concatenation, and where in its output each stands."""
    if not isinstance(node.op, Concatenation):
        return []
    axis = node.op.axis % max(1, len(node.output.shape))
    found, start = [], 0
    for tensor in node.inputs:
        assert tensor is not None
        end = start + tensor.shape[axis]
        found.append((tensor.name, (*(slice(None),) * axis, slice(start, end))))
        start = end
    return found


def _same(reference: Tensor, candidate: Tensor) -> bool:
    if tuple(reference.shape) != tuple(candidate.shape):
        return False
    return reference.dtype is candidate.dtype or (reference.dtype.is_float and candidate.quantization is not None)
