"""Cuts that undo joins: parts that are joined only to be cut apart again go their own ways.

    Before:  %m = CONCATENATION(%boxes, %classes);  %a, %b = SPLIT_V(RESHAPE(%m))
    After:   %a = RESHAPE(%boxes);  %b = RESHAPE(%classes)

Exact. In int8 a join makes its members share one scale, although they mean different things.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from vitrify.ir import DType, Graph, Node, Tensor
from vitrify.ops import Concatenation, Reshape, Split, SplitV, Transpose
from vitrify.quant.outputs.joins import reshaped_axis

PASS = "unjoin-cuts"
MOST_MEMBERS = 64


def unjoin_cuts(graph: Graph) -> int:
    """Let the parts of every cut that falls between the members of joins bypass them; returns how many cuts went."""
    undone = 0
    for node in graph.nodes_of(Split, SplitV):
        cut = _cut(node)
        if cut is None or not _crosses_join(cut[0], cut[1]):
            continue
        source, axis, sizes = cut
        starts = np.cumsum([0, *sizes])
        if not all(_can_take(source, axis, int(a), int(b)) for a, b in pairwise(starts)):
            continue
        taker = _Taker(graph, node)
        for output, start, stop in zip(node.outputs, starts, starts[1:], strict=False):
            graph.replace_uses(output, taker.take(source, axis, int(start), int(stop)))
        graph.remove(node)
        undone += 1
    if undone:
        graph.remove_dead()
    return undone


def _cut(node: Node) -> tuple[Tensor, int, Sequence[int]] | None:
    """What is cut, along which axis, into which sizes; None when that is not constant or an output is given out."""
    source, place = (node.input(1), node.input(0)) if isinstance(node.op, Split) else (node.input(0), node.input(2))
    if place.data is None or source.is_constant or any(t.is_output for t in node.outputs):
        return None
    axis = int(np.asarray(place.data).reshape(-1)[0]) % len(source.shape)
    return source, axis, [t.shape[axis] for t in node.outputs]


def _crosses_join(tensor: Tensor, axis: int) -> bool:
    """True when a join along that axis stands somewhere behind the cut."""
    node = tensor.producer
    if node is None:
        return False
    if isinstance(node.op, Concatenation):
        return node.op.axis % len(tensor.shape) == axis or any(t is not None and _crosses_join(t, axis)
                                                               for t in node.inputs)
    inner = _inner_axis(node, axis)
    return inner is not None and _crosses_join(node.input(0), inner)


def _inner_axis(node: Node, axis: int) -> int | None:
    """The axis of a moving node's input that becomes ``axis`` of its output."""
    if isinstance(node.op, Transpose) and node.input(1).data is not None:
        return int(np.asarray(node.input(1).data)[axis])
    if isinstance(node.op, Reshape):
        return reshaped_axis(node.output.shape, node.input(0).shape, axis)
    return None


def _can_take(tensor: Tensor, axis: int, start: int, stop: int) -> bool:
    """True when a range of an axis can be had without cutting."""
    if (start, stop) == (0, tensor.shape[axis]):
        return True
    node = tensor.producer
    if node is None or tensor.is_output:
        return False
    if not isinstance(node.op, Concatenation):
        inner = _inner_axis(node, axis)
        return inner is not None and _can_take(node.input(0), inner, start, stop)
    if len(node.inputs) > MOST_MEMBERS:
        return False
    if node.op.axis % len(tensor.shape) != axis:
        return all(t is not None and _can_take(t, axis, start, stop) for t in node.inputs)
    return all(_can_take(t, axis, a, b) for t, a, b in _members(node, axis, start, stop))


def _members(node: Node, axis: int, start: int, stop: int) -> list[tuple[Tensor, int, int]]:
    """The members of a join that a range meets, and which range of each."""
    met: list[tuple[Tensor, int, int]] = []
    offset = 0
    for index in range(len(node.inputs)):
        member = node.input(index)
        low, high = max(start - offset, 0), min(stop - offset, member.shape[axis])
        if low < high:
            met.append((member, low, high))
        offset += member.shape[axis]
    return met


class _Taker:
    """Builds the ways round the joins, before the cut that they replace."""

    def __init__(self, graph: Graph, cut: Node) -> None:
        self._graph = graph
        self._cut = cut

    def take(self, tensor: Tensor, axis: int, start: int, stop: int) -> Tensor:
        """Return the tensor of a range that ``_can_take`` allows."""
        node = tensor.producer
        if (start, stop) == (0, tensor.shape[axis]) or node is None:
            return tensor
        if isinstance(node.op, Concatenation):
            along = node.op.axis % len(tensor.shape) == axis
            met = _members(node, axis, start, stop) if along else [(node.input(i), start, stop)
                                                                  for i in range(len(node.inputs))]
            parts = [self.take(t, axis, a, b) for t, a, b in met]
            return parts[0] if len(parts) == 1 else self._add(node, node.op, parts, start)
        inner = _inner_axis(node, axis)
        assert inner is not None
        taken = self.take(node.input(0), inner, start, stop)
        if isinstance(node.op, Transpose):
            return self._add(node, node.op, [taken, node.input(1)], start)
        shape = (*tensor.shape[:axis], stop - start, *tensor.shape[axis + 1:])
        wanted = Tensor(f"{node.name}_{start}_shape", DType.INT32, (len(shape),), data=np.array(shape, np.int32))
        return self._add(node, Reshape(new_shape=shape), [taken, wanted], start)

    def _add(self, like: Node, op: Concatenation | Transpose | Reshape, inputs: Sequence[Tensor], start: int) -> Tensor:
        return self._graph.add(op, inputs, name=f"{like.name}_from_{start}", origin=like.origin.by(PASS),
                               before=self._cut).output
