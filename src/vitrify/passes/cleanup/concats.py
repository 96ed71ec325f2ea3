"""Concatenations of concatenations."""

from __future__ import annotations

from dataclasses import replace

from vitrify import ops
from vitrify.ir import Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import only_user, swap


class MergeConcats(Pass):
    """Join parts in one go.

    Before:  %1 = CONCATENATION(%a, %b);  %2 = CONCATENATION(%1, %c)      along the same axis
    After:   %2 = CONCATENATION(%a, %b, %c)
    """

    name = "merge-concats"
    kinds = (ops.Concatenation,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Take over the parts of parts that nothing else reads."""
        inputs: list[Tensor | None] = []
        inner: list[Node] = []
        for tensor in node.inputs:
            maker = tensor.producer if tensor is not None else None
            if tensor is not None and maker is not None and _is_part(maker, node):
                inner.append(maker)
                inputs += maker.inputs
            else:
                inputs.append(tensor)
        if not inner:
            return False
        swap(graph, node, _along(node), inputs, self.made(*inner, node))
        return True


def _along(node: Node) -> ops.Concatenation:
    """The operator with its axis counted from the front."""
    assert isinstance(node.op, ops.Concatenation)
    return replace(node.op, axis=node.op.axis % len(node.output.shape))


def _is_part(maker: Node, node: Node) -> bool:
    """True for a plain concatenation along the same axis that only ``node`` reads, with its scale."""
    return (isinstance(maker.op, ops.Concatenation) and only_user(maker.output) is node
            and maker.op.fused_activation_function is ops.Activation.NONE and _along(maker).axis == _along(node).axis
            and maker.output.quantization == node.output.quantization)
