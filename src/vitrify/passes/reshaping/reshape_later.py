"""Elementwise nodes moved before a reshape, next to the operators that can take them over."""

from __future__ import annotations

from vitrify import ops
from vitrify.ir import Graph, Node, Tensor
from vitrify.ir.graph import Array
from vitrify.passes.base import Pass
from vitrify.passes.graphs import RESHAPES, by_constant, constant, only_user, per_channel, producer, swap
from vitrify.passes.reshaping.reshapes import reshape_to

UNARY = (ops.Relu, ops.Relu6, ops.ReluN1To1, ops.LeakyRelu, ops.Elu, ops.Logistic, ops.Tanh, ops.HardSwish, ops.Gelu,
         ops.Abs, ops.Neg, ops.Sqrt, ops.Rsqrt, ops.Square, ops.Exp, ops.Log)
BINARY = (ops.Add, ops.Sub, ops.Mul, ops.Maximum, ops.Minimum)


class ReshapeLater(Pass):
    """Compute elementwise before a reshape, not after it.

    Before:  %1 = CONV_2D(%x, w, b);  %2 = RESHAPE(%1);  %3 = RELU(%2)      (a convolution over one axis)
    After:   %1 = CONV_2D(%x, w, b);  %2 = RELU(%1);  %3 = RESHAPE(%2)
    The activation can fuse, and the reshape meets the next one.
    """

    name = "reshape-later"
    kinds = (*UNARY, *BINARY)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Exchange node and reshape, where the reshape is used only here."""
        if isinstance(node.op, UNARY):
            source = _reshaped(node.input(0), node)
            return source is not None and self._exchange(graph, node, [source])
        pair = by_constant(node, type(node.op))
        if pair is None:
            return self._join(graph, node)
        source = _reshaped(pair[0], node)
        values = _operand(pair[1], pair[0].shape, source.shape) if source is not None else None
        if source is None or values is None:
            return False
        factor = constant(pair[1].name, values, pair[1].origin)
        return self._exchange(graph, node, [source, factor] if node.inputs[0] is pair[0] else [factor, source])

    def _join(self, graph: Graph, node: Node) -> bool:
        """Combine two values that are reshaped alike."""
        if len(node.inputs) != 2 or node.inputs[0] is node.inputs[1]:
            return False
        sources = [_reshaped(node.input(i), node) for i in (0, 1)]
        if sources[0] is None or sources[1] is None or sources[0].shape != sources[1].shape:
            return False
        if node.input(0).shape != node.input(1).shape:
            return False
        return self._exchange(graph, node, [s for s in sources if s is not None])

    def _exchange(self, graph: Graph, node: Node, inputs: list[Tensor]) -> bool:
        shape = next(t.shape for t in inputs if not t.is_constant)
        early = Tensor(f"{node.output.name}_early", node.output.dtype, shape,
                       origin=node.output.origin.by(self.name))
        made = graph.add(node.op, inputs, [early], name=node.name, origin=self.made(node), before=node)
        op, target = reshape_to(node)
        swap(graph, node, op, [made.output, target], self.made(node))
        return True


def _operand(factor: Tensor, after: tuple[int, ...], before: tuple[int, ...]) -> Array | None:
    """A constant in the form that it needs before the reshape; None when it varies along an axis that changes."""
    assert factor.data is not None
    if factor.size == 1:
        return factor.data.reshape(())
    same = bool(after) and bool(before) and after[-1] == before[-1]
    return per_channel(factor.data, after[-1]) if same else None


def _reshaped(tensor: Tensor, node: Node) -> Tensor | None:
    """What ``tensor`` is a reshape of, when only ``node`` reads it and the operator before may profit."""
    reshape = producer(tensor, *RESHAPES)
    if reshape is None or only_user(tensor) is not node or tensor.quantization is not None:
        return None
    source = reshape.input(0)
    return source if source.producer is not None and source.quantization is None else None
