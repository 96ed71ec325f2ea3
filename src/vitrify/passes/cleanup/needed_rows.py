"""Only the rows that are needed: a slice of rows moves before what computes each row by itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vitrify import ops
from vitrify.ir import Graph, Node, Operator, Origin, Tensor
from vitrify.ops.elementwise import BinaryElementwise, Elementwise
from vitrify.passes.base import Pass
from vitrify.passes.graphs import constant, is_dense, sweep

_LEAST = 2
"""A slice of more than one row in so many is left where it is: it is a copy, and saves little."""
_REDUCTIONS = (ops.Mean, ops.Sum, ops.ReduceMax, ops.ReduceMin)
_ROWS = (ops.Softmax, ops.LogSoftmax, ops.L2Normalization)
"""Operators that look along the last axis."""
_NOT_BY_ELEMENT = (*_ROWS, ops.LocalResponseNormalization, ops.Densify)
Span = tuple[int, int, int]
"""An axis, the first element, and how many."""


class NeededRows(Pass):
    """Compute no rows that nobody reads, as in the last block of a classifier that reads its class token alone.

    Before:  %2 = FULLY_CONNECTED(%1, w);  %3 = SOFTMAX(%2);  %4 = SLICE(%3, first row)
    After:   %2 = SLICE(%1, first row);  %3 = FULLY_CONNECTED(%2, w);  %4 = SOFTMAX(%3)
    Exact: each row is computed as before. A tensor is cut only where all that read it are slices, of few rows together.
    """

    name = "needed-rows"
    kinds = (ops.Slice,)

    def run(self, graph: Graph) -> int:
        """From the end to the beginning: a slice that was moved is met again where it went."""
        return sum(self._move(graph, node) for node in reversed(list(graph))) if graph.count(ops.Slice) else 0

    def _move(self, graph: Graph, node: Node) -> bool:
        if node.graph is not graph or len(node.outputs) != 1:
            return False
        span = _needed(node.output)
        axes = None if span is None else _axes(node, span[0])
        if span is None or axes is None:
            return False
        users = node.output.users
        first = graph.in_order(users)[0]
        cut: dict[Tensor, Tensor] = {}
        inputs = [tensor if tensor is None or axis is None else self._cut(graph, first, tensor, (axis, *span[1:]), cut)
                  for tensor, axis in zip(node.inputs, axes, strict=True)]
        whole = node.output
        made = graph.add(node.op, inputs, name=f"{node.name}_rows", before=first, origin=self.made(node)).output
        made.dtype, made.quantization = whole.dtype, whole.quantization
        made.origin = Origin()
        for user in users:
            self._read(graph, user, made, span)
        sweep(graph, whole)
        self.touch(str(node.origin) if node.origin.sources else "")
        return True

    def _read(self, graph: Graph, user: Node, made: Tensor, span: Span) -> None:
        """Let a slice of the whole take its rows from the part, or be the part."""
        own = _span(user, user.input(0))
        assert own is not None
        maker = made.producer
        if own != span:
            begins = np.array(user.input(1).data, np.int32)
            begins[span[0]] -= span[1]
            graph.set_inputs(user, [made, constant(f"{user.name}_begin", begins), user.input(2)])
        elif user.output.is_output and maker is not None:
            assert made.use_count == 0
            graph.replace_node(user, maker.op, maker.inputs, origin=self.made(maker, user))
            graph.remove(maker)
        else:
            graph.replace_uses(user.output, made)
            graph.remove(user)

    def _cut(self, graph: Graph, before: Node, tensor: Tensor, span: Span, cut: dict[Tensor, Tensor]) -> Tensor:
        """The rows of an input; of a constant they are another constant."""
        if tensor in cut:
            return cut[tensor]
        axis, begin, size = span
        if tensor.data is not None:
            found = constant(f"{tensor.name}_rows", np.asarray(tensor.data).take(range(begin, begin + size), axis),
                             tensor.origin)
            found.dtype, found.quantization = tensor.dtype, tensor.quantization
        else:
            begins, sizes = [0] * len(tensor.shape), list(tensor.shape)
            begins[axis], sizes[axis] = begin, size
            tables = [constant(f"{tensor.name}_{what}", np.array(values, np.int32))
                      for what, values in (("begin", begins), ("size", sizes))]
            found = self.insert(graph, ops.Slice(), [tensor, *tables], f"{tensor.name}_rows", before, before)
            found.dtype, found.quantization = tensor.dtype, tensor.quantization
        cut[tensor] = found
        return found


def _needed(tensor: Tensor) -> Span | None:
    """The rows that the readers of a tensor take between them; None where one takes all, or most."""
    users = tensor.users
    if tensor.is_output or not users or any(not isinstance(user.op, ops.Slice) for user in users) \
            or any(user.output.is_output and len(users) > 1 for user in users):
        return None
    spans = [_span(user, tensor) for user in users]
    found = [span for span in spans if span is not None]
    if len(found) < len(spans) or len({axis for axis, _, _ in found}) != 1:
        return None
    axis, begin = found[0][0], min(begin for _, begin, _ in found)
    size = max(begin + size for _, begin, size in found) - begin
    return (axis, begin, size) if size * _LEAST <= tensor.shape[axis] else None


def _span(user: Node, tensor: Tensor) -> Span | None:
    begins, sizes = user.input(1).data, user.output.shape
    if user.input(0) is not tensor or begins is None or user.output.quantization != tensor.quantization:
        return None
    axes = [axis for axis, (have, take) in enumerate(zip(tensor.shape, sizes, strict=True)) if have != take]
    if len(axes) != 1:
        return None
    return axes[0], int(np.asarray(begins).reshape(-1)[axes[0]]), sizes[axes[0]]


def _axes(node: Node, axis: int) -> Sequence[int | None] | None:
    """Along which axis each input is cut, None for one that is taken as it is; None for a node that needs all rows."""
    op, rank = node.op, len(node.output.shape)
    x = node.optional(0)
    if x is None:
        return None
    rest: list[int | None] = [None] * (len(node.inputs) - 1)
    if isinstance(op, (Elementwise, BinaryElementwise, ops.Quantize, ops.Dequantize, ops.Cast)) \
            and not isinstance(op, _NOT_BY_ELEMENT):
        return _by_element(node, axis)
    if isinstance(op, ops.Concatenation):
        return [axis] * len(node.inputs) if op.axis % rank != axis else None
    return [axis, *rest] if _keeps_rows(op, node, x, axis, rank) else None


def _keeps_rows(op: Operator, node: Node, x: Tensor, axis: int, rank: int) -> bool:
    """True for an operator that makes each row along an axis of the first input from that row alone."""
    if len(x.shape) != rank or x.shape[axis] != node.output.shape[axis]:
        return False
    if isinstance(op, ops.FullyConnected):
        return axis < rank - 1 and x.shape[:-1] == node.output.shape[:-1]
    if isinstance(op, ops.BatchMatMul):
        return axis == rank - 2 and not op.adj_x
    if isinstance(op, _REDUCTIONS):
        along = node.input(1).data
        return along is not None and axis not in {int(a) % rank for a in np.atleast_1d(along)}
    return isinstance(op, _ROWS) and axis < rank - 1


def _by_element(node: Node, axis: int) -> list[int | None] | None:
    """Inputs are cut where they are as long as the result, and taken as they are where they are spread over it."""
    shape = node.output.shape
    found: list[int | None] = []
    for tensor in node.inputs:
        place = axis if tensor is None else axis - len(shape) + len(tensor.shape)
        if tensor is None or place < 0 or tensor.shape[place] == 1:
            found.append(None)
        elif tensor.data is not None and (not is_dense(tensor) or (tensor.quantization is not None
                                                                   and tensor.quantization.is_per_axis)):
            return None
        else:
            found.append(place)
    return found
